import type { ObjectRef } from '../contracts/keys.ts';

/** A piece of the output of an upstream attempt. */
export interface UpstreamSegment {
  readonly ref: ObjectRef;
  readonly offset: number;
  readonly length: number;
  readonly crc: number;
  /** Who wrote it, for messages: `map/3/0`. */
  readonly producer: string;
}
