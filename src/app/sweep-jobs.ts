import { InvalidInputError } from '../contracts/errors.ts';
import { parseJobId } from '../contracts/ids.ts';
import { limits } from '../contracts/limits.ts';
import { type EndingJob, finalJobStates, type JobRecord } from '../contracts/records.ts';
import { type DurationMs, durationMs, type EpochMs, elapsedMs } from '../contracts/units.ts';
import { forEachBounded } from '../lib/bounded.ts';
import type { Coordinator } from '../ports/coordinator.ts';
import type { JobPage } from '../ports/job-store.ts';
import type { SweepMark } from '../ports/sweep-mark.ts';
import { executionOf, orphanError } from './end-orphans.ts';
import { failJob } from './fail-job.ts';
import type { FinishDeps } from './finish-job.ts';

export interface SweepDeps extends FinishDeps {
  readonly coordinator: Coordinator;
  readonly mark: SweepMark;
}

/** What a run has come to. */
export interface SweepReport {
  /** Jobs that were looked at. */
  readonly seen: number;
  /** Jobs that had no execution any more, and were ended. */
  readonly ended: number;
  /** Ended jobs whose leavings were looked for. */
  readonly cleared: number;
  /** Jobs with which something went wrong; the next run tries them again. */
  readonly failed: number;
  /** Whether it has come to the end; else the next run goes on. */
  readonly isComplete: boolean;
}

const pageJobs = 25;
/** 25,000 jobs in one run at most. */
const mostPages = 1_000;
const parallelJobs = 4;
/** After the end of a job its last worker has long ended by then, even one that nobody could stop. */
const lateWriterMs = durationMs(30 * 60_000);

/** What the sweep must know of a job; of one whose record cannot be read it knows less. */
type SweptJob = EndingJob & Partial<Pick<JobRecord, 'createdAt' | 'endedAt' | 'clearedAt' | 'error'>>;

type Outcome = 'ended' | 'cleared' | 'failed' | 'nothing';

async function sweepJob(deps: SweepDeps, job: SweptJob, patienceMs: DurationMs): Promise<Outcome> {
  const { jobId, state, endedAt, clearedAt } = job;
  if (!finalJobStates.includes(state)) {
    const execution = await executionOf(deps, job);
    if (execution === 'running') return 'nothing';
    await failJob(deps, jobId, orphanError(execution), patienceMs);
    return 'ended';
  }
  const now = deps.clock.now();
  const since = endedAt ?? job.createdAt;
  if (clearedAt !== undefined || since === undefined || elapsedMs(since, now) < lateWriterMs)
    return 'nothing';
  // It keeps its end: only what it left is looked for, once, now that nobody writes any more.
  await failJob(deps, jobId, job.error ?? orphanError('succeeded'), patienceMs);
  await deps.jobs.update(jobId, finalJobStates, { clearedAt: now });
  return 'cleared';
}

/** Jobs whose records cannot be read: of them, too, an execution may be gone. */
async function salvaged({ jobs }: SweepDeps, { unreadable = [] }: JobPage): Promise<readonly EndingJob[]> {
  const found: EndingJob[] = [];
  for (const each of unreadable) {
    const jobId = parseJobId(each.jobId);
    const job = jobId === undefined ? undefined : await jobs.salvage(jobId);
    if (job !== undefined) found.push(job);
  }
  return found;
}

/** The page at a cursor; the first one where the mark holds what is no cursor, which no later run would get past. */
async function pageAt({ jobs, log }: SweepDeps, cursor: string | undefined): Promise<JobPage> {
  try {
    return await jobs.list({ limit: pageJobs, ...(cursor === undefined ? {} : { cursor }) });
  } catch (cause) {
    if (cursor === undefined || !(cause instanceof InvalidInputError)) throw cause;
    log.warn('the mark of the sweep cannot be read', { cause: cause.message });
    return jobs.list({ limit: pageJobs });
  }
}

/**
 * Ends jobs that are unfinished by their record and have no living execution, and removes what ended jobs have left,
 * of each job what is recorded as its own. Looks at the jobs of the last 11 days, newest first, by the index of their
 * creation, until `until`; where that is not enough the next run goes on from there.
 */
export async function sweepJobs(
  deps: SweepDeps,
  options: { readonly until: EpochMs; readonly patienceMs: DurationMs },
): Promise<SweepReport> {
  const counts: Record<Outcome, number> = { ended: 0, cleared: 0, failed: 0, nothing: 0 };
  const isOver = (): boolean => deps.clock.now() >= options.until;
  let cursor = await deps.mark.load();
  let isComplete = false;
  for (let page = 0; page < mostPages && !isComplete && !isOver(); page++) {
    const found = await pageAt(deps, cursor);
    const recent = found.jobs.filter(
      ({ createdAt }) => elapsedMs(createdAt, deps.clock.now()) <= limits.sweepHorizonMs,
    );
    const swept: readonly SweptJob[] = [...recent, ...(await salvaged(deps, found))];
    await forEachBounded(swept, parallelJobs, async (job) => {
      if (isOver()) return;
      const outcome = await sweepJob(deps, job, options.patienceMs).catch((cause: unknown): Outcome => {
        deps.log.warn('a job could not be swept', { jobId: job.jobId, cause: String(cause) });
        return 'failed';
      });
      counts[outcome] += 1;
    });
    if (isOver()) break; // Not all of this page: it comes once more.
    cursor = found.cursor;
    isComplete = cursor === undefined || recent.length < found.jobs.length;
  }
  await deps.mark.save(isComplete ? undefined : cursor, deps.clock.now());
  const { ended, cleared, failed, nothing } = counts;
  const report = { seen: ended + cleared + failed + nothing, ended, cleared, failed, isComplete };
  deps.log.info('swept', { ...report });
  return report;
}
