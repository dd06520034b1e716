import { attemptPayloadSchema } from '../../src/contracts/payloads.ts';
import { runAttempt } from '../../src/worker/run-attempt.ts';
import { buildWorkerDeps, WarmWorker } from '../shared/build-worker-deps.ts';
import { lambdaPlace } from '../shared/place.ts';

const worker = lambdaPlace(process.env).then(
  (place) => new WarmWorker((payload) => buildWorkerDeps(process.env, place, payload)),
);

/** Runs one attempt. Never throws for an attempt that fails: its record says why, and the scheduler decides. */
export const handler = async (event: unknown): Promise<{ outcome: string }> => {
  const payload = attemptPayloadSchema.parse(event);
  // A warm environment still holds the buffers of its last attempt; V8 counts them late, resident memory at once.
  globalThis.gc?.();
  return { outcome: await runAttempt((await worker).depsFor(payload), payload) };
};
