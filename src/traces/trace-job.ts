/** Where something lay or ran: a rack (Outrider's zone) and a machine in it. */
export interface TracePlace {
  readonly zone: string;
  readonly node: string;
}

/** How an attempt ended. `killed`: a losing copy, or a casualty of its failed job. */
export type TraceOutcome = 'succeeded' | 'failed' | 'killed';

/** One recorded execution of a task. */
export interface TraceAttempt {
  readonly outcome: TraceOutcome;
  /** On the clock of `TraceJob.submittedAtMs`. */
  readonly startedAtMs?: number;
  /** From start to end, waiting for upstream data included. */
  readonly durationMs?: number;
  /** The part of `durationMs` in which a reduce fetched its input. */
  readonly shuffleMs?: number;
  /** The part of `durationMs` in which a reduce merged its input. */
  readonly sortMs?: number;
  readonly zone?: string;
  readonly node?: string;
}

/** What a slot had run before a task: nothing of the job, nothing of the stage, or a task of the stage. */
export type TraceSlotPast = 'cold' | 'first' | 'later';

/**
 * A unit of work. Absent fields are unknown, never zero. Readers may put one object at many places of
 * `TraceStage.tasks` where a trace tells tasks apart by nothing.
 */
export interface TraceTask {
  /** Time of its work on one slot, waiting for upstream data excluded. */
  readonly workMs?: number;
  readonly inputBytes?: number;
  readonly outputBytes?: number;
  /** What its slot had run before. */
  readonly slotPast?: TraceSlotPast;
  /** The rack where it ran, where the trace names no machine. */
  readonly zone?: string;
  /** Where the replicas of its input lie. */
  readonly inputPlaces?: readonly TracePlace[];
  /** In order of attempt number. */
  readonly attempts?: readonly TraceAttempt[];
}

/** Tasks that run the same code on different data. */
export interface TraceStage {
  /** Unique in its job. */
  readonly name: string;
  /** At least one. */
  readonly tasks: readonly TraceTask[];
  /** Indexes, ascending, of the stages that must end before this one starts; all below its own index. */
  readonly upstream: readonly number[];
}

/** One job of a trace, in the shape that all readers share. */
export interface TraceJob {
  /** Unique in its trace. */
  readonly id: string;
  /** Milliseconds on the trace's own clock, whose zero means nothing; absent where arrivals are unknown. */
  readonly submittedAtMs?: number;
  /** At least one, in topological order. */
  readonly stages: readonly TraceStage[];
}

/** Tasks of all stages of a job. */
export const taskCount = (job: TraceJob): number =>
  job.stages.reduce((sum, stage) => sum + stage.tasks.length, 0);
