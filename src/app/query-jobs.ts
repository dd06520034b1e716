import type { AttemptsResponse, ListResponse } from '../contracts/api.ts';
import { InvalidInputError, NotFoundError } from '../contracts/errors.ts';
import { parseJobId } from '../contracts/ids.ts';
import type { JobRecord } from '../contracts/records.ts';
import { epochMs } from '../contracts/units.ts';
import type { AttemptStore } from '../ports/attempt-store.ts';
import type { JobStore } from '../ports/job-store.ts';

const maxPage = 100;

/** The job of an id as a user wrote it. Throws `NotFoundError`, also where the text is no job id at all. */
export async function findJob(jobs: JobStore, id: string): Promise<JobRecord> {
  const jobId = parseJobId(id);
  const job = jobId === undefined ? undefined : await jobs.load(jobId);
  if (job === undefined) throw new NotFoundError(`no such job: ${id}`, { field: 'id' });
  return job;
}

/** A page of jobs, newest first. `limit` is text from a query string: 1 to 100, by default 20. */
export async function listJobs(
  jobs: JobStore,
  query: { readonly limit?: string | undefined; readonly cursor?: string | undefined },
): Promise<ListResponse> {
  const limit = query.limit === undefined ? 20 : Number(query.limit);
  if (!Number.isInteger(limit) || limit < 1 || limit > maxPage) {
    throw new InvalidInputError(`limit must be a whole number from 1 to ${maxPage}`, { field: 'limit' });
  }
  return jobs.list({ limit, ...(query.cursor === undefined ? {} : { cursor: query.cursor }) });
}

/** Every attempt of a job whose record can be read, by launch, and how many cannot; empty before it is planned. */
export async function listAttempts(
  deps: { readonly jobs: JobStore; readonly attempts: AttemptStore },
  id: string,
): Promise<AttemptsResponse> {
  const job = await findJob(deps.jobs, id);
  if (job.shards === undefined) return { attempts: [] };
  const space = { jobId: job.jobId, shards: job.shards };
  const { attempts, unreadable = [] } = await deps.attempts.changes(space, epochMs(0));
  const left = unreadable.filter(({ kind }) => kind === 'attempt' || kind === 'unknown').length;
  return {
    ...(left === 0 ? {} : { unreadable: left }),
    attempts: attempts.toSorted(
      (a, b) => a.launchedAt - b.launchedAt || (a.attemptId < b.attemptId ? -1 : 1),
    ),
  };
}
