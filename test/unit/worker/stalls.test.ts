import { expect, it } from 'vitest';
import { epochMs } from '../../../src/contracts/units.ts';
import { beatingAttempt } from '../../support/beating-attempt.ts';
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
  let cpuMs = 0;
  const { meter, heart } = await beatingAttempt(clock, 2_000, isToldCpu ? () => cpuMs : undefined);
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
