import { describe, expect, it } from 'vitest';
import type { JobOutcome } from '../../src/sim/outcome.ts';
import type { ScenarioInput } from '../../src/sim/scenario.ts';
import { runOne } from './scenarios.ts';

type Steps = { fromMs: number; count: number }[];

/** Functions of an account of which others leave so many environments, of the slots that the job is allowed. */
const behindQueue = (slots: number, environments: Steps): ScenarioInput['cluster'] => ({
  nodes: [{ count: slots, elastic: true }],
  placement: 'warmest',
  cold: { startMs: { kind: 'uniform', min: 300, max: 1_500 }, environments: 1_000, perMs: 10_000 },
  startMs: 50,
  queue: { environments, eventAgeMs: 900_000 },
});

const always = (count: number): Steps => [{ fromMs: 0, count }];

const run = (
  slots: number,
  environments: Steps,
  tasks: number,
  workMs = 60_000,
  seed = '1',
): Promise<JobOutcome> =>
  runOne(
    {
      cluster: behindQueue(slots, environments),
      scheduler: { claimLeaseMs: 900_000 },
      jobs: [{ policy: 'none', stages: [{ name: 'map', tasks, workMs }] }],
    },
    seed,
  );

/** Launches that were given up before anybody claimed them, or whose claims were refused, of all launches. */
function wastedShare({ launches, attempts }: JobOutcome): number {
  const refused = attempts.filter(({ ending }) => ending === 'refused').length;
  return (launches.unclaimed + refused) / launches.made;
}

describe('a job behind a full queue of Lambda', () => {
  it('ends well: 100 tasks of 60 s with 9 free environments, that failed after 248 s', async () => {
    const job = await run(900, always(9), 100);
    expect(job).toMatchObject({ state: 'succeeded', error: undefined });
    // Twelve waves of 60 s are the least. Waiting out the pauses of Lambda's queue, it took 1,036 s.
    expect(job.completedAtMs).toBeLessThan(800_000);
    expect(wastedShare(job)).toBeLessThanOrEqual(0.05);
  });

  it('ends well: 10,000 tasks on 1,000 slots with 50 free environments', async () => {
    const job = await run(1_000, always(50), 10_000);
    expect(job).toMatchObject({ state: 'succeeded', error: undefined, tasks: 10_000 });
    expect(wastedShare(job)).toBeLessThanOrEqual(0.05);
    // 200 waves of 60 s are the least.
    expect(job.completedAtMs).toBeLessThan(12_000_000 * 1.05);
  });

  it.each([1, 2, 3, 10, 100])('ends well with %i free environments', async (free) => {
    const job = await run(900, always(free), 120, 20_000);
    expect(job).toMatchObject({ state: 'succeeded', error: undefined });
    expect(wastedShare(job)).toBeLessThanOrEqual(0.05);
    expect(job.attempts.filter(({ ending }) => ending === 'won')).toHaveLength(120);
  });

  it.each([
    [10, 3, 60_000],
    [10, 3, 5_000],
    [30, 2, 20_000],
    [40, 5, 60_000],
    [100, 9, 60_000],
  ])('wastes few launches of %i tasks with %i free environments of %i ms', async (tasks, free, workMs) => {
    const job = await run(900, always(free), tasks, workMs);
    expect(job).toMatchObject({ state: 'succeeded', error: undefined });
    expect(wastedShare(job)).toBeLessThanOrEqual(0.05);
    // Room that is held for launches in the queue costs less than a third, also where a few environments are all.
    expect(job.completedAtMs).toBeLessThan(1.3 * Math.ceil(tasks / free) * workMs + 30_000);
  });

  // The last launch waits in the queue while an environment is free: of ten, one that is made anew is too many.
  it.each(['3', '7', '10', '12'])('wastes no launch of ten tasks, seed %s', async (seed) => {
    const job = await run(900, always(3), 10, 60_000, seed);
    expect(job).toMatchObject({ state: 'succeeded', launches: { made: 10, unclaimed: 0 } });
    expect(job.completedAtMs).toBeLessThan(1.3 * 240_000);
  });

  it('uses what becomes free in the midst of it within a minute', async () => {
    const job = await run(1_000, [...always(50), { fromMs: 300_000, count: 1_000 }], 3_000);
    const busyAt = (ms: number): number =>
      job.attempts.filter(({ takenAtMs, leftAtMs }) => takenAtMs <= ms && ms < leftAtMs).length;
    expect(busyAt(295_000)).toBe(50);
    expect(busyAt(420_000)).toBeGreaterThan(900);
    expect(wastedShare(job)).toBeLessThanOrEqual(0.05);
  });

  it('waits out a drought of an hour without a failure, and goes on when it ends', async () => {
    const drought = [...always(20), { fromMs: 100_000, count: 0 }, { fromMs: 3_700_000, count: 20 }];
    const job = await run(100, drought, 200);
    expect(job).toMatchObject({ state: 'succeeded', error: undefined });
    // What was left takes 10 waves, after the longest pause of Lambda's queue at the most.
    expect(job.completedAtMs).toBeLessThan(3_700_000 + 300_000 + 700_000);
  });

  it('takes no harm from the rate at which Lambda adds environments', async () => {
    const job = await runOne({
      cluster: {
        ...behindQueue(3_000, always(3_000)),
        cold: { startMs: 800, environments: 1_000, perMs: 10_000 },
      },
      scheduler: { claimLeaseMs: 900_000 },
      jobs: [{ policy: 'none', stages: [{ name: 'map', tasks: 6_000, workMs: 60_000 }] }],
    });
    expect(job).toMatchObject({ state: 'succeeded', error: undefined });
    expect(wastedShare(job)).toBeLessThanOrEqual(0.05);
    expect(job.completedAtMs).toBeLessThan(240_000);
  });

  it('loses no time where there is room for all', async () => {
    const job = await run(1_000, always(1_000), 1_000);
    expect(job.launches).toEqual({ made: 1_000, unclaimed: 0 });
    expect(job.completedAtMs).toBeLessThan(60_000 + 20_000);
  });

  it('fails in the end where nothing ever begins, and says so', async () => {
    const job = await run(100, always(0), 50);
    expect(job.state).toBe('failed');
    expect(job.error).toMatch(
      /^no worker has begun within 6 h of the job's first launch, of \d+: others use up/,
    );
    expect(job.completedAtMs).toBeGreaterThan(6 * 3_600_000);
    expect(job.launches.made).toBeLessThan(600);
  });
});
