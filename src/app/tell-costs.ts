import type { JobId } from '../contracts/ids.ts';
import type { AttemptRecord, JobRecord } from '../contracts/records.ts';
import { finalJobStates } from '../contracts/records.ts';
import { noCosts, noRequests, type RequestTally } from '../contracts/requests.ts';
import {
  addCosts,
  addRequests,
  costsOf,
  costsOfRequests,
  lastRequests,
  totalOf,
} from '../core/model/cost.ts';
import { lastWorkerTime } from '../core/model/last-worker-time.ts';
import { addTallies } from '../core/model/request-tally.ts';
import type { JobPatch, JobStore } from '../ports/job-store.ts';
import type { Log } from '../ports/log.ts';
import type { Prices } from '../contracts/prices.ts';
import type { RequestMeter } from '../ports/request-meter.ts';

/** A host that may count what it asks for. */
export interface CountingDeps {
  readonly requests?: RequestMeter;
  /** What it pays for that; the list where nothing is said. */
  readonly prices?: Prices;
}

/** Adds what the meter has counted for a session's job to what the session knows. */
export function takeCounts(
  { requests }: CountingDeps,
  session: { readonly jobId: JobId; coordination?: RequestTally },
): void {
  if (requests === undefined) return;
  session.coordination = addTallies(session.coordination ?? {}, requests.take(session.jobId));
}

/** Leaves what a scheduler has counted to whoever enters next. */
export async function keepCounts(
  deps: CountingDeps & { readonly jobs: JobStore },
  session: { readonly jobId: JobId; readonly epoch: number; coordination?: RequestTally },
): Promise<void> {
  takeCounts(deps, session);
  const { jobId, epoch, coordination } = session;
  if (coordination !== undefined) await deps.jobs.update(jobId, ['running'], { coordination }, { epoch });
}

/** Under which name a process counts for a submission, whose job has no id yet. */
export const submissionOwner = 'submission';

/** What a step of a job's beginning or end has counted, on top of what its record says; nothing where nobody counts. */
export function countedPatch({ requests, prices }: CountingDeps, job: JobRecord): JobPatch {
  if (requests === undefined) return {};
  const tally = requests.take(job.jobId);
  const costs = addCosts(job.costs ?? noCosts, costsOf(tally, 0, prices));
  return {
    coordination: addTallies(job.coordination ?? {}, tally),
    requests: addRequests(job.requests ?? noRequests, tally),
    costs,
    dollars: totalOf(costs),
  };
}

/** As `countedPatch`, with the requests and the time of attempts that stopped after their job's end was known. */
function lastPatch(deps: CountingDeps, job: JobRecord, attempts: readonly AttemptRecord[]): JobPatch {
  const patch = countedPatch(deps, job);
  if (patch.requests === undefined) return patch;
  const requests = lastRequests(patch.requests, attempts, patch.coordination ?? {});
  const { compute, ...time } = lastWorkerTime(job, patch.costs?.compute ?? 0, attempts, deps.prices);
  const costs = costsOfRequests(requests, compute, deps.prices);
  // A record whose stages cannot be read keeps them as they are.
  const worked = time.workerMs > job.workerMs ? time : {};
  return { ...patch, ...worked, requests, costs, dollars: totalOf(costs) };
}

/**
 * Adds to the record of a job that has ended what its ending has asked for since, and `attempts`, all of the job's as
 * they were when they had stopped. Good to know and nothing more: never throws.
 */
export async function tellLastCounts(
  deps: CountingDeps & { readonly jobs: JobStore; readonly log: Log },
  jobId: JobId,
  attempts: readonly AttemptRecord[] = [],
): Promise<void> {
  if (deps.requests === undefined) return;
  try {
    const job = await deps.jobs.load(jobId);
    if (job !== undefined) await deps.jobs.update(jobId, finalJobStates, lastPatch(deps, job, attempts));
  } catch (cause) {
    deps.log.warn('costs-not-kept', { jobId, cause: String(cause) });
  }
}
