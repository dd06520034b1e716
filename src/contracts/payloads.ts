import * as z from 'zod';
import { type AttemptId, jobIdPattern, type JobId, parseJobId } from './ids.ts';
import { jobSpecSchema } from './job-spec.ts';
import { limits } from './limits.ts';
import { savedOfSchema } from './saved-work.ts';

const jobId = z
  .string()
  .regex(jobIdPattern)
  .transform((id) => id as JobId);

/** Input of every state of the job's state machine, and of its execution. */
export const jobInputSchema = z.looseObject({ jobId });

/** Input of the scheduler: a job, and the token to which its outcome is answered. */
export const scheduleInputSchema = z.looseObject({ jobId, taskToken: z.string().min(1) });

/** Input of the state that records a failure: the execution's input and what Catch added. */
export const failInputSchema = z.looseObject({
  jobId,
  error: z.object({ Error: z.string(), Cause: z.string().default('') }).optional(),
});

/** Input of the function that computes forecasts: the name of recurring jobs. */
export const forecastInputSchema = z.looseObject({ name: jobSpecSchema.shape.name });

/** Name of the execution that removes what a job left which has ended on record: within the 80 characters of a name. */
export const endingOf = (id: JobId): string => `${id}${endingMark}`;
const endingMark = '-end';

/** What EventBridge tells of an execution that has not ended well. */
const executionEndSchema = z.looseObject({
  name: z.string(),
  status: z.enum(['ABORTED', 'FAILED', 'TIMED_OUT']),
  error: z.string().nullish(),
  cause: z.string().nullish(),
});
export type ExecutionEnd = z.output<typeof executionEndSchema>;

/** An event of the type "Step Functions Execution Status Change", as the rule lets it through. */
export const executionEventSchema = z.looseObject({ detail: executionEndSchema });

/** The job that an execution is for, by its name; undefined for one that somebody started for no job. */
export const jobOfExecution = ({ name }: Pick<ExecutionEnd, 'name'>): JobId | undefined =>
  parseJobId(name.endsWith(endingMark) ? name.slice(0, -endingMark.length) : name);

/** What a scheduler has come to with a job; the state machine hears of `finish` alone. */
export interface ScheduleOutput {
  readonly jobId: JobId;
  /** `continue`: enter the scheduler again; `finish`: every task is committed. */
  readonly outcome: 'continue' | 'finish';
}

const attemptId = z.string().transform((id) => id as AttemptId);
/** For each input of the stage: the bytes of its manifest that hold a task's line. */
const inputs = z.array(z.object({ key: z.string(), start: z.number(), end: z.number() }));
/** Replicas that an attempt reads in place of winners' outputs: by stage and task, the number of the attempt that wrote it. */
const copies = z
  .record(
    z.string(),
    z.record(
      z.string(),
      // With the place where it is (`OutputPlace`), where that is not the data bucket.
      z.union([
        z.int().min(0),
        z.object({
          attempt: z.int().min(0),
          zone: z.string().exactOptional(),
          worker: z.string().exactOptional(),
        }),
      ]),
    ),
  )
  .optional();

/** What an earlier attempt of the same task has handed on; absent: it begins at the begin. */
const saved = savedOfSchema.optional();

/** What a worker gets: ids and S3 keys only, well under the 1 MB of an asynchronous invocation. */
export const attemptPayloadSchema = z.object({
  jobId,
  attemptId,
  /** The word by which the worker finds the job's session. */
  access: z
    .string()
    .regex(/^[0-9a-f]{32}$/)
    .optional(),
  /** Number of store partitions of the job. */
  shards: z.int().min(1),
  /** Key of the stage's description in the data bucket. */
  stageKey: z.string(),
  inputs,
  /** Longest time between two progress records. */
  heartbeatMs: z.number().positive(),
  copies,
  saved,
  /** Whether its output is kept as a replica where another attempt of its task has won. */
  keepOutput: z.boolean().optional(),
  /** The attempt whose result its own replaces, since its output is gone. Absent: the first result of its task counts. */
  replaces: attemptId.optional(),
  /** Attempts of the same stage that the worker takes up after this one, in turn, each by a claim of its own. */
  next: z.array(z.object({ attemptId, inputs, copies, saved })).max(limits.ridersPerLaunch).optional(),
  /**
   * Attempts of the same stage that are launched by the same call, one task for each: every task gets all of them, and
   * takes the first that nobody has claimed, `attemptId` before these.
   */
  batch: z
    .array(z.object({ attemptId, inputs, copies, saved }))
    .max(limits.launchesPerCall - 1)
    .optional(),
  /** Time of its environment that a worker must have left to take up another. */
  nextTakesMs: z.number().min(0).optional(),
  /**
   * Nodes that are not to run it. A worker on one of them declines, and keeps its node busy for so long, since whoever
   * is idle is handed the next launch. Absent: any node will do.
   */
  avoid: z
    .object({
      nodes: z.array(z.string().max(limits.nodeChars)).max(limits.avoidedNodes),
      holdMs: z.number().min(0).max(limits.declineHoldMs),
    })
    .optional(),
});

export type AttemptPayload = z.output<typeof attemptPayloadSchema>;
