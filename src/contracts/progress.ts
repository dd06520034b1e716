import type { RequestTally } from './requests.ts';
import type { TakenUp } from './saved-work.ts';

/** The clocks of an attempt, one per phase: nothing is ever compared from submission time (design §6.5). */
export const phases = ['init', 'read', 'compute', 'write'] as const;
export type Phase = (typeof phases)[number];

/** What an attempt has done so far. */
export interface Progress {
  readonly bytesRead: number;
  /** All bytes that it will read; 0 while unknown. */
  readonly bytesTotal: number;
  /** What it reported before, as `historyOf` writes it; absent before its second report. */
  readonly history?: string | undefined;
  /** How far it was at each look of its worker at itself, as `historyOf` writes it: finer than its reports; absent before the first. */
  readonly looks?: string | undefined;
  readonly recordsIn: number;
  readonly recordsOut: number;
  readonly phase: Phase;
  /** Time spent in each phase so far. */
  readonly phaseMs: Readonly<Record<Phase, number>>;
  /** Largest resident memory seen, 0 where unknown. */
  readonly peakMemoryBytes: number;
  /** For how long its worker stood still, as far as it has noticed; absent where it did not. */
  readonly stalledMs?: number;
  /** What it has fetched of other stages' outputs; absent where it reads none. */
  readonly fetched?: Fetched;
  /** What its worker has asked of AWS so far, and logged; absent where nobody counts. */
  readonly requests?: RequestTally;
  /** Whether it can hand on what it has done where its time or place runs out; absent until it knows. */
  readonly handsOn?: boolean;
  /** Absent: it began at the begin. */
  readonly takenUp?: TakenUp;
}

/** Bytes fetched, and for how long at least one request was under way: their ratio is the bandwidth that a task gets. */
export interface Fetched {
  readonly bytes: number;
  readonly ms: number;
}
