import type { Context } from 'aws-lambda';
import { attemptPayloadSchema } from '../../src/contracts/payloads.ts';
import { runPack } from '../../src/worker/run-pack.ts';
import { durationMs, later } from '../../src/contracts/units.ts';
import { buildWorkerDeps, WarmWorker } from '../shared/build-worker-deps.ts';
import { lambdaPlace } from '../shared/place.ts';

const worker = lambdaPlace(process.env).then(
  (place) => new WarmWorker((payload) => buildWorkerDeps(process.env, place, payload)),
);

/** What a worker that has started holds, and a small attempt beside it: below this a collection gives back next to nothing. */
const plentyBytes = 128 * 1024 * 1024;

/**
 * A warm environment still holds the buffers of its last attempt; V8 counts them late, resident memory at once. Not after
 * each attempt: a collection takes longer than a small one, of which there may be thousands.
 */
function giveBack(): void {
  if (process.memoryUsage.rss() > plentyBytes) globalThis.gc?.();
}

/**
 * Runs an attempt, and those that ride with it. Never throws for an attempt that fails: its record says why, and the
 * scheduler decides.
 */
export const handler = async (event: unknown, context: Context): Promise<{ outcome: string }> => {
  const payload = attemptPayloadSchema.parse(event);
  giveBack();
  const deps = await (await worker).depsFor(payload);
  const endsAt = later(deps.clock.now(), durationMs(context.getRemainingTimeInMillis()));
  const work = { ...deps, endsAt, invocation: context.awsRequestId };
  return { outcome: (await runPack(work, payload, { beforeNext: giveBack })).join(' ') };
};
