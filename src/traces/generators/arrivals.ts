import type { Rng } from '../../lib/rng.ts';
import type { TraceJob } from '../trace-job.ts';

/**
 * The jobs, in their order, with Poisson arrivals: independent exponential gaps of mean `meanGapMs`, in whole
 * milliseconds, the first job at 0. Arrivals that a trace records are replaced. Takes one number a job from `rng`.
 */
export function withPoissonArrivals<Job extends TraceJob>(
  jobs: readonly Job[],
  options: { readonly meanGapMs: number; readonly rng: Rng },
): readonly (Job & { readonly submittedAtMs: number })[] {
  let atMs = 0;
  return jobs.map((job, index) => {
    const gapMs = -Math.log(1 - options.rng.next()) * options.meanGapMs;
    if (index > 0) atMs += Math.round(gapMs);
    return { ...job, submittedAtMs: atMs };
  });
}
