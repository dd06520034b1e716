import type { AttemptId, JobId } from '../contracts/ids.ts';
import type { PolicyName } from '../contracts/policy-names.ts';
import type { CopyOutput, LaunchReason } from '../core/model/decision.ts';
import type { StageClones } from '../core/model/job-view.ts';
import type { LossCounts } from '../core/policy/mantri/loss-rate.ts';
import type { Ending } from './sim-worker.ts';

/** One delivery of an attempt, from taking its slot to leaving it. Times in milliseconds from the start. */
export interface AttemptOutcome {
  readonly attemptId: AttemptId;
  readonly stage: number;
  readonly task: number;
  readonly number: number;
  /** Undefined where the scheduler took its launch back. */
  reason: LaunchReason | undefined;
  readonly node: string;
  readonly zone: number;
  readonly takenAtMs: number;
  readonly claimedAtMs: number | undefined;
  readonly leftAtMs: number;
  readonly ending: Ending;
}

/** A stage that ran. */
export interface StageOutcome {
  readonly name: string;
  readonly tasks: number;
  /** Places of the stages that it reads. */
  readonly upstream: readonly number[];
  /** How it was cloned; undefined where it was not. */
  readonly clones: StageClones | undefined;
  readonly openedAtMs: number | undefined;
  readonly doneAtMs: number | undefined;
  /** For each task, from the first claim of any of its attempts to its result; tasks without one are left out. */
  readonly taskMs: readonly number[];
}

/**
 * An output that its scheduler found gone. `by`: the reader that missed it; undefined where it was found before any did.
 * `use`: the attempt whose copy took its place; undefined where none did.
 */
export interface LostOutputOutcome {
  readonly attemptId: AttemptId;
  readonly atMs: number;
  readonly by: AttemptId | undefined;
  readonly use: number | undefined;
}

/** A job that ended. */
export interface JobOutcome {
  readonly jobId: JobId;
  readonly index: number;
  readonly name: string;
  readonly policy: PolicyName;
  readonly state: 'succeeded' | 'failed';
  readonly error: string | undefined;
  readonly tasks: number;
  readonly arrivedAtMs: number;
  /** When its first attempt claimed itself. */
  readonly startedAtMs: number | undefined;
  /** When its last task was committed; of a failed job, when it failed. */
  readonly completedAtMs: number;
  /** The one that it had when it ended, since its arrival. */
  readonly deadlineMs: number | undefined;
  /** Slots that it asked to be its own for its deadline, from a time on. */
  readonly asked: readonly { readonly atMs: number; readonly slots: number }[];
  readonly stages: readonly StageOutcome[];
  readonly attempts: readonly AttemptOutcome[];
  /** Outputs that were found gone, and decided upon, in that order. */
  readonly lostOutputs: readonly LostOutputOutcome[];
  /** Outputs that were copied, for their worth or in a spell of losses. */
  readonly copiedOutputs: readonly Pick<CopyOutput, 'attemptId' | 'bytes' | 'reason'>[];
  /** Attempts that were launched, and those of them that were given up before any worker took them up. */
  readonly launches: { readonly made: number; readonly unclaimed: number };
  /** Workers that were started for them: one may do several, one after the other. */
  readonly invocations: number;
  readonly dollars: number;
}

/** A run of a scenario. */
export interface SimulationResult {
  readonly scenario: string;
  readonly seed: string;
  readonly totalSlots: number;
  readonly jobs: readonly JobOutcome[];
  readonly events: number;
  /** Environments that were started anew for an attempt, where the cluster has any that are cold. */
  readonly coldStarts: number;
  readonly endedAtMs: number;
  /** What jobs that have ended have seen of outputs at each machine, with what was seen before. */
  readonly seenLosses: ReadonlyMap<string, LossCounts>;
  /** One line per event, where asked for. */
  readonly trace: readonly string[];
}
