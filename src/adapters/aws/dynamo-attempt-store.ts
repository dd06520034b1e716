import { randomUUID } from 'node:crypto';
import type { AttemptId, TaskId } from '../../contracts/ids.ts';
import type {
  AttemptOrder,
  AttemptRecord,
  Failure,
  NotedUpload,
  Progress,
  TaskResult,
  UnreadableRecord,
} from '../../contracts/records.ts';
import { TableSchema } from '../../contracts/settings.ts';
import type { EpochMs } from '../../contracts/units.ts';
import type {
  AttemptStore,
  ClaimPlace,
  TaskChanges,
  TaskSpace,
  WorkerDeath,
} from '../../ports/attempt-store.ts';
import {
  attemptKey,
  decodeShardItem,
  encodeReplica,
  encodeResult,
  replicaKey,
  resultKey,
  shardKey,
} from './attempt-item.ts';
import type { DynamoTable } from './dynamo-table.ts';
import { expiryOf } from './expiry.ts';

/**
 * Attempts and results in DynamoDB, spread over the job's shards by task.
 *
 * `changedAt` is the clock of whoever writes, so a write may come to light later than its `changedAt` says: by
 * the time that it took, and by how far the writer's clock is behind. Callers of `changes` go back by more than
 * both and drop what they know (the scheduler: 30 s).
 */
export class DynamoAttemptStore implements AttemptStore {
  private readonly table: DynamoTable;

  constructor(table: DynamoTable) {
    this.table = table;
  }

  async create(space: TaskSpace, attemptId: AttemptId, now: EpochMs): Promise<'created' | 'exists'> {
    const written = await this.table.putNew({
      ...attemptKey(space, attemptId),
      attemptId,
      state: 'launched',
      order: 'continue',
      launchedAt: now,
      [TableSchema.changeKey]: now,
      [TableSchema.ttl]: expiryOf(now),
    });
    return written === 'written' ? 'created' : 'exists';
  }

  async orderCancel(space: TaskSpace, attemptId: AttemptId, now: EpochMs): Promise<void> {
    await this.table.update(attemptKey(space, attemptId), {
      set: { order: 'cancel', changedAt: now },
      when: '#state IN (:launched, :running)',
      values: { launched: 'launched', running: 'running' },
    });
  }

  async markLost(space: TaskSpace, attemptId: AttemptId, now: EpochMs): Promise<void> {
    await this.table.update(attemptKey(space, attemptId), {
      set: { state: 'lost', order: 'cancel', endedAt: now, changedAt: now },
      when: '#state IN (:launched, :running)',
      values: { launched: 'launched', running: 'running' },
    });
  }

  async recordDeath(
    space: TaskSpace,
    attemptId: AttemptId,
    { invocation, failure }: WorkerDeath,
    now: EpochMs,
  ): Promise<'recorded' | 'refused'> {
    const isExpired = failure.cause === 'expired';
    const isItsOwn = '(attribute_not_exists(#invocation) OR #invocation = :invocation)';
    const answer = await this.table.update(attemptKey(space, attemptId), {
      set: { state: 'lost', order: 'cancel', endedAt: now, changedAt: now, failure },
      when: isExpired ? '#state = :launched' : `#state = :launched OR (#state = :running AND ${isItsOwn})`,
      values: { launched: 'launched', ...(isExpired ? {} : { running: 'running', invocation }) },
    });
    return answer === 'refused' ? 'refused' : 'recorded';
  }

  /** Marked with a token, so that a claim which the SDK repeats is not taken for a duplicate delivery. */
  async claim(
    space: TaskSpace,
    attemptId: AttemptId,
    place: ClaimPlace,
    now: EpochMs,
  ): Promise<'claimed' | 'refused'> {
    const claimId = randomUUID();
    const { node, zone, invocation } = place;
    const where = { node, zone, ...(invocation === undefined ? {} : { invocation }) };
    const answer = await this.table.update(attemptKey(space, attemptId), {
      set: { ...where, state: 'running', claimedAt: now, claimId, changedAt: now },
      when: '#state = :launched AND #order = :continue',
      values: { launched: 'launched', continue: 'continue' },
    });
    if (answer !== 'refused') return 'claimed';
    const item = await this.table.get(attemptKey(space, attemptId));
    return item?.claimId === claimId && item.state === 'running' ? 'claimed' : 'refused';
  }

  async report(
    space: TaskSpace,
    attemptId: AttemptId,
    progress: Progress,
    now: EpochMs,
  ): Promise<AttemptOrder> {
    const answer = await this.table.update(attemptKey(space, attemptId), {
      set: { progress, changedAt: now },
      when: '#state = :running',
      values: { running: 'running' },
    });
    return answer !== 'refused' && answer.order === 'continue' ? 'continue' : 'cancel';
  }

  async noteUpload(
    space: TaskSpace,
    attemptId: AttemptId,
    upload: NotedUpload,
    now: EpochMs,
  ): Promise<AttemptOrder> {
    const answer = await this.table.update(attemptKey(space, attemptId), {
      set: { upload, changedAt: now },
      when: '#state = :running',
      values: { running: 'running' },
    });
    return answer !== 'refused' && answer.order === 'continue' ? 'continue' : 'cancel';
  }

  async commit(space: TaskSpace, result: TaskResult, keep?: 'replica'): Promise<'won' | 'kept' | 'lost'> {
    if ((await this.table.putNew(encodeResult(space, result))) === 'written') return 'won';
    const first = await this.table.get(resultKey(space, result.taskId));
    if (first?.attemptId === result.attemptId) return 'won';
    if (keep === undefined) return 'lost';
    const attempt = await this.table.get(attemptKey(space, result.attemptId));
    if (attempt?.order === 'cancel') {
      // What an earlier call has recorded stays kept, since readers may have been sent there.
      return (await this.table.get(replicaKey(space, result))) === undefined ? 'lost' : 'kept';
    }
    // Refused where it is there from an earlier call, which comes to the same.
    await this.table.putNew(encodeReplica(space, result));
    return 'kept';
  }

  async end(
    space: TaskSpace,
    attemptId: AttemptId,
    end: { state: 'done' | 'failed' | 'cancelled'; progress: Progress; failure?: Failure },
    now: EpochMs,
  ): Promise<void> {
    await this.table.update(attemptKey(space, attemptId), {
      set: { ...end, endedAt: now, changedAt: now },
      when: '#state = :running',
      values: { running: 'running' },
    });
  }

  async changes(space: TaskSpace, since: EpochMs): Promise<TaskChanges> {
    const attempts = new Map<AttemptId, AttemptRecord>();
    const results = new Map<TaskId, TaskResult>();
    const replicas = new Map<AttemptId, TaskResult>();
    const unreadable = new Map<string, UnreadableRecord>();
    const readShard = async (shard: number): Promise<void> => {
      const items = this.table.query({
        index: TableSchema.changeIndex,
        keys: `#pk = :pk AND #${TableSchema.changeKey} >= :since`,
        values: { pk: shardKey(space, shard), since },
        isConsistent: true,
      });
      // An attempt that changes between two pages appears on both; the later reading is the newer one.
      for await (const item of items) {
        const decoded = decodeShardItem(item);
        if (decoded.kind === 'unreadable') unreadable.set(decoded.unreadable.key, decoded.unreadable);
        else if (decoded.kind === 'attempt') attempts.set(decoded.attempt.attemptId, decoded.attempt);
        else if (decoded.kind === 'result') results.set(decoded.result.taskId, decoded.result);
        else replicas.set(decoded.result.attemptId, decoded.result);
      }
    };
    await Promise.all(Array.from({ length: space.shards }, (_, shard) => readShard(shard)));
    return {
      attempts: [...attempts.values()],
      results: [...results.values()],
      replicas: [...replicas.values()],
      ...(unreadable.size === 0 ? {} : { unreadable: [...unreadable.values()] }),
    };
  }
}
