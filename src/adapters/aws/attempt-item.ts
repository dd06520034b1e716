import * as z from 'zod';
import { BrokenInvariantError, InvalidInputError } from '../../contracts/errors.ts';
import { firstProblem } from '../../contracts/invalid.ts';
import { type AttemptId, attemptIdPattern, type TaskId, taskIdPattern, taskOf } from '../../contracts/ids.ts';
import { limits } from '../../contracts/limits.ts';
import { takesName } from '../../contracts/own-counters.ts';
import { phases } from '../../contracts/progress.ts';
import {
  type AttemptRecord,
  failureCauses,
  lossKinds,
  type TaskResult,
  type UnreadableRecord,
} from '../../contracts/records.ts';
import { requestTallySchema } from '../../contracts/requests.ts';
import { savedWorkSchema } from '../../contracts/saved-work.ts';
import { TableSchema } from '../../contracts/settings.ts';
import { durationMs } from '../../contracts/units.ts';
import { fnv1a } from '../../contracts/fnv1a.ts';
import type { TaskSpace } from '../../ports/attempt-store.ts';
import {
  packFinalPart,
  packJson,
  packPartitions,
  unpackFinalPart,
  unpackJson,
  unpackPartitions,
} from './compact.ts';
import type { Item, ItemKey } from './dynamo-table.ts';
import { expiryOf } from './expiry.ts';
import { problemOf } from './problem-of.ts';
import { timeField } from './item-fields.ts';

const ATTEMPT = 'A#';
const RESULT = 'T#';
const REPLICA = 'R#';
const RESULT_LIMIT_BYTES = 390_000;
/** What a task may count takes at most half of it, as JSON in UTF-8. */
const COUNTERS_LIMIT_BYTES = 64 * 1024;

const count = z.number().min(0);
const attemptId = z
  .string()
  .regex(attemptIdPattern)
  .transform((id) => id as AttemptId);

const progress = z.object({
  bytesRead: count,
  bytesTotal: count,
  history: z.string().exactOptional(),
  looks: z.string().exactOptional(),
  recordsIn: count,
  recordsOut: count,
  phase: z.enum(phases),
  phaseMs: z.record(z.enum(phases), count),
  peakMemoryBytes: count,
  stalledMs: count.exactOptional(),
  fetched: z.object({ bytes: count, ms: count }).exactOptional(),
  requests: requestTallySchema.exactOptional(),
  handsOn: z.boolean().exactOptional(),
  takenUp: z.object({ attempt: count, bytes: count, ms: count.exactOptional() }).exactOptional(),
});

const lostOutput = z.object({
  attemptId,
  how: z.enum(lossKinds),
  offset: count,
  length: count,
  crc: count,
});

const failureSchema = z.object({
  cause: z.enum(failureCauses),
  message: z.string(),
  lost: z.array(lostOutput).exactOptional(),
  mayPass: z.literal(true).exactOptional(),
});

/** An attempt as records hold it, and as the REST API answers it. */
export const attemptRecordSchema = z.object({
  attemptId,
  state: z.enum(['launched', 'running', 'done', 'failed', 'cancelled', 'lost']),
  order: z.enum(['continue', 'cancel']),
  launchedAt: timeField,
  claimedAt: timeField.exactOptional(),
  endedAt: timeField.exactOptional(),
  node: z.string().exactOptional(),
  zone: z.string().exactOptional(),
  invocation: z.string().exactOptional(),
  progress: progress.exactOptional(),
  failure: failureSchema.exactOptional(),
  saved: savedWorkSchema.exactOptional(),
  upload: z.object({ since: timeField, uploadId: z.string().exactOptional() }).exactOptional(),
  outputLostAt: timeField.exactOptional(),
  beat: count.default(0),
  reportedAt: timeField.exactOptional(),
  nextMs: count.transform(durationMs).exactOptional(),
});

const resultFields = z.object({
  taskId: z
    .string()
    .regex(taskIdPattern)
    .transform((id) => id as TaskId),
  attemptId,
  committedAt: timeField,
  zone: z.string().exactOptional(),
  worker: z.string().exactOptional(),
  bytesIn: count,
  bytesOut: count,
  recordsIn: count,
  recordsOut: count,
  progress: progress.exactOptional(),
});
/**
 * Not as a record of zod's, which would leave a counter named "__proto__" out. Within the bounds that workers hold: user code
 * with the keys of its job's session can write results itself, and what they count goes into the job's own record.
 */
const counters = z
  .custom<Readonly<Record<string, number>>>(
    (value) =>
      typeof value === 'object' &&
      value !== null &&
      !Array.isArray(value) &&
      Object.values(value).every((each) => Number.isFinite(each)),
    'counters must be finite numbers by name',
  )
  .refine((sums) => {
    const names = Object.keys(sums);
    return (
      names.filter(takesName).length <= limits.countersPerTask &&
      names.every(({ length }) => length <= limits.counterNameChars)
    );
  }, `counters must be at most ${limits.countersPerTask}, with names of at most ${limits.counterNameChars} characters`);

/**
 * The key under which all of a task lies. The tasks of a stage take turns, so that no key gets more than its share;
 * each stage begins at a place of its own.
 */
export function shardOf(space: TaskSpace, taskId: TaskId): number {
  const at = taskId.lastIndexOf('/');
  return (fnv1a(taskId.slice(0, at)) + Number(taskId.slice(at + 1))) % space.shards;
}

/** Partition key of a shard. */
export const shardKey = ({ jobId }: TaskSpace, shard: number): string => `J#${jobId}#${shard}`;

/** Where the record of an attempt lies. */
export const attemptKey = (space: TaskSpace, id: AttemptId): ItemKey => ({
  pk: shardKey(space, shardOf(space, taskOf(id))),
  sk: `${ATTEMPT}${id}`,
});

/** Where the result of a task lies. */
export const resultKey = (space: TaskSpace, taskId: TaskId): ItemKey => ({
  pk: shardKey(space, shardOf(space, taskId)),
  sk: `${RESULT}${taskId}`,
});

/** Where the replica that an attempt has left lies: in the shard of its task, beside the task's result. */
export const replicaKey = (
  space: TaskSpace,
  { taskId, attemptId: id }: Pick<TaskResult, 'taskId' | 'attemptId'>,
): ItemKey => ({
  pk: shardKey(space, shardOf(space, taskId)),
  sk: `${REPLICA}${id}`,
});

/** The result of an attempt that is kept as a replica, as an item. Throws as `encodeResult` does. */
export const encodeReplica = (space: TaskSpace, result: TaskResult): ItemKey & Item => ({
  ...encodeResult(space, result),
  ...replicaKey(space, result),
});

/**
 * A result as an item. Throws `InvalidInputError` where it is too large, and `BrokenInvariantError` where it could not
 * be read again: a task can have but one result, so that such a one would stop its job.
 */
export function encodeResult(space: TaskSpace, result: TaskResult): ItemKey & Item {
  const { partitions, final, counters: sums, ...fields } = result;
  const packedCounters = packJson(sums);
  const packed = {
    ...(partitions === undefined ? {} : { partitions: packPartitions(partitions) }),
    ...(final === undefined ? {} : { final: packFinalPart(final) }),
  };
  const sizeBytes = [packedCounters, ...Object.values(packed)].reduce((sum, { length }) => sum + length, 0);
  if (sizeBytes > RESULT_LIMIT_BYTES) {
    throw new InvalidInputError('the result of a task is too large for its record', {
      taskId: result.taskId,
      sizeBytes,
    });
  }
  const problem = resultFields.safeParse(fields).error ?? counters.safeParse(sums).error;
  if (problem !== undefined)
    throw new BrokenInvariantError(`a result could not be read: ${firstProblem(problem)}`);
  return {
    ...resultKey(space, result.taskId),
    ...fields,
    ...packed,
    counters: packedCounters,
    [TableSchema.ttl]: expiryOf(result.committedAt),
  };
}

/** An item of a shard. */
export type ShardRecord =
  | { readonly kind: 'unreadable'; readonly unreadable: UnreadableRecord }
  | { readonly kind: 'attempt'; readonly attempt: AttemptRecord }
  | { readonly kind: 'result' | 'replica'; readonly result: TaskResult };

/** What an item of a shard holds, or that it cannot be read, with what its key says of it. Never throws. */
export function decodeShardItem(item: Item): ShardRecord {
  const sortKey = String(item.sk);
  try {
    if (sortKey.startsWith(ATTEMPT)) {
      const attempt = attemptRecordSchema.parse(item);
      return sortKey === ATTEMPT + attempt.attemptId
        ? { kind: 'attempt', attempt: attempt satisfies AttemptRecord }
        : unreadable(item, `it is of attempt ${attempt.attemptId}`);
    }
    const kind = sortKey.startsWith(RESULT) ? 'result' : sortKey.startsWith(REPLICA) ? 'replica' : undefined;
    if (kind === undefined) return unreadable(item, 'it is no attempt, result or replica');
    const result = decodeResult(item);
    const isOwn = sortKey === (kind === 'result' ? RESULT + result.taskId : REPLICA + result.attemptId);
    return isOwn && taskOf(result.attemptId) === result.taskId
      ? { kind, result }
      : unreadable(item, `it is of attempt ${result.attemptId} of task ${result.taskId}`);
  } catch (cause) {
    return unreadable(item, problemOf(cause));
  }
}

const uploadNote = z.object({ uploadId: z.string() });

function unreadable(item: Item, why: string): ShardRecord {
  const sortKey = String(item.sk);
  const id = sortKey.slice(ATTEMPT.length);
  const isAttempt = sortKey.startsWith(ATTEMPT) && attemptIdPattern.test(id);
  const isResult = sortKey.startsWith(RESULT) && taskIdPattern.test(id);
  const isReplica = sortKey.startsWith(REPLICA) && attemptIdPattern.test(id);
  const { state, order } = item;
  const upload = isAttempt ? uploadNote.safeParse(item['upload']).data : undefined;
  return {
    kind: 'unreadable',
    unreadable: {
      key: `${String(item.pk)}/${sortKey}`,
      kind: isAttempt ? 'attempt' : isResult ? 'result' : isReplica ? 'replica' : 'unknown',
      ...(isAttempt || isReplica ? { attemptId: id as AttemptId } : {}),
      ...(isResult ? { taskId: id as TaskId } : {}),
      why,
      ...(upload === undefined ? {} : { uploadId: upload.uploadId }),
      mayWork: isAttempt && (state === 'running' || (state === 'launched' && order !== 'cancel')),
    },
  };
}

function decodeResult(item: Item): TaskResult {
  return {
    ...resultFields.parse(item),
    ...(item.partitions === undefined ? {} : { partitions: unpackPartitions(item.partitions) }),
    ...(item.final === undefined ? {} : { final: unpackFinalPart(item.final) }),
    counters: counters.parse(unpackJson(item.counters, COUNTERS_LIMIT_BYTES)),
  };
}
