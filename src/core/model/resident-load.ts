import { limits } from '../../contracts/limits.ts';

/** How much of one resident a job takes whose largest stage has so many tasks: in (0, 1]. */
export function residentWeight(tasks: number): number {
  return Math.min(1, Math.max(1 / limits.jobsPerResident, tasks / limits.tasksPerResident));
}

/** Sums of weights are sums of fractions: what exceeds a whole by less than this does not exceed it. */
const tolerance = 1e-9;

/** How many residents jobs of these weights are worth: at least one, at most `most`. */
export function residentsWanted(weights: readonly number[], most: number): number {
  const load = weights.reduce((sum, weight) => sum + weight, 0);
  return Math.min(most, Math.max(1, Math.ceil(load - tolerance)));
}

/**
 * Whether a resident that serves jobs of the weights `own` takes on one more. One that has waited for `patienceMs` is
 * taken on by a resident that is full, too, so that it does not wait until others end; then ticks come more slowly.
 */
export function hasRoom(
  own: readonly number[],
  job: { readonly weight: number; readonly waitedMs: number },
  patienceMs: number,
): boolean {
  if (own.length === 0) return true;
  if (own.length >= limits.mostJobsPerResident) return false;
  const load = own.reduce((sum, weight) => sum + weight, 0);
  return load + job.weight <= 1 + tolerance || job.waitedMs >= patienceMs;
}
