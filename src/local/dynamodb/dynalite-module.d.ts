declare module 'dynalite' {
  import type { Server } from 'node:http';

  /** A server that has not been told to listen. */
  const dynalite: (options: {
    readonly path: string;
    readonly createTableMs: number;
    readonly deleteTableMs: number;
    readonly updateTableMs: number;
  }) => Server;
  export = dynalite;
}
