import type { JudgedTask } from './judge.ts';

/** What another copy of a task is expected to bring and to take. */
export interface Worth {
  /** By how much sooner the task ends. */
  readonly savedMs: number;
  /** Slot time that it takes in all, beyond what the task takes without it; negative: it saves some. */
  readonly extraMs: number;
  /** Mean time of a new copy. */
  readonly newMs: number;
}

/**
 * Weighs another copy of a task, of which all copies stop as soon as one has ended: by the least time that it has left,
 * so that what is not known well is not bet on, over all that a new copy may take.
 *
 * Source: Mantri §5.1 (c copies that go on cost c · t_rem of slot time, one more makes it (c + 1) · t_new), with the
 * expectation in place of a probability.
 */
export function worthOf({ leastRemMs, newMs, copies }: JudgedTask): Worth {
  const count = Math.max(1, newMs.length);
  const endMs = newMs.reduce((sum, ms) => sum + Math.min(leastRemMs, ms), 0) / count;
  return {
    savedMs: leastRemMs - endMs,
    extraMs: (copies.length + 1) * endMs - copies.length * leastRemMs,
    newMs: newMs.reduce((sum, ms) => sum + ms, 0) / count,
  };
}
