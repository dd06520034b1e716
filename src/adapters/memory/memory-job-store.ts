import { InvalidInputError } from '../../contracts/errors.ts';
import type { JobId } from '../../contracts/ids.ts';
import { limits } from '../../contracts/limits.ts';
import type { JobRecord, JobRecordState } from '../../contracts/records.ts';
import { durationMs, type EpochMs, later } from '../../contracts/units.ts';
import { copyPlain } from '../../lib/copy-plain.ts';
import type { OutputClaim } from '../../core/model/output-claims.ts';
import type {
  BucketClaims,
  JobPage,
  JobPatch,
  JobStore,
  TokenClaim,
  UpdateOptions,
} from '../../ports/job-store.ts';

/** Job records in memory; what the simulator and tests use. */
export class MemoryJobStore implements JobStore {
  private readonly jobs = new Map<JobId, JobRecord>();
  private readonly tokens = new Map<string, { readonly jobId: JobId; readonly until: EpochMs }>();
  private readonly epochs = new Map<JobId, number>();
  private readonly outputs = new Map<string, BucketClaims>();

  create(job: JobRecord): Promise<{ kind: 'created' } | { kind: 'exists'; job: JobRecord }> {
    const there = this.jobs.get(job.jobId);
    if (there !== undefined) return Promise.resolve({ kind: 'exists', job: there });
    this.jobs.set(job.jobId, copyPlain(job));
    return Promise.resolve({ kind: 'created' });
  }

  claimToken(token: string, { jobId, now, forgotten }: TokenClaim): Promise<JobId> {
    const held = this.tokens.get(token);
    const isFree = held === undefined || held.until <= now || held.jobId === forgotten;
    if (!isFree) return Promise.resolve(held.jobId);
    this.tokens.set(token, { jobId, until: later(now, durationMs(limits.recordsKeptMs)) });
    return Promise.resolve(jobId);
  }

  jobOfToken(token: string): Promise<JobId | undefined> {
    return Promise.resolve(this.tokens.get(token)?.jobId);
  }

  load(jobId: JobId): Promise<JobRecord | undefined> {
    return Promise.resolve(this.jobs.get(jobId));
  }

  salvage(jobId: JobId): Promise<JobRecord | undefined> {
    return this.load(jobId);
  }

  end(
    jobId: JobId,
    patch: JobPatch,
    options: Pick<UpdateOptions, 'unlessPublishing'> = {},
  ): Promise<'updated' | 'stale'> {
    return this.update(jobId, ['submitted', 'running'], patch, options);
  }

  async list(page: { limit: number; cursor?: string }): Promise<JobPage> {
    const after = page.cursor === undefined ? undefined : parseCursor(page.cursor);
    const rest = [...this.jobs.values()]
      .map((job) => ({ job, place: placeOf(job) }))
      .filter(({ place }) => after === undefined || comparePlaces(place, after) > 0)
      .sort((a, b) => comparePlaces(a.place, b.place));
    const jobs = rest.slice(0, page.limit);
    const last = jobs.at(-1);
    await Promise.resolve();
    return {
      jobs: jobs.map(({ job }) => job),
      ...(rest.length > jobs.length && last !== undefined ? { cursor: cursorOf(last.place) } : {}),
    };
  }

  update(
    jobId: JobId,
    states: readonly JobRecordState[],
    patch: JobPatch,
    options: UpdateOptions = {},
  ): Promise<'updated' | 'stale'> {
    const job = this.jobs.get(jobId);
    if (job === undefined || !states.includes(job.state)) return Promise.resolve('stale');
    if (options.unlessPublishing === true && job.publishingAt !== undefined) return Promise.resolve('stale');
    if (options.epoch !== undefined) {
      if ((this.epochs.get(jobId) ?? 0) > options.epoch) return Promise.resolve('stale');
      this.epochs.set(jobId, options.epoch);
    }
    const { deadlineAt, ...changed } = { ...job, ...copyPlain(patch) };
    this.jobs.set(jobId, deadlineAt === undefined ? changed : { ...changed, deadlineAt });
    return Promise.resolve('updated');
  }

  loadClaims(bucket: string): Promise<BucketClaims> {
    return Promise.resolve(this.outputs.get(bucket) ?? { claims: [], version: 0 });
  }

  saveClaims(bucket: string, claims: readonly OutputClaim[], version: number): Promise<'saved' | 'stale'> {
    if ((this.outputs.get(bucket)?.version ?? 0) !== version) return Promise.resolve('stale');
    this.outputs.set(bucket, { claims: copyPlain(claims), version: version + 1 });
    return Promise.resolve('saved');
  }
}

interface Place {
  readonly createdAt: number;
  readonly jobId: string;
}

const placeOf = (job: JobRecord): Place => ({ createdAt: job.createdAt, jobId: job.jobId });
const cursorOf = (place: Place): string => `${place.createdAt}~${place.jobId}`;

/** Newest first; jobs of one millisecond by id. */
function comparePlaces(a: Place, b: Place): number {
  if (a.createdAt !== b.createdAt) return b.createdAt - a.createdAt;
  return a.jobId < b.jobId ? -1 : a.jobId > b.jobId ? 1 : 0;
}

function parseCursor(cursor: string): Place {
  const match = /^(\d{1,16})~([a-z0-9-]+)$/.exec(cursor);
  if (match?.[1] === undefined || match[2] === undefined) {
    throw new InvalidInputError('cursor must be one that an earlier list gave', { field: 'cursor' });
  }
  return { createdAt: Number(match[1]), jobId: match[2] };
}
