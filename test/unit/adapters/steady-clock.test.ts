import { beforeEach, expect, it, onTestFinished, vi } from 'vitest';
import { type TimedDeps, WarmWorker } from '../../../functions/shared/build-worker-deps.ts';
import { MemoryAttemptStore } from '../../../src/adapters/memory/memory-attempt-store.ts';
import { MemoryClock } from '../../../src/adapters/memory/memory-clock.ts';
import { SteadyClock } from '../../../src/adapters/node/steady-clock.ts';
import type { AttemptPayload } from '../../../src/contracts/payloads.ts';
import { durationMs } from '../../../src/contracts/units.ts';
import { AttemptMeter } from '../../../src/worker/attempt-meter.ts';
import { startHeartbeat } from '../../../src/worker/heartbeat.ts';
import { attempt, freshJobId } from '../../contract/ports/builders.ts';

const noon = Date.UTC(2030, 0, 1, 12);
const hour = 3_600_000;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date'], now: noon });
  onTestFinished(() => void vi.useRealTimers());
});

it('goes on evenly from what the machine said, put right, whatever that is set to', () => {
  let count = 500.75;
  const clock = new SteadyClock(90_000, () => count);
  expect(clock.now()).toBe(noon - 90_000);
  count += 1_000;
  for (const set of [noon - hour, noon + hour]) {
    vi.setSystemTime(set);
    expect(clock.now()).toBe(noon - 89_000);
  }
});

it.each([
  ['stood still with it', 0, hour],
  ['went on', hour, hour],
  ['went on, and the machine was set back meanwhile', hour, -hour],
])('is right once its process has been frozen for an hour and its count %s', (_, countedMs, setMs) => {
  let count = 500;
  const clock = new SteadyClock(90_000, () => count);
  count += countedMs;
  vi.setSystemTime(noon + setMs);
  clock.catchUp();
  expect(clock.now()).toBe(noon - 90_000 + hour);
});

it('is looked at anew by each invocation of a warm worker', async () => {
  const clock = new SteadyClock(0, () => 500);
  const worker = new WarmWorker(() => Promise.resolve({ clock } as TimedDeps));
  const payload = { access: 'word' } as AttemptPayload;
  expect((await worker.depsFor(payload)).clock.now()).toBe(noon);
  vi.setSystemTime(noon + hour);
  expect((await worker.depsFor(payload)).clock.now()).toBe(noon + hour);
});

it('has a worker go on to report, and hear its orders, where its machine is set back by an hour', async () => {
  const time = new MemoryClock();
  const began = time.now();
  const steady = new SteadyClock(0, () => time.now() - began);
  const clock = {
    now: () => steady.now(),
    sleep: (ms: number, signal?: AbortSignal) => time.sleep(durationMs(ms), signal),
  };
  const attempts = new MemoryAttemptStore();
  const [space, attemptId] = [{ jobId: freshJobId(), shards: 1 }, attempt(0)];
  await attempts.create(space, attemptId, clock.now());
  await attempts.claim(space, attemptId, { node: 'n', zone: 'z' }, clock.now());
  const heard: string[] = [];
  const heart = startHeartbeat({
    ...{ attempts, clock, space, attemptId, claimedAt: clock.now(), every: durationMs(10_000) },
    log: { info: () => undefined, warn: () => undefined },
    meter: new AttemptMeter(clock, new AbortController().signal, () => 0),
    onCancel: () => heard.push('cancel'),
  });
  await time.advance(60_000);
  vi.setSystemTime(noon - hour);
  const beats = async (): Promise<number> => (await attempts.all(space)).attempts[0]?.beat ?? 0;
  const before = await beats();
  await time.advance(30_000);
  expect((await beats()) - before).toBeGreaterThanOrEqual(2);
  await attempts.orderCancel(space, attemptId);
  await time.advance(10_000);
  expect(heard).toHaveLength(1);
  void heart.stop();
});
