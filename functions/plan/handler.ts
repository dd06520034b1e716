import { planJob } from '../../src/app/plan-job.ts';
import { jobInputSchema } from '../../src/contracts/payloads.ts';
import { buildPlanDeps } from '../shared/build-deps.ts';
import { invocation, transitions } from '../shared/metered.ts';

const deps = buildPlanDeps(process.env); // Per cold start; fails on missing settings.

/** Plans a job; answers what the next state needs. */
export const handler = async (event: unknown): Promise<{ jobId: string }> => {
  const { jobId } = jobInputSchema.parse(event);
  await invocation(deps, jobId, transitions.plan, () => planJob(deps, jobId));
  return { jobId };
};
