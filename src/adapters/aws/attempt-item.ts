import { z } from 'zod';
import { BrokenInvariantError, InvalidInputError } from '../../contracts/errors.ts';
import { type AttemptId, type TaskId, taskOf } from '../../contracts/ids.ts';
import { type AttemptRecord, failureCauses, phases, type TaskResult } from '../../contracts/records.ts';
import { TableSchema } from '../../contracts/settings.ts';
import { epochMs } from '../../contracts/units.ts';
import { fnv1a } from '../../lib/fnv1a.ts';
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

const ATTEMPT = 'A#';
const RESULT = 'T#';
const REPLICA = 'R#';
const RESULT_LIMIT_BYTES = 390_000;

const time = z.number().transform(epochMs);
const count = z.number();
const attemptId = z.string().transform((id) => id as AttemptId);

const attemptRecord = z.object({
  attemptId,
  state: z.enum(['launched', 'running', 'done', 'failed', 'cancelled', 'lost']),
  order: z.enum(['continue', 'cancel']),
  launchedAt: time,
  claimedAt: time.exactOptional(),
  endedAt: time.exactOptional(),
  node: z.string().exactOptional(),
  zone: z.string().exactOptional(),
  progress: z
    .object({
      bytesRead: count,
      bytesTotal: count,
      recordsIn: count,
      recordsOut: count,
      phase: z.enum(phases),
      phaseMs: z.record(z.enum(phases), count),
      peakMemoryBytes: count,
      fetched: z.object({ bytes: count, ms: count }).exactOptional(),
    })
    .exactOptional(),
  failure: z.object({ cause: z.enum(failureCauses), message: z.string() }).exactOptional(),
  changedAt: time,
}) satisfies z.ZodType<AttemptRecord>;

const resultFields = z.object({
  taskId: z.string().transform((id) => id as TaskId),
  attemptId,
  committedAt: time,
  bytesIn: count,
  bytesOut: count,
  recordsIn: count,
  recordsOut: count,
});
const counters = z.record(z.string(), count);

/** The partition that holds a task: tasks are spread evenly, and all of one task lies together. */
export const shardOf = (space: TaskSpace, taskId: TaskId): number => fnv1a(taskId) % space.shards;

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
export const replicaKey = (space: TaskSpace, { taskId, attemptId: id }: TaskResult): ItemKey => ({
  pk: shardKey(space, shardOf(space, taskId)),
  sk: `${REPLICA}${id}`,
});

/** The result of an attempt that is kept as a replica, as an item. Throws as `encodeResult` does. */
export const encodeReplica = (space: TaskSpace, result: TaskResult): ItemKey & Item => ({
  ...encodeResult(space, result),
  ...replicaKey(space, result),
});

/** A result as an item. Throws `InvalidInputError` where it is too large, which only counters can make it. */
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
  return {
    ...resultKey(space, result.taskId),
    ...fields,
    ...packed,
    counters: packedCounters,
    [TableSchema.changeKey]: result.committedAt,
    [TableSchema.ttl]: expiryOf(result.committedAt),
  };
}

/** An item of a shard. */
export type ShardRecord =
  | { readonly kind: 'attempt'; readonly attempt: AttemptRecord }
  | { readonly kind: 'result' | 'replica'; readonly result: TaskResult };

/** What an item of a shard holds. Throws `BrokenInvariantError` where it is none of them. */
export function decodeShardItem(item: Item): ShardRecord {
  const sortKey = String(item.sk);
  try {
    if (sortKey.startsWith(ATTEMPT)) return { kind: 'attempt', attempt: attemptRecord.parse(item) };
    if (sortKey.startsWith(RESULT)) return { kind: 'result', result: decodeResult(item) };
    if (sortKey.startsWith(REPLICA)) return { kind: 'replica', result: decodeResult(item) };
  } catch (cause) {
    throw new BrokenInvariantError('a stored attempt or result cannot be read', { sk: item.sk }, { cause });
  }
  throw new BrokenInvariantError('an item of a shard is no attempt, result or replica', { sk: item.sk });
}

function decodeResult(item: Item): TaskResult {
  return {
    ...resultFields.parse(item),
    ...(item.partitions === undefined ? {} : { partitions: unpackPartitions(item.partitions) }),
    ...(item.final === undefined ? {} : { final: unpackFinalPart(item.final) }),
    counters: counters.parse(unpackJson(item.counters)),
  };
}
