import { randomUUID } from 'node:crypto';
import * as z from 'zod';
import { StoreUnavailableError, UnreadableRecordError } from '../../contracts/errors.ts';
import { type JobId, parseJobId } from '../../contracts/ids.ts';
import {
  type EndingJob,
  finalJobStates,
  type JobRecord,
  type JobRecordState,
} from '../../contracts/records.ts';
import { TableSchema } from '../../contracts/settings.ts';
import { epochMs } from '../../contracts/units.ts';
import type { OutputClaim } from '../../core/model/output-claims.ts';
import type {
  BucketClaims,
  JobPage,
  JobPatch,
  JobStore,
  TokenClaim,
  UpdateOptions,
} from '../../ports/job-store.ts';
import { claimsKey, decodeClaims, savingChange } from './claims-item.ts';
import type { Change, DynamoTable, Item, ItemKey } from './dynamo-table.ts';
import { expiryOf, ttlSeconds } from './expiry.ts';
import {
  asideKeysOf,
  decodeJob,
  encodeJob,
  encodePatch,
  jobKey,
  LISTING,
  salvageJob,
  withAside,
} from './job-item.ts';
import { blameCursor, cursorOf, parseCursor } from './list-cursor.ts';
import type { ReportUnreadable } from './report-unreadable.ts';

const BATCH_KEYS = 100;
/** Fields that lie aside of so many jobs, a few kilobytes each. */
const REMEMBERED = 100;
const asideId = ({ pk, sk }: { readonly pk?: unknown; readonly sk?: unknown }): string =>
  `${String(pk)}/${String(sk)}`;
const tokenSchema = z.object({ jobId: z.string() });
const tokenKey = (token: string): ItemKey => ({ pk: `TOKEN#${token}`, sk: 'META' });
/** The job of a claim on a token; undefined where there is none, or nobody can read it. */
const jobOfClaim = (item: Item | undefined): JobId | undefined =>
  parseJobId(tokenSchema.safeParse(item).data?.jobId ?? '');
const keySchema = z.object({ pk: z.string(), sk: z.string() });

/**
 * Job records in DynamoDB, one item each.
 *
 * The SDK repeats a write whose answer was lost, and the repetition meets its own first write. So each write
 * leaves a token of its own, `writeId`; a refused write that finds its token there has in truth succeeded.
 */
export class DynamoJobStore implements JobStore {
  private readonly table: DynamoTable;
  private readonly report: ReportUnreadable;
  private readonly aside = new Map<string, Item>();

  /** @param report - is told of claims on outputs that cannot be read, which are left out. */
  constructor(table: DynamoTable, report: ReportUnreadable = () => undefined) {
    this.table = table;
    this.report = report;
  }

  async create(job: JobRecord): Promise<{ kind: 'created' } | { kind: 'exists'; job: JobRecord }> {
    const writeId = randomUUID();
    const { item: encoded, aside } = encodeJob(job);
    await this.writeAside(aside);
    if ((await this.table.putNew({ ...encoded, createId: writeId })) === 'written')
      return { kind: 'created' };
    const item = await this.table.get(jobKey(job.jobId));
    if (item === undefined)
      throw new StoreUnavailableError('a job vanished while it was created', { jobId: job.jobId });
    if (item.createId === writeId) return { kind: 'created' };
    const [whole = item] = await this.whole([item]);
    return { kind: 'exists', job: decodeJob(whole) };
  }

  /** A claim that the SDK repeats after a lost answer finds its own job there. */
  async claimToken(token: string, claim: TokenClaim): Promise<JobId> {
    const key = tokenKey(token);
    // A second try only where the record is garbage, which stands for no job that anybody could find.
    for (let tries = 0, garbage: Item | undefined; tries < 2; tries++) {
      if ((await this.table.update(key, tokenChange(claim, garbage))) !== 'refused') return claim.jobId;
      const item = await this.table.get(key);
      const held = jobOfClaim(item);
      if (held !== undefined) return held;
      if (item === undefined) break;
      this.report({ key: `${key.pk}/${key.sk}`, why: 'jobId is no job id' });
      garbage = item;
    }
    throw new StoreUnavailableError('a claim vanished while it was read', { token });
  }

  async jobOfToken(token: string): Promise<JobId | undefined> {
    return jobOfClaim(await this.table.get(tokenKey(token)));
  }

  async load(jobId: JobId): Promise<JobRecord | undefined> {
    const item = await this.table.get(jobKey(jobId));
    if (item === undefined) return undefined;
    const [whole = item] = await this.whole([item]);
    return decodeJob(whole);
  }

  /** The index gives the order and keys only, so that it need not be rewritten whenever a job changes. */
  async list(page: { limit: number; cursor?: string }): Promise<JobPage> {
    const { items, next } = await this.table
      .page(
        {
          index: TableSchema.listingIndex,
          keys: `#${TableSchema.listingPartitionKey} = :listing`,
          values: { listing: LISTING },
          isConsistent: false,
        },
        {
          start: page.cursor === undefined ? undefined : parseCursor(page.cursor),
          limit: page.limit,
          isDescending: true,
        },
      )
      .catch(blameCursor(page.cursor));
    const keys = items.map((item): ItemKey => keySchema.parse(item));
    const records = await this.whole(await this.table.batchGet(keys));
    const found = new Map(records.map((item) => [item.pk, item]));
    const jobs: JobRecord[] = [];
    const unreadable: { jobId: string; message: string }[] = [];
    for (const { pk } of keys) {
      const item = found.get(pk);
      if (item === undefined) continue;
      try {
        jobs.push(decodeJob(item));
      } catch (cause) {
        if (!(cause instanceof UnreadableRecordError)) throw cause;
        unreadable.push({ jobId: pk.replace(/^JOB#/, ''), message: cause.message });
      }
    }
    return {
      jobs,
      ...(unreadable.length === 0 ? {} : { unreadable }),
      ...(next === undefined ? {} : { cursor: cursorOf(next) }),
    };
  }

  async salvage(jobId: JobId): Promise<EndingJob | undefined> {
    const item = await this.table.get(jobKey(jobId));
    return item === undefined ? undefined : salvageJob(jobId, item);
  }

  end(
    jobId: JobId,
    patch: JobPatch,
    options: Pick<UpdateOptions, 'unlessPublishing'> = {},
  ): Promise<'updated' | 'stale'> {
    // By the ends, and not by the states before them: a state that nobody can read is none of either.
    return this.write(jobId, patch, { not: 'NOT ', states: finalJobStates, ...options });
  }

  async update(
    jobId: JobId,
    states: readonly JobRecordState[],
    patch: JobPatch,
    options: UpdateOptions = {},
  ): Promise<'updated' | 'stale'> {
    if (states.length === 0) return 'stale';
    return this.write(jobId, patch, { not: '', states, ...options });
  }

  private async write(
    jobId: JobId,
    patch: JobPatch,
    condition: UpdateOptions & { readonly not: '' | 'NOT '; readonly states: readonly JobRecordState[] },
  ): Promise<'updated' | 'stale'> {
    const writeId = randomUUID();
    const { not, states, unlessPublishing, epoch } = condition;
    const isUnpublished = unlessPublishing === true ? ' AND attribute_not_exists(#publishingAt)' : '';
    const told = epoch === undefined ? {} : { schedulerEpoch: epoch };
    // Records of before schedulers told theirs have none.
    const isNewest =
      epoch === undefined
        ? ''
        : ' AND (attribute_not_exists(#schedulerEpoch) OR #schedulerEpoch <= :set_schedulerEpoch)';
    const { item: changes, aside } = encodePatch(jobId, patch, epochMs(Date.now()));
    await this.writeAside(aside);
    const answer = await this.table.update(jobKey(jobId), {
      set: { ...changes, ...told, writeId },
      ...(isWithoutDeadline(patch) ? { clauses: 'REMOVE #deadlineAt' } : {}),
      when: `attribute_exists(#pk) AND ${not}#state IN (${states.map((_, index) => `:in${index}`).join(', ')})${isUnpublished}${isNewest}`,
      values: Object.fromEntries(states.map((state, index) => [`in${index}`, state])),
    });
    if (answer !== 'refused') return 'updated';
    const item = await this.table.get(jobKey(jobId));
    return item?.writeId === writeId ? 'updated' : 'stale';
  }

  /** Each is written once, under a key that its contents give; one that is there already is the same. */
  private async writeAside(items: readonly (ItemKey & Item)[]): Promise<void> {
    for (const item of items) {
      if (this.aside.has(asideId(item))) continue;
      await this.table.putNew(item);
      this.remember(item);
    }
  }

  /** Records with the fields that lie aside. Those never change, so that each is read once as long as it is remembered. */
  private async whole(records: readonly Item[]): Promise<readonly Item[]> {
    const keys = records.flatMap((item) => asideKeysOf(item));
    const missing = keys.filter((key) => !this.aside.has(asideId(key)));
    const found = keys.flatMap((key): Item[] => {
      const item = this.aside.get(asideId(key));
      return item === undefined ? [] : [item];
    });
    for (let at = 0; at < missing.length; at += BATCH_KEYS) {
      for (const item of await this.table.batchGet(missing.slice(at, at + BATCH_KEYS))) {
        found.push(item);
        this.remember(item);
      }
    }
    const byJob = Map.groupBy(found, ({ pk }) => String(pk));
    return records.map((item) => withAside(item, byJob.get(String(item.pk)) ?? []));
  }

  private remember(item: Item): void {
    if (this.aside.size >= REMEMBERED) this.aside.clear();
    this.aside.set(asideId(item), item);
  }

  async loadClaims(bucket: string): Promise<BucketClaims> {
    return decodeClaims(await this.table.get(claimsKey(bucket)), this.report);
  }

  async saveClaims(
    bucket: string,
    claims: readonly OutputClaim[],
    version: number,
  ): Promise<'saved' | 'stale'> {
    const answer = await this.table.update(claimsKey(bucket), savingChange({ claims, version }));
    return answer === 'refused' ? 'stale' : 'saved';
  }
}

/** Whether a patch takes the job's deadline away. */
const isWithoutDeadline = (patch: JobPatch): boolean =>
  Object.hasOwn(patch, 'deadlineAt') && patch.deadlineAt === undefined;

/** Takes a token that is free: never claimed, forgotten, past its time, or still held by what was read as garbage. */
function tokenChange({ jobId, now, forgotten }: TokenClaim, garbage: Item | undefined): Change {
  const isText = typeof garbage?.jobId === 'string';
  return {
    set: { jobId, [TableSchema.ttl]: expiryOf(now) },
    // An item whose time is up is there until DynamoDB comes to drop it, which may take days.
    when: [
      `attribute_not_exists(#pk) OR #${TableSchema.ttl} <= :now`,
      ...(forgotten === undefined ? [] : ['#jobId = :forgotten']),
      ...(garbage === undefined
        ? []
        : [isText ? '#jobId = :garbage' : 'NOT attribute_type(#jobId, :garbage)']),
    ].join(' OR '),
    values: {
      now: ttlSeconds(now),
      ...(forgotten === undefined ? {} : { forgotten }),
      ...(garbage === undefined ? {} : { garbage: isText ? garbage.jobId : 'S' }),
    },
  };
}
