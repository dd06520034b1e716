import { attemptPayloadSchema } from '../../src/contracts/payloads.ts';
import { Setting } from '../../src/contracts/settings.ts';
import { runBatch } from '../../src/worker/run-batch.ts';
import { buildWorkerDeps } from '../shared/build-worker-deps.ts';
import { fargatePlace } from '../shared/place.ts';
import { textSetting } from '../shared/settings.ts';

// A Fargate task runs one of the attempts that it was started for and ends; its payload comes in the environment of its container.
const payload = attemptPayloadSchema.parse(JSON.parse(textSetting(process.env, Setting.attemptPayload)));
const stop = new AbortController();
process.once('SIGTERM', () => {
  stop.abort(); // StopTask, or two minutes' notice of Spot: remove what was written, and end.
});
const place = await fargatePlace(process.env);
const deps = buildWorkerDeps(process.env, place, payload);
// A Fargate task lasts as long as it needs.
await runBatch({ ...deps, invocation: place.node, stopSignal: stop.signal }, payload);
