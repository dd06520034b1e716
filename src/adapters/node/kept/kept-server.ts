import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { durationMs, epochMs, type EpochMs } from '../../../contracts/units.ts';
import type { OutputKeeper } from '../../../ports/output-keeper.ts';
import type { KeptFiles } from './kept-files.ts';
import { header, isProof, proofOf, type Question } from './question.ts';

/** Where a worker answers. */
export interface KeeperPlace {
  /** The worker's own, in the network that it shares with readers. */
  readonly host: string;
  /** 0: any that is free. */
  readonly port: number;
}

/** Gives the outputs that this worker keeps to workers of the same job, over HTTP. */
export class KeptServer implements OutputKeeper {
  readonly #files: KeptFiles;
  readonly #secret: Buffer;
  readonly #place: KeeperPlace;
  readonly #now: () => EpochMs;
  #server: Server | undefined;
  #address: Promise<string | undefined> | undefined;
  #askedAt: EpochMs | undefined;

  /** `now`: by the clock of whoever asks when it was asked last. */
  constructor(files: KeptFiles, secret: Buffer, place: KeeperPlace, now = () => epochMs(Date.now())) {
    this.#now = now;
    this.#files = files;
    this.#secret = secret;
    this.#place = place;
  }

  open(): Promise<string | undefined> {
    this.#address ??= this.#listen();
    return this.#address;
  }

  keys(): readonly string[] {
    return this.#files.keys();
  }

  get askedAt(): EpochMs | undefined {
    return this.#askedAt;
  }

  async close(answersMs = durationMs(0)): Promise<void> {
    const server = this.#server;
    if (server !== undefined) {
      // Connections are kept for further questions no longer than their answers take.
      server.keepAliveTimeout = 1;
      const closed = new Promise((resolve) => server.close(resolve));
      const ending = setTimeout(() => {
        server.closeAllConnections();
      }, answersMs);
      await closed;
      clearTimeout(ending);
    }
    await this.#files.clear().catch(() => undefined); // It goes with the worker's disk.
  }

  #listen(): Promise<string | undefined> {
    const { host, port } = this.#place;
    const server = createServer((request, response) => {
      void this.#answer(request, response);
    });
    this.#server = server;
    return new Promise((resolve) => {
      server.once('error', () => {
        this.#server = undefined;
        resolve(undefined);
      });
      server.listen(port, host, () => {
        const bound = server.address();
        resolve(typeof bound === 'object' && bound !== null ? `${host}:${String(bound.port)}` : undefined);
      });
    });
  }

  /** Never throws: a reader that is not answered as it should be goes without. */
  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const question = questionOf(request);
    const isOwn =
      question !== undefined && isProof(request.headers[header.proof], proofOf(this.#secret, question));
    if (!isOwn) {
      response.writeHead(403).end();
      return;
    }
    this.#askedAt = this.#now();
    const sizeBytes = this.#files.sizeOf(question.key);
    if (sizeBytes === undefined) {
      response.writeHead(404).end();
      return;
    }
    response.setHeader(header.size, String(sizeBytes));
    response.setHeader(header.proof, proofOf(this.#secret, question, sizeBytes));
    if (question.method === 'HEAD') {
      response.end();
      return;
    }
    const length = Math.max(0, Math.min(question.end, sizeBytes) - question.start);
    response.setHeader('content-length', String(length));
    // What cannot be read, or is not taken, breaks off short of its length.
    await pipeline(Readable.from(this.#files.read(question.key, question)), response).catch(() => {
      response.destroy();
    });
  }
}

function questionOf({ method, url, headers }: IncomingMessage): Question | undefined {
  const nonce = headers[header.nonce];
  const range = headers[header.range];
  const [, start, end] = /^(\d{1,16})-(\d{1,16})$/.exec(typeof range === 'string' ? range : '') ?? [];
  if ((method !== 'GET' && method !== 'HEAD') || url === undefined || typeof nonce !== 'string')
    return undefined;
  if (start === undefined || end === undefined) return undefined;
  return { method, key: url.slice(1), start: Number(start), end: Number(end), nonce };
}
