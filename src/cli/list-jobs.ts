import type { JobRecord } from '../contracts/records.ts';
import { eachPage } from '../lib/pages.ts';

/** Jobs, newest first, and by id those of them whose records cannot be read. */
export interface JobList {
  readonly jobs: readonly JobRecord[];
  readonly unreadable: readonly { readonly jobId: string; readonly message: string }[];
}

type JobPage = Pick<JobList, 'jobs'> & Partial<JobList> & { readonly cursor?: string };

/** Of one list. */
export const mostJobs = 1_000;
const pageJobs = 100;

/** Pages until there are `limit` jobs, or no more. */
export async function listJobs(
  list: (page: { readonly limit: number; readonly cursor?: string }) => Promise<JobPage>,
  limit: number,
): Promise<JobList> {
  const jobs: JobRecord[] = [];
  const unreadable: JobList['unreadable'][number][] = [];
  const ask = (cursor?: string): Promise<JobPage> => {
    const wanted = Math.min(pageJobs, limit - jobs.length);
    return list({ limit: wanted, ...(cursor === undefined ? {} : { cursor }) });
  };
  for await (const page of eachPage(ask, mostJobs + 1)) {
    jobs.push(...page.jobs);
    unreadable.push(...(page.unreadable ?? []));
    if (jobs.length >= limit) break;
  }
  return { jobs: jobs.slice(0, limit), unreadable };
}
