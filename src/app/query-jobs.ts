import type { AttemptsResponse, ListResponse } from '../contracts/api.ts';
import { InvalidInputError, NotFoundError } from '../contracts/errors.ts';
import { parseJobId } from '../contracts/ids.ts';
import { limits } from '../contracts/limits.ts';
import type { AttemptRecord, JobRecord } from '../contracts/records.ts';
import type { AttemptStore } from '../ports/attempt-store.ts';
import type { JobStore } from '../ports/job-store.ts';

const defaultJobs = 20;

/** The job of an id as a user wrote it. Throws `NotFoundError`, also where the text is no job id at all. */
export async function findJob(jobs: JobStore, id: string): Promise<JobRecord> {
  const jobId = parseJobId(id);
  const job = jobId === undefined ? undefined : await jobs.load(jobId);
  if (job === undefined) throw new NotFoundError(`no such job: ${id}`, { field: 'id' });
  return job;
}

/** What a query string asks of a list. */
export interface PageQuery {
  readonly limit?: string | undefined;
  readonly cursor?: string | undefined;
}

/** The number in a query string; throws `InvalidInputError` where it is not from 1 to `most`. */
function limitOf({ limit }: PageQuery, most: number): number | undefined {
  if (limit === undefined) return undefined;
  const wanted = /^\d{1,9}$/.test(limit) ? Number(limit) : 0;
  if (wanted < 1 || wanted > most)
    throw new InvalidInputError(`limit must be a whole number from 1 to ${most}`, { field: 'limit' });
  return wanted;
}

/** The bytes that something takes in an answer, which is a text within a document: quotes are escaped twice. */
const bytesInAnswer = (value: unknown): number =>
  new TextEncoder().encode(JSON.stringify(JSON.stringify(value))).length;

/**
 * A page of jobs, newest first: of 1 to 100, by default 20, and fewer where they would not fit an answer. Throws
 * `InvalidInputError` for another limit or a strange cursor.
 */
export async function listJobs(jobs: JobStore, query: PageQuery): Promise<ListResponse> {
  const cursor = query.cursor === undefined ? {} : { cursor: query.cursor };
  let limit = limitOf(query, limits.jobsPerPage) ?? defaultJobs;
  for (;;) {
    const page = await jobs.list({ limit, ...cursor });
    // Of one job the record is bounded.
    if (limit === 1 || bytesInAnswer(page) <= limits.answerBytes) return page;
    limit = Math.ceil(limit / 2);
  }
}

/** Where an attempt stands in the list of those of its job: it never moves. */
const placeOf = ({ launchedAt, attemptId }: AttemptRecord): string => `${launchedAt}~${attemptId}`;

function afterCursor({ cursor }: PageQuery): (attempt: AttemptRecord) => boolean {
  if (cursor === undefined) return () => true;
  const [, at = '', id = ''] = /^(\d{1,16})~([a-z0-9/-]{1,120})$/.exec(cursor) ?? [];
  if (id === '')
    throw new InvalidInputError('cursor must be one that an earlier list gave', { field: 'cursor' });
  return ({ launchedAt, attemptId }) =>
    launchedAt > Number(at) || (launchedAt === Number(at) && attemptId > id);
}

/**
 * The attempts of a job whose records can be read, by launch, and how many cannot; empty before it is planned. A page:
 * at most as many as `limit` says, and no more than fit an answer; all of them where that is so.
 */
export async function listAttempts(
  deps: { readonly jobs: JobStore; readonly attempts: AttemptStore },
  id: string,
  query: PageQuery = {},
): Promise<AttemptsResponse> {
  const limit = limitOf(query, limits.attemptsPerPage) ?? limits.attemptsPerPage;
  const isAfter = afterCursor(query);
  const job = await findJob(deps.jobs, id);
  if (job.shards === undefined) return { attempts: [] };
  const space = { jobId: job.jobId, shards: job.shards };
  const { attempts, unreadable = [] } = await deps.attempts.all(space);
  const left = unreadable.filter(({ kind }) => kind === 'attempt' || kind === 'unknown').length;
  const rest = attempts
    .filter(isAfter)
    .toSorted((a, b) => a.launchedAt - b.launchedAt || (a.attemptId < b.attemptId ? -1 : 1));
  const page = fitting(rest.slice(0, limit));
  const last = page.at(-1);
  return {
    ...(left === 0 ? {} : { unreadable: left }),
    attempts: page,
    ...(last === undefined || page.length === rest.length ? {} : { cursor: placeOf(last) }),
  };
}

/** As many of the first as fit an answer. */
function fitting(attempts: readonly AttemptRecord[]): readonly AttemptRecord[] {
  let sizeBytes = 1_000;
  const end = attempts.findIndex((attempt) => {
    sizeBytes += bytesInAnswer(attempt) + 1;
    return sizeBytes > limits.answerBytes;
  });
  return end < 0 ? attempts : attempts.slice(0, Math.max(1, end));
}
