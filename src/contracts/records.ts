import type { AttemptId, JobId, TaskId } from './ids.ts';
import type { JobSpec } from './job-spec.ts';
import type { JobCosts, JobRequests, RequestTally } from './requests.ts';
import type { Progress } from './progress.ts';
import type { SavedWork } from './saved-work.ts';
import type { DurationMs, EpochMs } from './units.ts';

/**
 * Why an attempt failed. `bad-record`, `bad-input` and `access-denied` fail the job at once: a second attempt meets the same.
 * `unreadable`: its record cannot be read. `exited`: its worker's process ended before it was done. No failures of the task, and
 * not counted against it: `expired`, a launch that grew too old before any worker took it up, or whose task found no place on Fargate, `interrupted`, whose place was taken
 * away (Spot, an operator), `input-lost`, which has found an output of another stage gone or damaged: see `Failure.lost`, and
 * `declined`, which was handed to a node that its launch says to avoid: nothing of it ran.
 */
export const failureCauses = [
  'user-code',
  'bad-record',
  'bad-input',
  'out-of-memory',
  'timeout',
  'storage',
  'internal',
  'access-denied',
  'unreadable',
  'exited',
  'expired',
  'interrupted',
  'input-lost',
  'declined',
] as const;
export type FailureCause = (typeof failureCauses)[number];

export interface Failure {
  readonly cause: FailureCause;
  /** One line for people; names file and line where there is one. */
  readonly message: string;
  /** Of `input-lost`: the outputs that are gone or damaged, at most `limits.lostPerReport`. */
  readonly lost?: readonly LostOutput[];
  /** Of `timeout`: what kept it from its end, or from handing on its work, need not come again; see `Stopped`. */
  readonly mayPass?: true;
}

/** Why an attempt comes to nothing whose worker is on a node that its launch says to avoid. */
export const declinedOn = (node: string): Failure => ({
  cause: 'declined',
  message: `its node is to be avoided: ${node}`,
});

/** Whether a failure is of a launch that no worker has taken up. */
export const neverBegan = ({ cause }: Failure): boolean => cause === 'expired' || cause === 'declined';

/** How an output is lost: not there, shorter than its index says, of other bytes, refused by S3 (perhaps not there), in a silent zone. */
export const lossKinds = ['missing', 'short', 'damaged', 'denied', 'unreachable'] as const;
export type LossKind = (typeof lossKinds)[number];

/** An output of another stage as a reader has found it: which attempt wrote it, and the bytes that were asked for. */
export interface LostOutput {
  readonly attemptId: AttemptId;
  readonly how: LossKind;
  readonly offset: number;
  readonly length: number;
  readonly crc: number;
}

/**
 * `launched` is written by the scheduler before it launches; the worker writes the rest, but `lost`: its worker is gone,
 * or taken for gone. With a failure where the platform has told what became of it.
 */
export type AttemptState = 'launched' | 'running' | 'done' | 'failed' | 'cancelled' | 'lost';

/** What an attempt is told when it reports. */
export type AttemptOrder = 'continue' | 'cancel';

/**
 * The upload of an output part, as its attempt notes it down before it sends a byte: whoever ends the job takes back
 * what is noted here and nothing else, since the bucket is not the job's alone. Its key follows from the task.
 */
export interface NotedUpload {
  /** When the attempt was about to begin it. */
  readonly since: EpochMs;
  /** Absent until it has begun, and for ever where the attempt died just then. */
  readonly uploadId?: string;
}

/** An attempt as the store holds it. */
export interface AttemptRecord {
  readonly attemptId: AttemptId;
  readonly state: AttemptState;
  readonly order: AttemptOrder;
  readonly launchedAt: EpochMs;
  readonly claimedAt?: EpochMs;
  readonly endedAt?: EpochMs;
  /** Execution environment (Lambda log stream, Fargate task ARN) and zone, known once claimed. */
  readonly node?: string;
  readonly zone?: string;
  /** What of the platform runs it: the request id of the invocation, or the ARN of the task; known once claimed, or dead. */
  readonly invocation?: string;
  readonly progress?: Progress;
  readonly failure?: Failure;
  readonly saved?: SavedWork;
  /** The upload of its part of the job's output, where it has begun one. */
  readonly upload?: NotedUpload;
  /** When it was found that its part of the job's output is gone, though its task has a result; absent: it was not. */
  readonly outputLostAt?: EpochMs;
  /** How often its worker has written it, 0 before its claim: whether there is news is told by this and by no clock. */
  readonly beat: number;
  /** When its worker last wrote it, by the worker's own clock, so that only that clock's other times compare with it. */
  readonly reportedAt?: EpochMs;
  /** How long after that write its worker writes again at the latest; absent where it did not say. */
  readonly nextMs?: DurationMs;
}

/**
 * An attempt as it stands beside the result of its task: one whose own result says what it has done in all has ended
 * with it, and writes no end besides.
 */
export function endedByResult(attempt: AttemptRecord, result: TaskResult | undefined): AttemptRecord {
  if (attempt.state !== 'running' || result?.attemptId !== attempt.attemptId) return attempt;
  const { progress, committedAt } = result;
  if (progress === undefined) return attempt;
  const beat = attempt.beat + 1;
  return { ...attempt, state: 'done', beat, progress, reportedAt: committedAt, endedAt: committedAt };
}

/** Length in bytes and CRC-32 of each partition of one attempt's output, in partition order. */
export interface PartitionIndex {
  readonly lengths: Numbers;
  readonly crcs: Numbers;
}

/** A list of numbers, perhaps in as few bytes as they take. */
export type Numbers = readonly number[] | Readonly<Uint32Array> | Readonly<Float64Array>;

/** A multipart upload that waits for Finish to complete it; `empty` and `inline` parts, which are small, are put by Finish. */
export type FinalPart =
  | {
      readonly kind: 'upload';
      readonly uploadId: string;
      readonly parts: readonly { readonly number: number; readonly etag: string }[];
      readonly sizeBytes: number;
    }
  | { readonly kind: 'inline'; readonly body: Uint8Array }
  | { readonly kind: 'empty' };

/** Bytes of a final part. */
export function finalSizeBytes(part: FinalPart): number {
  if (part.kind === 'upload') return part.sizeBytes;
  return part.kind === 'inline' ? part.body.byteLength : 0;
}

/** What the first attempt of a task to commit leaves. */
export interface TaskResult {
  readonly taskId: TaskId;
  readonly attemptId: AttemptId;
  readonly committedAt: EpochMs;
  /** Present for stages that other stages read. */
  readonly partitions?: PartitionIndex;
  /** Where its output is; without both: in the data bucket. See `OutputPlace`. */
  readonly zone?: string;
  readonly worker?: string;
  /** Present for the final stage. */
  readonly final?: FinalPart;
  readonly bytesIn: number;
  readonly bytesOut: number;
  readonly recordsIn: number;
  readonly recordsOut: number;
  /** Sums that operators count under a name, such as `skippedRecords`. */
  readonly counters: Readonly<Record<string, number>>;
  /** What its attempt has done in all. With it the attempt has ended well; absent: it records its end by itself. */
  readonly progress?: Progress;
}

/** A record of a job's attempts that cannot be read: it is named, counted and set aside. */
export interface UnreadableRecord {
  /** Where it lies in the store. */
  readonly key: string;
  readonly kind: 'attempt' | 'result' | 'replica' | 'unknown';
  /** The attempt or task that the key names; absent where it names none. */
  readonly attemptId?: AttemptId;
  readonly taskId?: TaskId;
  /** What is wrong with it, in one line. */
  readonly why: string;
  /** Of an attempt: whether a worker may still be at it. */
  readonly mayWork: boolean;
  /** Of an attempt: the upload that it has noted, which somebody has to give up. */
  readonly uploadId?: string;
}

export type JobRecordState = 'submitted' | 'running' | 'succeeded' | 'failed' | 'cancelled';
export const finalJobStates: readonly JobRecordState[] = ['succeeded', 'failed', 'cancelled'];

/** Progress of one stage, for status and reports. */
export interface StageSummary {
  readonly name: string;
  readonly operator: string;
  readonly tasks: number;
  readonly done: number;
  /** Attempts that work and were not told to stop. */
  readonly running: number;
  readonly failed: number;
  readonly bytesIn: number;
  readonly bytesOut: number;
  readonly recordsIn: number;
  readonly recordsOut: number;
  readonly startedAt?: EpochMs;
  readonly endedAt?: EpochMs;
  /** Sum of the run times of all its attempts. */
  readonly workerMs: number;
  /** Fraction of the stage's work that is done, in [0, 1], running attempts included. */
  readonly progress: number;
}

/** Counts over the attempts of a job, named as `run --json` names them (design §8). */
export interface AttemptCounts {
  readonly launched: number;
  readonly backups: number;
  readonly clones: number;
  readonly restarts: number;
  readonly cancelled: number;
  readonly lost: number;
  /** Handed to a node that is to be avoided, whose worker did not take them up. They are not among the lost. */
  readonly declined: number;
  /** Launched since the output of an earlier attempt of their task was gone. */
  readonly recomputed: number;
}

export interface JobError {
  /** A name of `ErrorName`. */
  readonly name: string;
  readonly message: string;
}

/** What a forecast rests on: earlier runs of the job, jobs like it, its own first tasks, or nothing. */
export const forecastBases = ['profile', 'similar', 'first-wave', 'nothing'] as const;
export type ForecastBasis = (typeof forecastBases)[number];

/** What a running job is expected to come to, as its scheduler saw it at `at`. */
export interface JobForecast {
  readonly at: EpochMs;
  readonly basis: ForecastBasis;
  /** Finished runs that it rests on. */
  readonly runs: number;
  /** When the job is expected to end, with the slots that it has; absent where nothing can be said. */
  readonly expectedEndAt?: EpochMs;
  /** How likely it ends by its deadline, in [0, 1]; absent where it has none, or nothing can be said. */
  readonly probability?: number;
  /** Slots that it asks to be its own, for its deadline. */
  readonly slotsWanted?: number;
}

/** Outputs that a job has copied, lest they be lost: their number and bytes, and the bytes that it may copy by its tokens. */
export interface JobCopies {
  readonly outputs: number;
  readonly bytes: number;
  readonly tokens: number;
}

/** A job as the store holds it. */
export interface JobRecord {
  readonly jobId: JobId;
  readonly name: string;
  readonly spec: JobSpec;
  /** SHA-256 of the spec, hex: tells a repeated submission from another job under the same client token. */
  readonly specDigest: string;
  readonly state: JobRecordState;
  readonly createdAt: EpochMs;
  readonly startedAt?: EpochMs;
  readonly endedAt?: EpochMs;
  readonly deadlineAt?: EpochMs;
  readonly cancelRequestedAt?: EpochMs;
  /** When its execution was last seen to run by who asked about a job without a sign of life, and when first not to be there. */
  readonly seenAt?: EpochMs;
  readonly missingSince?: EpochMs;
  /** When it asked for a scheduler and all were full; when one took it on at last, never before it asked. Absent: it did not wait. */
  readonly waitingSince?: EpochMs;
  readonly scheduledAt?: EpochMs;
  /** When it was looked for what it had left, long after its end: there is nothing more to look for. */
  readonly clearedAt?: EpochMs;
  /** Number of store partitions, once planned. */
  readonly shards?: number;
  /** Which plan the job runs by, once planned. */
  readonly planNonce?: string;
  /** When all parts of the output were there: from then on the job is not failed any more but brought to its end. */
  readonly publishingAt?: EpochMs;
  readonly error?: JobError;
  /** Of the slots that its spec asks to be its own, those that are; absent where it asks for none. */
  readonly guaranteedSlots?: number;
  /** Absent where it has copied none. */
  readonly copies?: JobCopies;
  /** Absent until its scheduler has looked. */
  readonly forecast?: JobForecast;
  /** URI of the output prefix, once submitted. */
  readonly output: string;
  /** Where its intermediate data is; absent: on `standard`. */
  readonly storage?: JobSpec['storage'];
  readonly stages: readonly StageSummary[];
  readonly attempts: AttemptCounts;
  readonly counters: Readonly<Record<string, number>>;
  readonly workerMs: number;
  /** What it has cost at list prices: the sum of `costs`. */
  readonly dollars: number;
  /** Requests of workers and coordinator, as they were counted where they were made; absent before the first counts. */
  readonly requests?: JobRequests;
  readonly costs?: JobCosts;
  /** What the coordinator's functions have counted, each on top of those before it: a part of `requests`. */
  readonly coordination?: RequestTally;
  /** Output parts, once all are there, where they are few; the list of any number is in the output's `_SUCCESS`. */
  readonly parts: readonly OutputPart[];
  /** How many parts there are and their bytes, once all are there. */
  readonly partTotals?: PartTotals;
  /** Fields that are stored but cannot be read, and are shown as if there were nothing yet; absent: none. */
  readonly unreadable?: readonly string[];
}

/** An object of a job's output. */
export interface OutputPart {
  readonly key: string;
  readonly sizeBytes: number;
}

export interface PartTotals {
  readonly count: number;
  readonly sizeBytes: number;
}

export const noAttempts: AttemptCounts = {
  launched: 0,
  backups: 0,
  clones: 0,
  restarts: 0,
  cancelled: 0,
  lost: 0,
  declined: 0,
  recomputed: 0,
};

/** What must be known of a job in order to end it. */
export type EndingJob = Pick<
  JobRecord,
  | 'jobId'
  | 'state'
  | 'output'
  | 'storage'
  | 'shards'
  | 'planNonce'
  | 'publishingAt'
  | 'startedAt'
  | 'cancelRequestedAt'
  | 'missingSince'
>;

/** What a job has come to before anything of it has run. */
export const nothingYet = {
  stages: [],
  attempts: noAttempts,
  counters: {},
  workerMs: 0,
  dollars: 0,
  parts: [],
} as const satisfies Partial<JobRecord>;

/** The decision log's entry number `version` of a job (from 1). */
export interface LogEntry {
  readonly version: number;
  readonly epoch: number;
  readonly at: EpochMs;
  /** Decisions and refusals of one tick, as `core/model/decision.ts` defines them. */
  readonly decisions: readonly unknown[];
}
