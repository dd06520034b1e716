import { expect, it } from 'vitest';
import { epochMs } from '../../../src/contracts/units.ts';
import { beatingAttempt } from '../../support/beating-attempt.ts';
import { HandClock } from '../../support/hand-clock.ts';

interface Jump {
  readonly ms: number;
  readonly cpuMs: number;
  /** In how many steps its worker sees the time pass. */
  readonly steps?: number;
  /** Whether the answer to the next report, or to the question for orders, comes only once it has gone on. */
  readonly holdsAnswer?: boolean;
}

/** How long an attempt says that its worker stood still, which passes so much time at once, and works for part of it. */
async function saidAfter(jumps: readonly Jump[], isToldCpu = true): Promise<number | undefined> {
  const hand = new HandClock();
  const clock = {
    now: () => epochMs(hand.now()),
    sleep: (ms: number, signal?: AbortSignal) => hand.sleep(ms, signal),
  };
  let cpuMs = 0;
  const { attempts, meter, heart } = await beatingAttempt(clock, 2_000, isToldCpu ? () => cpuMs : undefined);
  let answer: PromiseWithResolvers<undefined> | undefined;
  let asked = 0;
  const held = async <T>(ask: () => Promise<T>): Promise<T> => {
    asked += 1;
    await answer?.promise;
    return ask();
  };
  const [report, orders] = [attempts.report.bind(attempts), attempts.orders.bind(attempts)];
  attempts.report = (...given) => held(() => report(...given));
  attempts.orders = (...given) => held(() => orders(...given));
  for (const jump of jumps) {
    if (jump.holdsAnswer === true) {
      answer = Promise.withResolvers();
      for (const before = asked; asked === before;) {
        hand.pass(50);
        await new Promise(setImmediate);
      }
    }
    const { steps = 1 } = jump;
    for (let step = 0; step < steps; step++) {
      cpuMs += jump.cpuMs / steps;
      hand.pass(jump.ms / steps);
      await new Promise(setImmediate);
    }
    answer?.resolve(undefined);
    answer = undefined;
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

it('is said also where it was waiting for an answer to its report meanwhile', async () => {
  const stalledMs = await saidAfter([
    ...steadily(40, 50, 50),
    { ms: 6_000, cpuMs: 4, holdsAnswer: true },
    ...steadily(40, 50, 50),
  ]);
  expect(stalledMs).toBeGreaterThan(4_000);
  expect(stalledMs).toBeLessThanOrEqual(6_000);
});

it.each([
  ['goes on as it should', steadily(200, 50, 50)],
  ['waits for others', steadily(200, 50, 0)],
  ['waits for an answer', [...steadily(40, 50, 0), { ms: 6_000, cpuMs: 0, steps: 120, holdsAnswer: true }]],
  ['is slow: it has turns', steadily(50, 200, 25)],
  ['computes without letting anything else have its turn', [{ ms: 6_000, cpuMs: 6_000 }]],
  ['does so at an eighth of its speed', [{ ms: 6_000, cpuMs: 750 }]],
])('is not said of a worker that %s', async (_, jumps) => {
  expect(await saidAfter(jumps)).toBeUndefined();
});

it('is not said where nobody tells the processor time', async () => {
  expect(await saidAfter([{ ms: 6_000, cpuMs: 0 }], false)).toBeUndefined();
});
