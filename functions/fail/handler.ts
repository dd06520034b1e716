import { failJob } from '../../src/app/fail-job.ts';
import { failInputSchema } from '../../src/contracts/payloads.ts';
import type { JobError } from '../../src/contracts/records.ts';
import { buildFinishDeps } from '../shared/build-deps.ts';
import { invocation, transitions } from '../shared/metered.ts';
import { patienceOf } from '../shared/settings.ts';

const deps = buildFinishDeps(process.env); // Per cold start; fails on missing settings.

const patienceMs = patienceOf(process.env);

/** What Catch recorded, in one line: a failed Lambda's cause is JSON with the message inside. */
export function errorOf(caught: { Error: string; Cause: string } | undefined): JobError {
  if (caught === undefined) return { name: 'Unknown', message: 'the state machine gave no cause' };
  try {
    const cause: unknown = JSON.parse(caught.Cause);
    if (typeof cause === 'object' && cause !== null && 'errorMessage' in cause) {
      return { name: caught.Error, message: String(cause.errorMessage) };
    }
  } catch {
    // Not JSON: Step Functions' own errors have a cause in words.
  }
  return { name: caught.Error, message: caught.Cause === '' ? caught.Error : caught.Cause };
}

/** Ends a job that cannot end well. */
export const handler = async (event: unknown): Promise<{ jobId: string }> => {
  const { jobId, error } = failInputSchema.parse(event);
  await invocation(deps, jobId, transitions.fail, () => failJob(deps, jobId, errorOf(error), patienceMs));
  return { jobId };
};
