import type { DurationMs, EpochMs } from '../contracts/units.ts';

/**
 * The part of a worker that keeps outputs for other workers (the tier `worker-local`), on its disk and for as long as the
 * worker lives. They are written and read through the worker's `ObjectStore`, in the bucket that stands for its address.
 */
export interface OutputKeeper {
  /** Begins to answer readers, once; the address at which it does, or undefined where it cannot. Never throws. */
  open(): Promise<string | undefined>;
  /** Keys of what is kept. */
  keys(): readonly string[];
  /** When it was last asked for anything by one of its job; undefined: never. */
  readonly askedAt: EpochMs | undefined;
  /**
   * Takes no more readers, lets the answers that are under way go on for at most `answersMs`, by default not at all, and then
   * removes what is kept. Never throws.
   */
  close(answersMs?: DurationMs): Promise<void>;
}
