import { attemptPayloadSchema } from '../../src/contracts/payloads.ts';
import { Setting } from '../../src/contracts/settings.ts';
import { durationMs } from '../../src/contracts/units.ts';
import { PlaceTakenError } from '../../src/worker/time-limit.ts';
import { runBatch } from '../../src/worker/run-batch.ts';
import { stayForReaders } from '../../src/worker/stay-for-readers.ts';
import { buildKeepingDeps } from '../shared/build-worker-deps.ts';
import { fargatePlace } from '../shared/place.ts';
import { textSetting } from '../shared/settings.ts';

// A Fargate task runs one of the attempts that it was started for, stays as long as others read what it keeps, and ends; its payload comes in the environment of its container.
const payload = attemptPayloadSchema.parse(JSON.parse(textSetting(process.env, Setting.attemptPayload)));
/** From SIGTERM to SIGKILL, as the task definition has it (`stopTimeout`). */
const spotNotice = durationMs(120_000);
const stopNotice = durationMs(30_000);
/** After its work its last lines are written, and its connections closed, long before that. */
const lingerMs = 60_000;
const stop = new AbortController();
process.once('SIGTERM', () => {
  // Hand on what was done, or remove what was written, say so and end: the task is launched again meanwhile.
  const isOnSpot = process.env[Setting.onSpot] === 'true';
  const why = isOnSpot
    ? 'Spot needs its place, or somebody stopped it'
    : 'Fargate needs its place, or somebody stopped it';
  const notice = isOnSpot ? spotNotice : stopNotice;
  stop.abort(new PlaceTakenError(`its task was told to end: ${why}`, notice));
});
const place = await fargatePlace(process.env);
const deps = { ...(await buildKeepingDeps(process.env, place, payload)), stopSignal: stop.signal };
// A Fargate task lasts as long as it needs.
await runBatch({ ...deps, invocation: place.node }, payload);
await stayForReaders(deps, payload);
// What user code has left open keeps a process, and its task is billed for as long.
setTimeout(() => process.exit(), lingerMs).unref();
