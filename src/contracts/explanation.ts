import * as z from 'zod';
import { cancelReasons, launchReasons } from './decision-log.ts';
import { failureCauses } from './records.ts';

/** Whole milliseconds since the Unix epoch, by the clock of whoever wrote it. */
const instant = z.int();
/** Milliseconds. */
const length = z.number().min(0);
const numbers = z.record(z.string(), z.number());

/**
 * What took time, from a closed union. `before-launch`: from the opening of its stage to its first launch, for want of a
 * slot or of dollars; `earlier-failed`: attempts before the one that decides had failed or were lost; `copied`: an attempt
 * before it lagged, and a copy was made; `output-lost`: one before it had won, and its output was lost; `waits-again`: its last attempt had
 * failed or was lost, and the next was not launched by now, or by the job's end; `ride`: it waited in its worker behind other tasks; `host-wait`: in the host's
 * queue, or for its environment to start; `more-input`: more to read than its siblings; `slow-start`, `slow-read`,
 * `slow-compute`, `slow-write`: one phase, by no fault of its node that could be shown; `stood-still`: its worker did
 * nothing for a while, as it has noticed itself; `slow-node`: its node, by evidence; `own-work`: as slow elsewhere; `unexplained`: slow, and nothing in the records tells why.
 */
export const explainedCauses = [
  'before-launch',
  'earlier-failed',
  'copied',
  'output-lost',
  'waits-again',
  'launch-refused',
  'ride',
  'host-wait',
  'more-input',
  'slow-start',
  'slow-read',
  'slow-compute',
  'slow-write',
  'stood-still',
  'slow-node',
  'own-work',
  'unexplained',
] as const;

/**
 * What shows that a node is slow. `every-phase`: also its start, which reads no input, took as many times longer, and computing more than half as long again, or for the
 * first attempt on a node, that all took three times as long as first attempts on other nodes;
 * `other-tasks`: other tasks were slow there, too; `same-task`: the same task took its usual time on another node.
 */
export const nodeEvidence = ['every-phase', 'other-tasks', 'same-task'] as const;

const causeSchema = z.strictObject({
  kind: z.enum(explainedCauses),
  /** Time that it cost; absent where the records do not tell how much. */
  ms: length.exactOptional(),
  /** The attempt that it befell. */
  attemptId: z.string(),
  node: z.string().exactOptional(),
  evidence: z.array(z.enum(nodeEvidence)).exactOptional(),
  /** The numbers by which it was told from the other causes, with their units in their names. */
  facts: numbers,
});

/**
 * `won`: the task has its result; `second`: it was done after another; `again`: it has made an output again that was
 * lost after another had won; `stopped`: it was told to, or lost the race;
 * `open`: it runs, waits to begin, or had not answered to an order to stop when it was seen last.
 */
const attemptEnd = z.enum(['won', 'second', 'again', 'stopped', 'failed', 'lost', 'open']);

const attemptSchema = z.strictObject({
  attemptId: z.string(),
  /** Why it was launched; null where the log does not say. */
  reason: z.enum(launchReasons).nullable(),
  end: attemptEnd,
  /** Why it was told to stop; absent where it was not, or the log does not say. */
  stopReason: z.enum(cancelReasons).exactOptional(),
  failure: z.strictObject({ cause: z.enum(failureCauses), message: z.string() }).exactOptional(),
  /** Why it was given up where no failure is recorded. */
  givenUp: z.string().exactOptional(),
  launchedAt: instant,
  claimedAt: instant.exactOptional(),
  endedAt: instant.exactOptional(),
  /** From launch to claim; `rideMs` of it behind other attempts in the same worker. Absent: it never began. */
  waitMs: length.exactOptional(),
  rideMs: length.exactOptional(),
  /** From launch until now, or to the job's end, of one that no worker took up by then. */
  unclaimedMs: length.exactOptional(),
  /** From claim to end, or to its last report. */
  runMs: length.exactOptional(),
  phaseMs: z.strictObject({ init: length, read: length, compute: length, write: length }).exactOptional(),
  bytesRead: z.number().exactOptional(),
  bytesTotal: z.number().exactOptional(),
  /** The attempt whose work it took up, and the bytes of input that were done; it did only the rest. */
  takenUp: z.strictObject({ attempt: z.int(), bytes: z.number() }).exactOptional(),
  node: z.string().exactOptional(),
  zone: z.string().exactOptional(),
  /** Its run time over what is usual in its stage for its input; foretold by what it had read where it did not end, unless it was young. */
  slowness: z.number().exactOptional(),
  /** The numbers by which its launch was decided. */
  facts: numbers,
});

const taskSchema = z.strictObject({
  taskId: z.string(),
  /** The first attempt whose result counted, though its output may have been lost later; null where there is none. */
  winner: z.string().nullable(),
  /** Whether an attempt that its time went to took, or was to take, more than 1.5 times the usual; not one that came second. */
  straggler: z.boolean(),
  /** From the opening of its stage to its end, or to what was seen last. */
  totalMs: length,
  /** Where its time went beyond what is usual, in the order in which it did. */
  causes: z.array(causeSchema),
  attempts: z.array(attemptSchema),
});

/**
 * Why nobody can say what is usual in a stage, from a closed union: it has too few tasks; too few have won; too few of those
 * that won had anything to read; or too few were timed in all of their work, and did not go on with that of another.
 */
export const notUsualReasons = ['few-tasks', 'few-won', 'few-reading', 'few-timed'] as const;

const stageSchema = z.strictObject({
  stage: z.string(),
  tasks: z.int(),
  done: z.int(),
  /**
   * Medians over attempts that won, read something where others did, and did all of their task; null of fewer than three:
   * what is usual cannot be said.
   */
  usual: z
    .strictObject({
      tasks: z.int(),
      runMs: length,
      waitMs: length,
      bytes: z.number(),
      phaseMs: z.strictObject({ init: length, read: length, compute: length, write: length }),
    })
    .nullable(),
  /** Of what there are too few, where `usual` is null. */
  notUsual: z.enum(notUsualReasons).exactOptional(),
  /** The task over which the job failed, else the one that ended last; null where none has. */
  last: z.string().nullable(),
  /** How many stragglers it has. */
  stragglers: z.int(),
  /** The tasks that are told of: the one asked for, else the last one and the worst stragglers. */
  told: z.array(taskSchema),
});

/**
 * What takes time on the way of a job from its submission to its end, one after the other. `before-launch`: of an attempt, or
 * without one of a stage of which nothing was launched; `wait`: while no attempt was at work, of a job that goes on, or after
 * an attempt that came to nothing, whose task had no other by the job's end; `end`: of one that has ended.
 */
export const spanKinds = [
  'plan',
  'before-launch',
  'earlier-attempts',
  'ride',
  'host-wait',
  'run',
  'wait',
  'end',
] as const;

/**
 * What `outrider explain --json` prints. `outrider` and its version may add fields; those that are here keep their names
 * and meanings.
 */
export const explanationSchema = z.strictObject({
  jobId: z.string(),
  state: z.string(),
  /** Why the job failed; null where it did not. */
  error: z.string().nullable(),
  /** The task (`stage/index`) over which it failed; absent where no task is named. */
  failedTask: z.string().exactOptional(),
  /**
   * When the job was to end, and whether it had succeeded by then: null where it may still, and by how much it ended
   * later, if it has ended. Null where it had no deadline.
   */
  deadline: z
    .strictObject({ at: instant, isMet: z.boolean().nullable(), lateMs: length.exactOptional() })
    .nullable(),
  /** What the job might cost, and by how much it has cost more. Null where it had no budget. */
  budget: z.strictObject({ dollars: z.number(), overDollars: z.number().exactOptional() }).nullable(),
  policy: z.string(),
  /** The stage or task that was asked about; null: the job. */
  about: z.string().nullable(),
  /** What the job's log holds of its decisions. `part`: its beginning is gone; `none`: all is; `unread`: see `why`. */
  log: z.strictObject({
    state: z.enum(['whole', 'part', 'none', 'unread']),
    why: z.string().exactOptional(),
  }),
  /** From submission to end, or until now. */
  wallMs: length,
  /** The critical path, whose times add up to `wallMs`; empty where a stage or task was asked about. */
  path: z.array(
    z.strictObject({
      kind: z.enum(spanKinds),
      ms: length,
      stage: z.string().exactOptional(),
      attemptId: z.string().exactOptional(),
      /** Of `earlier-attempts` of a task that is not done, or is to be done again: the attempt that was launched at its end. */
      to: z.string().exactOptional(),
    }),
  ),
  stages: z.array(stageSchema),
  /** Nodes shown to be slow, the slowest first. */
  slowNodes: z.array(
    z.strictObject({
      node: z.string(),
      evidence: z.array(z.enum(nodeEvidence)),
      slowness: z.number(),
      attempts: z.array(z.string()),
    }),
  ),
  /** What was done beyond first attempts, by time. `split`: the task's partition is read by several tasks, of which it is one. `place`: the stage's tasks have zones. `steer`: a first attempt was sent to a zone, since another is slow. `move`: one was launched on another worker than its stage's own, since it would outlast Lambda. `copy`: the attempt's output was to be copied, lest it be lost. `nothing-copied`: no output of the job is, since its storage is not expected to lose any. */
  actions: z.array(
    z.strictObject({
      at: instant,
      kind: z.enum([
        'retry',
        'recompute',
        'lose-output',
        'copy',
        'nothing-copied',
        'restart',
        'backup',
        'clone',
        'stop',
        'give-up',
        'decline',
        'clone-stage',
        'take-clones',
        'split',
        'place',
        'steer',
        'move',
        'slots',
      ]),
      /** Attempt, or stage. */
      of: z.string().exactOptional(),
      reason: z.string().exactOptional(),
      /** Where an attempt was sent, of which the zone was weighed. */
      zone: z.string().exactOptional(),
      /** What an attempt was launched on, kind and size, where that is not its stage's own worker. */
      worker: z.string().exactOptional(),
      /** Of `lose-output`: how it was lost, the attempt that found that, and the copy that is read instead, named as an attempt is. */
      how: z.string().exactOptional(),
      foundBy: z.string().exactOptional(),
      readInstead: z.string().exactOptional(),
      /** How the attempt ended. */
      end: attemptEnd.exactOptional(),
      /** The attempt, by its number, whose work it took up. */
      takenUp: z.int().exactOptional(),
      facts: numbers,
    }),
  ),
  /** What was considered and refused, by time: each task and reason once. */
  declined: z.array(
    z.strictObject({
      at: instant,
      task: z.string(),
      reason: z.string(),
      /** The zone that it is about, where it is about one. */
      zone: z.string().exactOptional(),
      facts: numbers,
    }),
  ),
  /** Attempts that failed or were lost, but for those that were declined. */
  failures: z.array(z.strictObject({ attemptId: z.string(), cause: z.string(), message: z.string() })),
  cost: z.strictObject({
    dollars: z.number(),
    /** What the dollars are made of. */
    costs: numbers,
    /**
     * Of the job; of attempts that won; of all others, as long as they were heard of; and what more they are billed at most:
     * those that were given up, or had not answered an order to stop. The last three are of what was asked about, and add up
     * to what that has cost.
     */
    workerMs: length,
    wonMs: length,
    otherMs: length,
    unheardMs: length,
  }),
});

export type Explanation = z.output<typeof explanationSchema>;
export type ExplainedStage = z.output<typeof stageSchema>;
export type ExplainedTask = z.output<typeof taskSchema>;
export type ExplainedAttempt = z.output<typeof attemptSchema>;
export type NotUsual = (typeof notUsualReasons)[number];
export type ExplainedCause = z.output<typeof causeSchema>;
export type PathSpan = Explanation['path'][number];
export type ToldAction = Explanation['actions'][number];
export type ToldRefusal = Explanation['declined'][number];
