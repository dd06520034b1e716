import type { AllocationsResponse, ToldAllocation } from '../contracts/api.ts';
import { decisionsOf } from '../contracts/decision-log.ts';
import { limits } from '../contracts/limits.ts';
import type { DecisionLog, JobStore } from '../ports/job-store.ts';
import { findJob } from './query-jobs.ts';

/**
 * What a job has asked to be its own slots for its deadline, as its log says, by time; the latest of them where there are
 * very many. Throws `NotFoundError`, and `UnreadableRecordError` where the log cannot be read.
 */
export async function listAllocations(
  { jobs, decisions }: { readonly jobs: JobStore; readonly decisions: DecisionLog },
  id: string,
): Promise<AllocationsResponse> {
  const { jobId } = await findJob(jobs, id);
  let allocations: ToldAllocation[] = [];
  let version = 0;
  for await (const entry of decisions.read(jobId)) {
    for (const decision of decisionsOf(jobId, entry, version)) {
      if (decision.kind !== 'allocate') continue;
      const { slots, smoothed, reason, facts } = decision;
      // Whoever takes a job over repeats the last entry.
      const before = allocations.at(-1);
      if (before?.slots === slots && before.smoothed === smoothed && before.reason === reason) continue;
      allocations.push({ at: entry.at, slots, smoothed, reason, facts });
    }
    version = entry.version;
    if (allocations.length > 2 * limits.allocationsTold)
      allocations = allocations.slice(-limits.allocationsTold);
  }
  return { allocations: allocations.slice(-limits.allocationsTold) };
}
