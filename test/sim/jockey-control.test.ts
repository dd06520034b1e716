import { expect, it } from 'vitest';
import { drawNoise, judge, prepare } from '../../src/experiments/jockey-runs.ts';
import { createRng } from '../../src/lib/rng.ts';

const seed = 'jockey-control/1';
const job = await prepare('A', createRng(seed));
const noise = { ...drawNoise(createRng('noise')), work: 1 };
const run = (setting: Parameters<typeof judge>[1], work = 1, change?: { atMs: number; factor: number }) =>
  judge(job, setting, {
    rng: createRng(`${seed}/judged`),
    noise: { ...noise, work },
    ...(change === undefined ? {} : { change }),
  });

it('gives a job of usual work the slots by which it meets its deadline, and not all of them', async () => {
  for (const preset of ['paper', 'outrider'] as const) {
    const { met, mostSlots } = await run({ preset });
    expect({ preset, met }).toEqual({ preset, met: true });
    expect(mostSlots).toBeLessThan(50);
  }
});

it('asks for more in a run with half as much work again, and without adaptation for no more', async () => {
  const [usual, more] = [await run({}), await run({}, 1.5)];
  expect(more.met).toBe(true);
  expect(more.mostSlots).toBeGreaterThan(usual.mostSlots);
  const fixed = await run({ preset: 'paper', control: 'once' }, 1.5);
  expect(fixed.mostSlots).toBe(fixed.firstSlots);
  expect((await run({ control: 'most' })).medianSlots).toBe(100);
});

it('follows a deadline that changes: fewer slots for twice the time, more for two thirds', async () => {
  const atMs = 300_000;
  const eased = await run({}, 1, { atMs, factor: 2 });
  expect(eased.met).toBe(true);
  expect(eased.after).toBeLessThan(eased.before);
  const tightened = await run({}, 1, { atMs, factor: 2 / 3 });
  expect(tightened.met).toBe(true);
  expect(tightened.after).toBeGreaterThan(tightened.before);
});
