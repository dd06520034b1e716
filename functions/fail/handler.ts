import { failJob } from '../../src/app/fail-job.ts';
import { failInputSchema } from '../../src/contracts/payloads.ts';
import { buildFinishDeps } from '../shared/build-deps.ts';
import { errorOf } from '../shared/caught-error.ts';
import { invocation, transitions } from '../shared/metered.ts';
import { patienceOf } from '../shared/settings.ts';

const deps = buildFinishDeps(process.env); // Per cold start; fails on missing settings.

const patienceMs = patienceOf(process.env);

/** Ends a job that cannot end well. */
export const handler = async (event: unknown): Promise<{ jobId: string }> => {
  const { jobId, error } = failInputSchema.parse(event);
  await invocation(deps, jobId, transitions.fail, () => failJob(deps, jobId, errorOf(error), patienceMs));
  return { jobId };
};
