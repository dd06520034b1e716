import { tmpdir } from 'node:os';
import type { Context } from 'aws-lambda';
import { attemptPayloadSchema } from '../../src/contracts/payloads.ts';
import { runPack } from '../../src/worker/run-pack.ts';
import { durationMs, later } from '../../src/contracts/units.ts';
import { buildWorkerDeps, WarmWorker } from '../shared/build-worker-deps.ts';
import { lambdaPlace } from '../shared/place.ts';
import { clearScratch } from './clear-scratch.ts';
import { GiveBack } from './give-back.ts';

// An environment runs one attempt at a time, so that nobody works on what is there before the first.
const cleared = clearScratch(tmpdir());
const worker = lambdaPlace(process.env).then(
  (place) => new WarmWorker((payload) => buildWorkerDeps(process.env, place, payload)),
);

const memory = new GiveBack({
  residentBytes: () => process.memoryUsage.rss(),
  collect: () => globalThis.gc?.(),
});
const giveBack = (): void => {
  memory.run();
};

/**
 * Runs an attempt, and those that ride with it. Never throws for an attempt that fails: its record says why, and the
 * scheduler decides.
 */
export const handler = async (event: unknown, context: Context): Promise<{ outcome: string }> => {
  const payload = attemptPayloadSchema.parse(event);
  giveBack();
  await cleared;
  const deps = await (await worker).depsFor(payload);
  const endsAt = later(deps.clock.now(), durationMs(context.getRemainingTimeInMillis()));
  const work = { ...deps, endsAt, invocation: context.awsRequestId };
  return { outcome: (await runPack(work, payload, { beforeNext: giveBack })).join(' ') };
};
