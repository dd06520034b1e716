import { randomUUID } from 'node:crypto';
import { type AttemptId, taskOf } from '../../contracts/ids.ts';
import { limits } from '../../contracts/limits.ts';
import type { Progress } from '../../contracts/progress.ts';
import { type AttemptOrder, neverBegan, type NotedUpload, type TaskResult } from '../../contracts/records.ts';
import { isSameWork, savedWorkSchema } from '../../contracts/saved-work.ts';
import { TableSchema } from '../../contracts/settings.ts';
import type { DurationMs, EpochMs } from '../../contracts/units.ts';
import { forEachBounded } from '../../lib/bounded.ts';
import type {
  AttemptEnd,
  AttemptStore,
  ClaimPlace,
  Inbox,
  Note,
  ReadWish,
  TaskRecords,
  TaskSpace,
  WorkerDeath,
} from '../../ports/attempt-store.ts';
import { attemptKey, encodeReplica, encodeResult, replicaKey, resultKey, shardKey } from './attempt-item.ts';
import { BATCH_KEYS, type DynamoTable, type Item, type ItemKey } from './dynamo-table.ts';
import { expiryOf } from './expiry.ts';
import { decodeInbox, encodeNote, inboxKeys, inboxOf, NOTES } from './inbox-item.ts';
import { RecordCollector } from './record-collector.ts';

/** Requests of one call that are under way at once. */
const PARALLELISM = 16;

const isLive = {
  when: '#state IN (:launched, :running)',
  values: { launched: 'launched', running: 'running' },
};
const isRunning = { when: '#state = :running', values: { running: 'running' } };
/** The condition under which an attempt may be the one that its worker died with. */
function mayHaveDied(
  invocation: string,
  only: 'claimed' | 'unclaimed' | undefined,
): { readonly when: string; readonly values: Item } {
  if (only === 'claimed')
    return {
      when: '#state = :running AND #invocation = :invocation',
      values: { running: 'running', invocation },
    };
  if (only === 'unclaimed') return { when: '#state = :launched', values: { launched: 'launched' } };
  const isItsOwn = '(attribute_not_exists(#invocation) OR #invocation = :invocation)';
  return {
    when: `#state = :launched OR (#state = :running AND ${isItsOwn})`,
    values: { launched: 'launched', running: 'running', invocation },
  };
}
/** Counts a write of the worker. Whoever repeats one whose answer was lost counts it twice, and nobody minds. */
const beat = { clauses: 'ADD #beat :one' };

const orderIn = (answer: Item | 'refused'): AttemptOrder =>
  answer !== 'refused' && answer.order === 'continue' ? 'continue' : 'cancel';

const next = (nextMs: DurationMs | undefined): Item => (nextMs === undefined ? {} : { nextMs });

/** Attempts, results and inboxes in DynamoDB, spread over the job's keys by task, in no index. */
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
      [TableSchema.ttl]: expiryOf(now),
    });
    return written === 'written' ? 'created' : 'exists';
  }

  async orderCancel(space: TaskSpace, attemptId: AttemptId): Promise<void> {
    await this.table.update(attemptKey(space, attemptId), { set: { order: 'cancel' }, ...isLive });
  }

  async markLost(
    space: TaskSpace,
    attemptId: AttemptId,
    now: EpochMs,
    only?: 'unclaimed',
  ): Promise<'lost' | 'begun'> {
    const key = attemptKey(space, attemptId);
    const isWaiting = { when: '#state = :launched', values: { launched: 'launched' } };
    const answer = await this.table.update(key, {
      set: { state: 'lost', order: 'cancel', endedAt: now },
      ...(only === 'unclaimed' ? isWaiting : isLive),
    });
    if (only === undefined || answer !== 'refused') return 'lost';
    // Perhaps by an earlier call: only a claim says that a worker has begun.
    return (await this.table.get(key))?.claimedAt === undefined ? 'lost' : 'begun';
  }

  /** Marked with a token, as a claim is: taken for a refusal, one that the SDK repeats would end another attempt as well. */
  async recordDeath(
    space: TaskSpace,
    attemptId: AttemptId,
    { invocation, failure }: WorkerDeath,
    now: EpochMs,
    only?: 'claimed',
  ): Promise<'recorded' | 'refused'> {
    // Its worker is done and has gone: a result is its attempt's end, and it writes no other.
    const result = await this.table.get(resultKey(space, taskOf(attemptId)));
    if (result?.attemptId === attemptId) return 'refused';
    const key = attemptKey(space, attemptId);
    const why = { failure, deathId: randomUUID() };
    const answer = await this.table.update(key, {
      // One that nobody has claimed is this worker's from now on: told of its death once more, no other is taken for it.
      set: { state: 'lost', order: 'cancel', endedAt: now, ...why, invocation },
      ...mayHaveDied(invocation, only ?? (neverBegan(failure) ? 'unclaimed' : undefined)),
    });
    if (answer !== 'refused') return 'recorded';
    // Given up for its silence before its death was told: then that is why.
    const told = await this.table.update(key, {
      set: why,
      when: '#state = :lost AND #invocation = :invocation AND attribute_not_exists(#failure)',
      values: { lost: 'lost', invocation },
    });
    if (told !== 'refused') return 'recorded';
    return (await this.table.get(key))?.deathId === why.deathId ? 'recorded' : 'refused';
  }

  /** Marked with a token, so that a claim which the SDK repeats is not taken for a duplicate delivery. */
  async claim(
    space: TaskSpace,
    attemptId: AttemptId,
    place: ClaimPlace,
    now: EpochMs,
    nextMs?: DurationMs,
  ): Promise<'claimed' | 'refused'> {
    const claimId = randomUUID();
    const answer = await this.table.update(attemptKey(space, attemptId), {
      set: { ...place, state: 'running', claimedAt: now, reportedAt: now, claimId, ...next(nextMs) },
      clauses: beat.clauses,
      when: '#state = :launched AND #order = :continue',
      values: { launched: 'launched', continue: 'continue', one: 1 },
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
    nextMs?: DurationMs,
  ): Promise<AttemptOrder> {
    return orderIn(await this.beat(space, attemptId, { progress, reportedAt: now, ...next(nextMs) }));
  }

  async orders(space: TaskSpace, attemptId: AttemptId): Promise<AttemptOrder> {
    const key = attemptKey(space, attemptId);
    const seen = await this.table.get(key, { isConsistent: false });
    // What is older than its own claim, or than its record, orders nothing.
    const item = seen?.order === 'cancel' || seen?.state === 'running' ? seen : await this.table.get(key);
    return item?.state === 'running' && item.order === 'continue' ? 'continue' : 'cancel';
  }

  async noteUpload(
    space: TaskSpace,
    attemptId: AttemptId,
    upload: NotedUpload,
    now: EpochMs,
  ): Promise<AttemptOrder> {
    return orderIn(await this.beat(space, attemptId, { upload, reportedAt: now }));
  }

  async commit(
    space: TaskSpace,
    result: TaskResult,
    keep?: 'replica',
    replaces?: AttemptId,
  ): Promise<'won' | 'kept' | 'lost'> {
    const inPlaceOf =
      replaces === undefined ? undefined : { when: '#attemptId = :replaced', values: { replaced: replaces } };
    if ((await this.table.putNew(encodeResult(space, result), inPlaceOf)) === 'written') return 'won';
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

  async noteOutputLost(space: TaskSpace, attemptId: AttemptId, now: EpochMs): Promise<number> {
    const answer = await this.table.update(attemptKey(space, attemptId), {
      set: { outputLostAt: now },
      clauses: 'ADD #outputLosses :one',
      when: 'attribute_exists(#state)',
      values: { one: 1 },
    });
    return answer === 'refused' ? 0 : Number(answer.outputLosses);
  }

  async end(
    space: TaskSpace,
    attemptId: AttemptId,
    end: AttemptEnd,
    now: EpochMs,
  ): Promise<'ended' | 'refused'> {
    const answer = await this.beat(space, attemptId, { ...end, endedAt: now, reportedAt: now });
    if (answer !== 'refused') return 'ended';
    const { saved } = end;
    if (saved === undefined) return 'refused';
    // Perhaps by an earlier call: then what it hands on is known, and must stay.
    const told = savedWorkSchema.safeParse((await this.table.get(attemptKey(space, attemptId)))?.saved);
    return told.success && isSameWork(told.data, saved) ? 'ended' : 'refused';
  }

  async tell(space: TaskSpace, note: Note, now: EpochMs): Promise<void> {
    await this.table.update(inboxOf(space, note.attemptId), {
      set: { [TableSchema.ttl]: expiryOf(now) },
      clauses: `ADD #${NOTES} :note`,
      when: `attribute_not_exists(#${NOTES}) OR size(#${NOTES}) < :limit`,
      values: { note: new Set([encodeNote(note)]), limit: limits.notesPerInbox },
    });
  }

  async told(space: TaskSpace): Promise<Inbox> {
    const notes: Note[] = [];
    const unreadable: string[] = [];
    for (const item of await this.table.batchGet(inboxKeys(space))) {
      const held = decodeInbox(item);
      notes.push(...held.notes);
      if (held.isSpoilt) unreadable.push(String(item.pk));
    }
    return { notes, ...(unreadable.length === 0 ? {} : { unreadable }) };
  }

  async clear(space: TaskSpace, { notes, unreadable = [] }: Inbox): Promise<void> {
    const byInbox = new Map<string, Set<string>>();
    for (const note of notes) {
      const { pk } = inboxOf(space, note.attemptId);
      byInbox.set(pk, (byInbox.get(pk) ?? new Set()).add(encodeNote(note)));
    }
    const held = { when: `attribute_exists(#${NOTES})` };
    await forEachBounded(byInbox, PARALLELISM, async ([pk, taken]) => {
      const clauses = `DELETE #${NOTES} :taken`;
      await this.table.update({ pk, sk: 'inbox' }, { clauses, ...held, values: { taken } });
    });
    for (const pk of unreadable)
      await this.table.update({ pk, sk: 'inbox' }, { clauses: `REMOVE #${NOTES}`, ...held });
  }

  async read(space: TaskSpace, attemptIds: readonly AttemptId[], what: ReadWish): Promise<TaskRecords> {
    const keys = new Map<string, ItemKey>();
    const want = (key: ItemKey): unknown => keys.set(`${key.pk}/${key.sk}`, key);
    for (const attemptId of attemptIds) {
      want(attemptKey(space, attemptId));
      if (what === 'records') continue;
      const taskId = taskOf(attemptId);
      want(resultKey(space, taskId));
      if (what === 'outputs') want(replicaKey(space, { taskId, attemptId }));
    }
    const all = [...keys.values()];
    const batches = Array.from({ length: Math.ceil(all.length / BATCH_KEYS) }, (_, batch) =>
      all.slice(batch * BATCH_KEYS, (batch + 1) * BATCH_KEYS),
    );
    const collector = new RecordCollector();
    const isConsistent = what !== 'records';
    await forEachBounded(batches, PARALLELISM, async (batch) => {
      for (const item of await this.table.batchGet(batch, { isConsistent })) collector.take(item);
    });
    return collector.records();
  }

  async all(space: TaskSpace): Promise<TaskRecords> {
    const collector = new RecordCollector();
    const shards = Array.from({ length: space.shards }, (_, shard) => shard);
    await forEachBounded(shards, PARALLELISM, async (shard) => {
      const query = { keys: '#pk = :pk', values: { pk: shardKey(space, shard) }, isConsistent: true };
      for await (const item of this.table.query(query)) collector.take(item);
    });
    return collector.records();
  }

  /** A write of the worker of a running attempt. */
  private beat(space: TaskSpace, attemptId: AttemptId, set: Item): Promise<Item | 'refused'> {
    return this.table.update(attemptKey(space, attemptId), {
      set,
      ...beat,
      when: isRunning.when,
      values: { ...isRunning.values, one: 1 },
    });
  }
}
