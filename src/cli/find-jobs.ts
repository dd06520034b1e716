import { resolve } from 'node:path';
import { finalJobStates, type JobRecord } from '../contracts/records.ts';
import { oneLine, plural } from '../report/format.ts';
import { makeApiClient } from './api-client.ts';
import { defaultStateDir, findTarget, NoServiceError, StackEndedError } from './connection.ts';
import type { Console } from './console.ts';
import { type JobList, listJobs } from './list-jobs.ts';
import { keptJobs } from './run-records.ts';

/**
 * Asks the service for the newest jobs, at most `limit`, to which those join that a local stack's directory keeps of runs; where
 * there is none, or it was a local stack that has ended, reads what the state directory has of them: what is kept of runs, and
 * the stack's database.
 *
 * @throws what finding the service or asking it throws, where there are no jobs in the directory either.
 */
export async function findJobs(
  options: { readonly endpoint?: string | undefined; readonly stateDir?: string | undefined },
  limit: number,
  console: Console,
): Promise<JobList> {
  const stateDir = resolve(console.cwd, options.stateDir ?? defaultStateDir);
  try {
    const target = await findTarget(options, console);
    const client = makeApiClient(target.api);
    const listed = await listJobs((page) => client.list(page), limit);
    if (target.stack === undefined) return listed;
    return { ...listed, jobs: joined(listed.jobs, await keptJobs(stateDir), limit) };
  } catch (error) {
    if (!(error instanceof NoServiceError) && !(error instanceof StackEndedError)) throw error;
    const left = await leftJobs(stateDir, limit, console);
    if (left.jobs.length === 0 && left.unreadable.length === 0) throw error;
    return left;
  }
}

async function leftJobs(stateDir: string, limit: number, console: Console): Promise<JobList> {
  const kept = await keptJobs(stateDir);
  // The database and all that it needs: most commands do not.
  const { listEndedJobs } = await import('./ended-stack.ts');
  const ended = await listEndedJobs(stateDir, limit).catch((error: unknown) => {
    if (kept.length === 0) throw error;
    const why = oneLine(error instanceof Error ? error.message : String(error));
    console.err(`jobs of the stack in ${stateDir} are left out: ${why}\n`);
    return { jobs: [], unreadable: [] };
  });
  const jobs = joined(ended.jobs, kept, limit);
  tellUnended(jobs, console);
  return { jobs, unreadable: ended.unreadable };
}

/** Newest first, each once. What is kept of a run says more than a stack: it names inputs as their owner does. */
function joined(
  known: readonly JobRecord[],
  kept: readonly JobRecord[],
  limit: number,
): readonly JobRecord[] {
  const byId = new Map([...known, ...kept].map((job) => [job.jobId, job]));
  return [...byId.values()].toSorted((a, b) => b.createdAt - a.createdAt).slice(0, limit);
}

/** Their records say what they did then. */
function tellUnended(jobs: readonly JobRecord[], console: Console): void {
  const unended = jobs.filter(({ state }) => !finalJobStates.includes(state)).length;
  if (unended === 0) return;
  console.err(
    `${plural(unended, 'job')} had not ended when the stack did: "outrider local" with the same --state-dir goes on with them\n`,
  );
}
