import { createHash } from 'node:crypto';
import * as z from 'zod';
import { InvalidInputError, UnreadableRecordError } from '../../contracts/errors.ts';
import { type JobId } from '../../contracts/ids.ts';
import { jobSpecSchema } from '../../contracts/job-spec.ts';
import { firstProblem } from '../../contracts/invalid.ts';
import { limits } from '../../contracts/limits.ts';
import {
  type EndingJob,
  finalJobStates,
  forecastBases,
  type JobForecast,
  type JobRecord,
  type JobRecordState,
  nothingYet,
  type StageSummary,
} from '../../contracts/records.ts';
import { jobCostsSchema, jobRequestsSchema, requestTallySchema } from '../../contracts/requests.ts';
import { TableSchema } from '../../contracts/settings.ts';
import { type EpochMs, epochMs } from '../../contracts/units.ts';
import type { JobPatch } from '../../ports/job-store.ts';
import { packJson, unpackJson } from './compact.ts';
import type { Item, ItemKey } from './dynamo-table.ts';
import { expiryOf } from './expiry.ts';
import { jobIdField, timeField } from './item-fields.ts';

/** Under DynamoDB's 400 KB, with room for names and small attributes. */
const PACKED_LIMIT_BYTES = 380_000;
/** Longer ones are deflated: the record is written often, and a write costs by its whole length. */
const PLAIN_CHARS = 512;
/** What is longer still lies beside the record, in an item that is written once. */
const INLINE_BYTES = 768;
/** The one partition of the listing index. */
export const LISTING = 'JOBS';

/** Fields that may be long, each kept as packed JSON. */
const packedFields = new Set([
  'spec',
  'stages',
  'parts',
  'counters',
  'attempts',
  'error',
  'requests',
  'costs',
  'coordination',
]);
/** Those of them that may be very long, and change seldom: where they are, the record holds a reference. */
const asideFields = new Set(['spec', 'parts', 'counters', 'error']);
/** In the place of a field that lies aside: the range key of its item. */
const ASIDE = 'aside';
const asideReference = z.strictObject({ [ASIDE]: z.string().startsWith('META#') });

const count = z.number().min(0);
const stageSummary = z.object({
  name: z.string(),
  operator: z.string(),
  tasks: count,
  done: count,
  running: count,
  failed: count,
  bytesIn: count,
  bytesOut: count,
  recordsIn: count,
  recordsOut: count,
  startedAt: timeField.exactOptional(),
  endedAt: timeField.exactOptional(),
  workerMs: count,
  progress: count,
}) satisfies z.ZodType<StageSummary>;

const jobForecast = z.object({
  at: timeField,
  basis: z.enum(forecastBases),
  runs: count,
  expectedEndAt: timeField.exactOptional(),
  probability: z.number().min(0).max(1).exactOptional(),
  slotsWanted: count.exactOptional(),
}) satisfies z.ZodType<JobForecast>;

/** Not as a record of zod's, which would leave a counter named "__proto__" out. */
const isCounters = (value: unknown): boolean =>
  typeof value === 'object' &&
  value !== null &&
  !Array.isArray(value) &&
  Object.values(value).every((each) => Number.isFinite(each));

/** A job as records hold it, and as the REST API answers it. */
export const jobRecordSchema = z.object({
  jobId: jobIdField,
  name: z.string(),
  spec: jobSpecSchema,
  specDigest: z.string(),
  state: z.enum([
    'submitted',
    'running',
    'succeeded',
    'failed',
    'cancelled',
  ]) satisfies z.ZodType<JobRecordState>,
  createdAt: timeField,
  startedAt: timeField.exactOptional(),
  endedAt: timeField.exactOptional(),
  deadlineAt: timeField.exactOptional(),
  cancelRequestedAt: timeField.exactOptional(),
  seenAt: timeField.exactOptional(),
  missingSince: timeField.exactOptional(),
  waitingSince: timeField.exactOptional(),
  scheduledAt: timeField.exactOptional(),
  clearedAt: timeField.exactOptional(),
  shards: z.int().min(1).max(limits.shards).exactOptional(),
  planNonce: z.string().exactOptional(),
  publishingAt: timeField.exactOptional(),
  error: z.object({ name: z.string(), message: z.string() }).exactOptional(),
  guaranteedSlots: count.exactOptional(),
  copies: z.object({ outputs: count, bytes: count, tokens: count }).exactOptional(),
  forecast: jobForecast.exactOptional(),
  output: z.string(),
  storage: jobSpecSchema.shape.storage.unwrap().exactOptional(),
  stages: z.array(stageSummary),
  attempts: z.object({
    launched: count,
    backups: count,
    clones: count,
    restarts: count,
    cancelled: count,
    lost: count,
    declined: count.default(0),
    recomputed: count.default(0),
  }),
  counters: z.custom<Readonly<Record<string, number>>>(isCounters, 'must be finite numbers by name'),
  workerMs: count,
  dollars: count,
  requests: jobRequestsSchema.exactOptional(),
  costs: jobCostsSchema.exactOptional(),
  coordination: requestTallySchema.exactOptional(),
  parts: z.array(z.object({ key: z.string(), sizeBytes: count })),
  partTotals: z.object({ count, sizeBytes: count }).exactOptional(),
});

/** Where the record of a job lies. */
export const jobKey = (jobId: JobId): ItemKey => ({ pk: `JOB#${jobId}`, sk: 'META' });

/** A record, or a change of one, as items: what lies aside must be written before what refers to it. */
export interface JobItems<T extends Item = Item> {
  readonly item: T;
  readonly aside: readonly (ItemKey & Item)[];
}

/** A job as an item, listed in the index by creation. Throws `InvalidInputError` where it is too large. */
export function encodeJob(job: JobRecord): JobItems<ItemKey & Item> {
  const { item, aside } = encodeFields(job.jobId, { ...job }, expiryOf(job.createdAt));
  return {
    item: {
      ...jobKey(job.jobId),
      ...item,
      [TableSchema.listingPartitionKey]: LISTING,
      [TableSchema.ttl]: expiryOf(job.createdAt),
    },
    aside,
  };
}

/**
 * The attributes of a patch of a job, as they are at `now`. References of fields that lie aside are attributes of their
 * own, so that a patch touches no other field's. Throws `InvalidInputError` where it is too large.
 */
export const encodePatch = (jobId: JobId, patch: JobPatch, now: EpochMs): JobItems =>
  encodeFields(jobId, { ...patch }, expiryOf(now));

function encodeFields(jobId: JobId, fields: Item, expiresAt: number): JobItems {
  const item: Record<string, unknown> = {};
  const aside: (ItemKey & Item)[] = [];
  for (const [name, value] of Object.entries(fields)) {
    if (value === undefined) continue;
    const packed = packedFields.has(name) ? packJson(value, PLAIN_CHARS) : value;
    const sizeBytes = sizeOf(packed);
    if (sizeBytes > PACKED_LIMIT_BYTES) {
      throw new InvalidInputError(`${name} of the job is too large for its record`, {
        sizeBytes,
        limitBytes: PACKED_LIMIT_BYTES,
      });
    }
    if (!asideFields.has(name) || sizeBytes <= INLINE_BYTES) item[name] = packed;
    else {
      const key = asideKey(jobId, name, packed);
      item[name] = { [ASIDE]: key.sk };
      aside.push({ ...key, value: packed, [TableSchema.ttl]: expiresAt });
    }
  }
  return { item, aside };
}

/** By its contents: whoever writes the same again writes the same item, and no item ever changes. */
const asideKey = (jobId: JobId, name: string, packed: unknown): ItemKey => ({
  pk: jobKey(jobId).pk,
  sk: `META#${name}#${createHash('sha256')
    .update(packed as string | Uint8Array)
    .digest('hex')
    .slice(0, 32)}`,
});

/** Where the fields of a record lie that are not in it. */
export const asideKeysOf = ({ pk, ...fields }: Item): readonly ItemKey[] =>
  Object.entries(fields).flatMap(([name, value]) => {
    const sk = asideFields.has(name) ? asideReference.safeParse(value).data?.[ASIDE] : undefined;
    return sk === undefined ? [] : [{ pk: String(pk), sk }];
  });

/** A record with what lies aside put in its place; what is not among `found` stays a reference, which nobody can read. */
export function withAside(item: Item, found: readonly Item[]): Item {
  const values = new Map(found.map(({ sk, value }) => [String(sk), value]));
  const fields = Object.entries(item).map(([name, value]) => {
    const sk = asideFields.has(name) ? asideReference.safeParse(value).data?.[ASIDE] : undefined;
    return [name, (sk === undefined ? undefined : values.get(sk)) ?? value] as const;
  });
  return Object.fromEntries(fields);
}

function sizeOf(value: unknown): number {
  if (typeof value === 'string') return Buffer.byteLength(value);
  return value instanceof Uint8Array ? value.byteLength : 8;
}

/** What a job has come to: the job goes on, and ends, without it. */
const decorations = {
  ...nothingYet,
  endedAt: undefined,
  deadlineAt: undefined,
  requests: undefined,
  costs: undefined,
  coordination: undefined,
  partTotals: undefined,
  guaranteedSlots: undefined,
  copies: undefined,
  forecast: undefined,
  error: undefined,
  seenAt: undefined,
  missingSince: undefined,
  waitingSince: undefined,
  scheduledAt: undefined,
  clearedAt: undefined,
} as const;
/** What steers a job on its way, and tells of the past once it has ended: its end must be told all the same. */
const steering = new Set(['startedAt', 'cancelRequestedAt', 'shards', 'planNonce', 'publishingAt']);
const isDecoration = (name: string, state: unknown): boolean =>
  Object.hasOwn(decorations, name) || (steering.has(name) && finalJobStates.some((final) => final === state));

/** The fields of an item with packed ones unpacked; one that cannot be unpacked is null, which no field may be. */
function unpacked(item: Item): Readonly<Record<string, unknown>> {
  const fields = Object.entries(item).map(([name, value]) => {
    if (!packedFields.has(name)) return [name, value];
    try {
      return [name, unpackJson(value)];
    } catch {
      return [name, null];
    }
  });
  return Object.fromEntries(fields) as Readonly<Record<string, unknown>>;
}

const fieldsOf = (error: z.ZodError): readonly string[] => [
  ...new Set(error.issues.map(({ path }) => String(path[0]))),
];

/**
 * The job of an item; what cannot be read of what it has come to is left as if there were nothing yet, and named, and
 * of a job that has ended also what steered it.
 * Throws `UnreadableRecordError` where anything else cannot be read.
 */
export function decodeJob(item: Item): JobRecord {
  const fields = unpacked(item);
  const parsed = jobRecordSchema.safeParse(fields);
  if (parsed.success) return parsed.data;
  const unreadable = fieldsOf(parsed.error);
  const others = Object.entries(fields).filter(([name]) => !unreadable.includes(name));
  if (unreadable.every((name) => isDecoration(name, fields['state']))) {
    const again = jobRecordSchema.safeParse({ ...nothingYet, ...Object.fromEntries(others) });
    if (again.success) return { ...again.data, unreadable };
  }
  const key = `${String(item.pk)}/${String(item.sk)}`;
  throw new UnreadableRecordError(
    `the record ${key} of a job cannot be read: ${firstProblem(parsed.error)}`,
    { key, fields: unreadable },
    { cause: parsed.error },
  );
}

/** What is needed to end the job of an item. A state that cannot be read is one that has not ended. */
export function salvageJob(jobId: JobId, item: Item): EndingJob {
  const fields = unpacked(item);
  const shape = jobRecordSchema.shape;
  const read = <T>(schema: z.ZodType<T>, name: keyof EndingJob): T | undefined => {
    const parsed = schema.safeParse(fields[name]);
    return parsed.success ? parsed.data : undefined;
  };
  const startedAt =
    read(shape.startedAt, 'startedAt') ?? (fields['startedAt'] === undefined ? undefined : epochMs(0));
  const shards = read(shape.shards, 'shards') ?? (fields['shards'] === undefined ? undefined : limits.shards);
  const planNonce = read(shape.planNonce, 'planNonce');
  const storage = read(shape.storage, 'storage');
  const publishingAt =
    read(shape.publishingAt, 'publishingAt') ??
    (fields['publishingAt'] === undefined ? undefined : epochMs(0));
  const cancelRequestedAt =
    read(shape.cancelRequestedAt, 'cancelRequestedAt') ??
    (fields['cancelRequestedAt'] === undefined ? undefined : epochMs(0));
  const missingSince = read(shape.missingSince, 'missingSince');
  return {
    jobId,
    state: read(shape.state, 'state') ?? 'running',
    // None where it cannot be read: nothing is removed from a place that nobody knows.
    output: read(shape.output, 'output') ?? '',
    ...(startedAt === undefined ? {} : { startedAt }),
    ...(shards === undefined ? {} : { shards }),
    ...(planNonce === undefined ? {} : { planNonce }),
    ...(storage === undefined ? {} : { storage }),
    ...(publishingAt === undefined ? {} : { publishingAt }),
    ...(cancelRequestedAt === undefined ? {} : { cancelRequestedAt }),
    ...(missingSince === undefined ? {} : { missingSince }),
  };
}
