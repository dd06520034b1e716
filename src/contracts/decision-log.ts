import * as z from 'zod';
import { UnreadableRecordError } from './errors.ts';
import { type AttemptId, attemptIdPattern, type JobId } from './ids.ts';
import { workerKinds } from './job-spec.ts';
import { firstProblem } from './invalid.ts';
import { lossKinds, type LogEntry } from './records.ts';

/** Version of what an entry's decisions look like. A log in another one is not followed. */
export const decisionFormat = 1;

const place = z.int().min(0);
const attemptId = z
  .string()
  .regex(attemptIdPattern)
  .transform((id) => id as AttemptId);
/** Told for people alone. JSON has no infinite numbers: what was none comes back as null, and is left out. */
const facts = z.record(z.string(), z.number().nullable()).transform(finiteOnly);

function finiteOnly(given: Readonly<Record<string, number | null>>): Readonly<Record<string, number>> {
  return Object.fromEntries(
    Object.entries(given).flatMap(([name, value]) => (value === null ? [] : [[name, value] as const])),
  );
}

/**
 * Why an attempt is launched. `first`, `retry` and `recompute` (the output of its task is gone) are owed; the others are
 * copies that compete with one running.
 */
export const launchReasons = ['first', 'retry', 'recompute', 'restart', 'backup', 'clone'] as const;
/**
 * Why an attempt is told to stop. `preempted`: its stage has lost its clones to a smaller job's; `outlasts-lambda`: it would not be
 * done when Lambda ends it, and what it had done would be lost.
 */
export const cancelReasons = [
  'sibling-won',
  'job-cancelled',
  'job-failed',
  'restarted',
  'pruned',
  'preempted',
  'outlasts-lambda',
] as const;
/**
 * Why an attempt is given up: it never claimed itself, it stopped reporting, it did not stop as it was told to, or its record cannot
 * be read.
 */
export const lossReasons = ['unclaimed', 'silent', 'unheard', 'unreadable'] as const;

/**
 * Why a job with a deadline asks for so many slots of its own. `admitted`: its forecast says that it meets its deadline
 * with those, and they were free; `adjusted`: by its progress; `deadline-changed`; `best-effort`: it cannot meet its
 * deadline beside those that were accepted before it, and was to run all the same; `wrong-forecast`: it goes so far
 * astray from what was foretold that it takes its fair share instead.
 */
export const allocationReasons = [
  'admitted',
  'adjusted',
  'deadline-changed',
  'best-effort',
  'wrong-forecast',
] as const;

/** Why an output is copied: its loss would cost more than the copy, or others were just lost where it lies. */
export const copyReasons = ['worth', 'spell'] as const;

/** A partition that several tasks read: which, which of its inputs is cut, and after how many producing tasks each. */
const splitSchema = z.object({
  task: place,
  input: place,
  cuts: z.array(z.int().min(1)).min(1),
  facts,
});

/** In which of some zones each task of a stage is to run. */
const placementSchema = z.object({
  zones: z.array(z.string()).min(2),
  tasks: z.array(place),
  facts,
});

const decisionSchema = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('open-stage'),
    stage: place,
    revision: z.int().min(1).exactOptional(),
    splits: z.array(splitSchema).exactOptional(),
    placement: placementSchema.exactOptional(),
  }),
  z.object({
    kind: z.literal('lose-output'),
    attemptId,
    how: z.enum(lossKinds),
    by: attemptId.exactOptional(),
    use: place.exactOptional(),
  }),
  z.object({
    kind: z.literal('clone-stage'),
    stage: place,
    copies: z.int().min(1),
    tasks: place,
    waitMs: z.number().min(0).exactOptional(),
    facts,
  }),
  z.object({
    kind: z.literal('preempt-clones'),
    stage: place,
    by: z.string().transform((id) => id as JobId),
    facts,
  }),
  z.object({
    kind: z.literal('allocate'),
    slots: place,
    smoothed: z.number().min(0),
    reason: z.enum(allocationReasons),
    facts,
  }),
  z.object({
    kind: z.literal('launch'),
    attemptId,
    reason: z.enum(launchReasons),
    behind: attemptId.exactOptional(),
    avoidNodes: z.array(z.string()).exactOptional(),
    zone: z.string().exactOptional(),
    worker: z
      .object({ kind: z.enum(workerKinds), size: z.enum(['small', 'medium', 'large', 'xlarge']) })
      .exactOptional(),
    facts: facts.exactOptional(),
  }),
  z.object({
    kind: z.literal('cancel'),
    attemptId,
    reason: z.enum(cancelReasons),
    facts: facts.exactOptional(),
  }),
  z.object({
    kind: z.literal('copy-output'),
    attemptId,
    bytes: z.number().min(0),
    reason: z.enum(copyReasons),
    facts,
  }),
  z.object({ kind: z.literal('lose'), attemptId, reason: z.enum(lossReasons) }),
]);

/** A decision as the log holds it. */
export type LoggedDecision = z.output<typeof decisionSchema>;

const isRefusal = (entry: unknown): boolean =>
  typeof entry === 'object' && entry !== null && 'kind' in entry && entry.kind === 'refuse';

/**
 * The decisions of an entry, without its refusals, which only people read. Throws `UnreadableRecordError` that names
 * the job and the entry where one cannot be read, or where the entry is not the one after `after`: the log is the
 * fence, and whoever leaves a decision out would take others than its predecessor took.
 */
export function decisionsOf(jobId: JobId, entry: LogEntry, after: number): readonly LoggedDecision[] {
  const name = `entry ${entry.version} of the decision log of job ${jobId}`;
  if (entry.version !== after + 1) {
    throw new UnreadableRecordError(`${name} follows entry ${after}: what is between is gone`, {
      key: `${jobId}#${entry.version}`,
    });
  }
  return entry.decisions
    .filter((each) => !isRefusal(each))
    .map((each, index) => {
      const parsed = decisionSchema.safeParse(each);
      if (parsed.success) return parsed.data;
      throw new UnreadableRecordError(
        `${name} cannot be read: ${firstProblem(parsed.error, `decisions[${index}]`)}`,
        { key: `${jobId}#${entry.version}` },
      );
    });
}
