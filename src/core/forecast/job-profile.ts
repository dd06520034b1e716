/** How a stage waits for one that it reads. */
export interface ProfiledInput {
  /** Index of the stage that is read, below the reader's own. */
  readonly stage: number;
  /**
   * Whether no task starts before all of that stage have ended (all-to-all, broadcast). Else task i of n waits for the
   * tasks whose share of theirs overlaps its own: its namesake where both have as many.
   */
  readonly isBarrier: boolean;
}

/** What a slot had run before an attempt: nothing of the job, nothing of the stage, or an attempt of the stage. */
export const slotPasts = ['cold', 'first', 'later'] as const;
export type SlotPast = (typeof slotPasts)[number];

/** Run times of a stage's attempts, ascending, in ms, by what their slot had run before. At least one in all. */
export type RunTimes = Readonly<Record<SlotPast, readonly number[]>>;

/** What one run of the job, or several alike, tell of a stage. */
export interface ProfiledRun {
  /** Slots that the job had: with more of them tasks contend for disks and links, and run longer. At least 1. */
  readonly slots: number;
  readonly times: RunTimes;
}

/** What earlier runs of a job tell of one of its stages. */
export interface StageProfile {
  readonly name: string;
  /** At least one. */
  readonly tasks: number;
  readonly inputs: readonly ProfiledInput[];
  /** At least one, ascending by slots. */
  readonly runs: readonly ProfiledRun[];
  /** Times from a slot's grant to the begin of an attempt (queue, start), ascending, in ms; none: 0. */
  readonly queueMs: readonly number[];
  /** Share of attempts that wait so, above 0: the others ride behind another on its worker. Absent: all do. */
  readonly queuedShare?: number;
  /** Share of attempts that fail, below 1. */
  readonly failureShare: number;
}

/** What earlier runs of a recurring job tell of it: the input of the job simulator (Jockey, §4.1). */
export interface JobProfile {
  /** In topological order; at least one. */
  readonly stages: readonly StageProfile[];
}
