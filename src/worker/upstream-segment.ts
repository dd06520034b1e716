import type { ObjectRef } from '../contracts/keys.ts';

/** A piece of the output of an upstream attempt. */
export interface UpstreamSegment {
  readonly ref: ObjectRef;
  readonly offset: number;
  readonly length: number;
  readonly crc: number;
  /** Not the task's own: it reads its begin alone, for what that says of all. */
  readonly isHead?: true;
  /** Who wrote it, for messages: `map/3/0`. */
  readonly producer: string;
}
