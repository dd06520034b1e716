import { expect, it } from 'vitest';
import { MemoryAttemptStore } from '../../../src/adapters/memory/memory-attempt-store.ts';
import { durationMs, epochMs } from '../../../src/contracts/units.ts';
import { AttemptMeter } from '../../../src/worker/attempt-meter.ts';
import { startHeartbeat } from '../../../src/worker/heartbeat.ts';
import { attempt, freshJobId } from '../../contract/ports/builders.ts';
import { HandClock } from '../../support/hand-clock.ts';

/** How long an attempt says that its worker stood still, which passes so much time at once, and works for part of it. */
async function saidAfter(
  jumps: readonly { readonly ms: number; readonly cpuMs: number }[],
  isToldCpu = true,
): Promise<number | undefined> {
  const hand = new HandClock();
  const clock = {
    now: () => epochMs(hand.now()),
    sleep: (ms: number, signal?: AbortSignal) => hand.sleep(ms, signal),
  };
  const attempts = new MemoryAttemptStore();
  const space = { jobId: freshJobId(), shards: 1 };
  const attemptId = attempt(0);
  await attempts.create(space, attemptId, clock.now());
  await attempts.claim(space, attemptId, { node: 'n', zone: 'z' }, clock.now());
  const meter = new AttemptMeter(clock, new AbortController().signal, () => 0);
  const log = { info: () => undefined, warn: () => undefined };
  let cpuMs = 0;
  const heart = startHeartbeat({
    ...{ attempts, clock, log, space, meter, attemptId, claimedAt: clock.now(), every: durationMs(2_000) },
    ...(isToldCpu ? { cpuMs: () => cpuMs } : {}),
    onCancel: () => undefined,
  });
  for (const jump of jumps) {
    cpuMs += jump.cpuMs;
    hand.pass(jump.ms);
    await new Promise(setImmediate);
  }
  await heart.stop();
  return meter.progress().stalledMs;
}

const steadily = (count: number, ms: number, cpuMs: number) =>
  Array.from({ length: count }, () => ({ ms, cpuMs }));

it('is said of a worker that wakes seconds late, and has used no processor time', async () => {
  const stalledMs = await saidAfter([
    ...steadily(40, 50, 50),
    { ms: 6_000, cpuMs: 4 },
    ...steadily(40, 50, 50),
  ]);
  // Less what was left of the sleep that it overslept, which is up to a heartbeat.
  expect(stalledMs).toBeGreaterThan(4_000);
  expect(stalledMs).toBeLessThanOrEqual(6_000);
});

it.each([
  ['goes on as it should', steadily(200, 50, 50)],
  ['waits for others', steadily(200, 50, 0)],
  ['is slow: it has turns', steadily(50, 200, 25)],
  ['computes without letting anything else have its turn', [{ ms: 6_000, cpuMs: 6_000 }]],
  ['does so at an eighth of its speed', [{ ms: 6_000, cpuMs: 750 }]],
])('is not said of a worker that %s', async (_, jumps) => {
  expect(await saidAfter(jumps)).toBeUndefined();
});

it('is not said where nobody tells the processor time', async () => {
  expect(await saidAfter([{ ms: 6_000, cpuMs: 0 }], false)).toBeUndefined();
});
