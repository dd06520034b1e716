import { finishJob } from '../../src/app/finish-job.ts';
import { jobInputSchema } from '../../src/contracts/payloads.ts';
import { buildFinishStepDeps } from '../shared/build-deps.ts';
import { invocation, transitions } from '../shared/metered.ts';
import { patienceOf } from '../shared/settings.ts';

const deps = buildFinishStepDeps(process.env); // Per cold start; fails on missing settings.

/** Publishes a job's output, cleans up, and learns from the run. */
export const handler = async (event: unknown): Promise<{ jobId: string }> => {
  const { jobId } = jobInputSchema.parse(event);
  await invocation(deps, jobId, transitions.finish, () => finishJob(deps, jobId, patienceOf(process.env)));
  return { jobId };
};
