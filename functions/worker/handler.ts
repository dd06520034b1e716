import type { Context } from 'aws-lambda';
import { attemptPayloadSchema } from '../../src/contracts/payloads.ts';
import { runAttempt } from '../../src/worker/run-attempt.ts';
import { durationMs, later } from '../../src/contracts/units.ts';
import { buildWorkerDeps, WarmWorker } from '../shared/build-worker-deps.ts';
import { lambdaPlace } from '../shared/place.ts';

const worker = lambdaPlace(process.env).then(
  (place) => new WarmWorker((payload) => buildWorkerDeps(process.env, place, payload)),
);

/** Runs one attempt. Never throws for an attempt that fails: its record says why, and the scheduler decides. */
export const handler = async (event: unknown, context: Context): Promise<{ outcome: string }> => {
  const payload = attemptPayloadSchema.parse(event);
  // A warm environment still holds the buffers of its last attempt; V8 counts them late, resident memory at once.
  globalThis.gc?.();
  const deps = (await worker).depsFor(payload);
  const endsAt = later(deps.clock.now(), durationMs(context.getRemainingTimeInMillis()));
  return { outcome: await runAttempt({ ...deps, endsAt, invocation: context.awsRequestId }, payload) };
};
