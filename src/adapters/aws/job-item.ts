import { z } from 'zod';
import { InvalidInputError, BrokenInvariantError } from '../../contracts/errors.ts';
import { parseJobId, type JobId } from '../../contracts/ids.ts';
import { jobSpecSchema } from '../../contracts/job-spec.ts';
import type { JobRecord, JobState, StageSummary } from '../../contracts/records.ts';
import { TableSchema } from '../../contracts/settings.ts';
import { epochMs } from '../../contracts/units.ts';
import type { JobPatch } from '../../ports/job-store.ts';
import { packJson, unpackJson } from './compact.ts';
import type { Item, ItemKey } from './dynamo-table.ts';
import { expiryOf } from './expiry.ts';

/** Under DynamoDB's 400 KB, with room for names and small attributes. */
const PACKED_LIMIT_BYTES = 380_000;
/** The one partition of the listing index. */
export const LISTING = 'JOBS';

/** Fields that may be long, each kept as packed JSON. */
const packedFields = new Set(['spec', 'stages', 'parts', 'counters', 'attempts', 'error']);

const time = z.number().transform(epochMs);
const count = z.number();
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
  startedAt: time.exactOptional(),
  endedAt: time.exactOptional(),
  workerMs: count,
  progress: count,
}) satisfies z.ZodType<StageSummary>;

const jobRecord = z.object({
  jobId: z.string().transform((text, context): JobId => {
    const jobId = parseJobId(text);
    if (jobId !== undefined) return jobId;
    context.addIssue('is no job id');
    return z.NEVER;
  }),
  name: z.string(),
  spec: jobSpecSchema,
  specDigest: z.string(),
  state: z.enum(['submitted', 'running', 'succeeded', 'failed', 'cancelled']) satisfies z.ZodType<JobState>,
  createdAt: time,
  startedAt: time.exactOptional(),
  endedAt: time.exactOptional(),
  deadlineAt: time.exactOptional(),
  cancelRequestedAt: time.exactOptional(),
  shards: count.exactOptional(),
  planNonce: z.string().exactOptional(),
  error: z.object({ name: z.string(), message: z.string() }).exactOptional(),
  output: z.string(),
  stages: z.array(stageSummary),
  attempts: z.object({
    launched: count,
    backups: count,
    clones: count,
    restarts: count,
    cancelled: count,
    lost: count,
  }),
  counters: z.record(z.string(), count),
  workerMs: count,
  dollars: count,
  parts: z.array(z.object({ key: z.string(), sizeBytes: count })),
});

/** Where the record of a job lies. */
export const jobKey = (jobId: JobId): ItemKey => ({ pk: `JOB#${jobId}`, sk: 'META' });

/** A job as an item, listed in the index by creation. Throws `InvalidInputError` where it is too large. */
export function encodeJob(job: JobRecord): ItemKey & Item {
  return {
    ...jobKey(job.jobId),
    ...encodeFields({ ...job }),
    [TableSchema.listingPartitionKey]: LISTING,
    [TableSchema.ttl]: expiryOf(job.createdAt),
  };
}

/** The attributes of a patch. Throws `InvalidInputError` where it is too large. */
export const encodePatch = (patch: JobPatch): Item => encodeFields({ ...patch });

function encodeFields(fields: Item): Item {
  const entries = Object.entries(fields)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => [name, packedFields.has(name) ? packJson(value) : value] as const);
  const sizeBytes = entries.reduce((sum, [, value]) => sum + sizeOf(value), 0);
  if (sizeBytes > PACKED_LIMIT_BYTES) {
    throw new InvalidInputError('the job is too large for its record', {
      sizeBytes,
      limitBytes: PACKED_LIMIT_BYTES,
    });
  }
  return Object.fromEntries(entries);
}

function sizeOf(value: unknown): number {
  if (typeof value === 'string') return Buffer.byteLength(value);
  return value instanceof Uint8Array ? value.byteLength : 8;
}

/** The job of an item. Throws `BrokenInvariantError` where the item is none. */
export function decodeJob(item: Item): JobRecord {
  const fields = Object.entries(item).map(([name, value]) => [
    name,
    packedFields.has(name) ? unpackJson(value) : value,
  ]);
  const parsed = jobRecord.safeParse(Object.fromEntries(fields));
  if (parsed.success) return parsed.data;
  throw new BrokenInvariantError('a stored job cannot be read', { pk: item.pk, issues: parsed.error.issues });
}
