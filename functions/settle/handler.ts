import { settleExecution } from '../../src/app/end-orphans.ts';
import { executionEventSchema } from '../../src/contracts/payloads.ts';
import { buildFinishDeps } from '../shared/build-deps.ts';
import { patienceOf } from '../shared/settings.ts';

const deps = buildFinishDeps(process.env); // Per cold start; fails on missing settings.

const patienceMs = patienceOf(process.env);

/** Ends the job of an execution that has ended without doing so: aborted, timed out, or failed on its way out. */
export const handler = async (event: unknown): Promise<void> => {
  await settleExecution(deps, executionEventSchema.parse(event).detail, patienceMs);
};
