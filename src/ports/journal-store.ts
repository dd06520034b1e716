import type { JobId } from '../contracts/ids.ts';
import type { EpochMs } from '../contracts/units.ts';

/** A piece of what one scheduler of a job has written down: text in ASCII, which only all of its pieces make whole. */
export interface JournalPiece {
  /** The epoch of the scheduler's lease: no two have the same. */
  readonly epoch: number;
  /** From 0, without gaps. */
  readonly number: number;
  readonly text: string;
}

/**
 * What schedulers have learned and decided, tick by tick, so that it can be gone through again later. Good to know and
 * nothing more: no scheduler reads it. Kept for as long as the decision log is.
 */
export interface JournalStore {
  /** Written once: the same piece again has no effect. */
  append(jobId: JobId, piece: JournalPiece, now: EpochMs): Promise<void>;
  /** Pieces by epoch and number, after `after` if it is given; at most as many as an answer of the API holds. */
  page(
    jobId: JobId,
    after?: PiecePlace,
  ): Promise<{ readonly pieces: readonly JournalPiece[]; readonly isLast: boolean }>;
}

export type PiecePlace = Pick<JournalPiece, 'epoch' | 'number'>;
