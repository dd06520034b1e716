import { describe, expect, it } from 'vitest';
import type { JobOutcome } from '../../src/sim/outcome.ts';
import { simulate } from '../../src/sim/simulate.ts';
import { scenarioOf } from './scenarios.ts';

const taskMs = 10_000;
const [fromMs, untilMs] = [60_000, 150_000];

/** How many attempts of a job ran in the mean, from when all know the room up to when all have tasks yet. */
function meanRunning({ attempts }: JobOutcome): number {
  const ranMs = attempts.map(({ takenAtMs, leftAtMs }) =>
    Math.max(0, Math.min(leftAtMs, untilMs) - Math.max(takenAtMs, fromMs)),
  );
  return ranMs.reduce((sum, each) => sum + each, 0) / (untilMs - fromMs);
}

/** Ten jobs of one resident on an account with a hundred environments, whose launches wait in Lambda's queue. */
async function tenJobs(own: Readonly<Record<string, number>>): Promise<readonly number[]> {
  const arrivals = { kind: 'list' as const, atMs: [0] };
  const job = (tasks: number) => ({
    ...{ arrivals, policy: 'none' as const },
    stages: [{ name: 'map', tasks, workMs: taskMs }],
  });
  const { jobs } = await simulate(
    scenarioOf({
      cluster: {
        nodes: [{ count: 100, elastic: true }],
        placement: 'warmest',
        cold: { startMs: { kind: 'uniform', min: 300, max: 1_500 }, environments: 1_000, perMs: 10_000 },
        startMs: 50,
        queue: { environments: [{ fromMs: 0, count: 100 }], eventAgeMs: 900_000 },
      },
      scheduler: { claimLeaseMs: 900_000 },
      jobs: [{ ...job(1_000), ...own }, ...Array.from({ length: 9 }, () => job(110))],
    }),
    { seed: '1' },
  );
  return jobs.map(meanRunning);
}

describe('ten jobs of one resident that share the room of Lambda', () => {
  it('leave one the slots that are its own', async () => {
    const [first = 0, ...others] = await tenJobs({ guaranteedSlots: 60 });
    expect(first).toBeGreaterThanOrEqual(0.9 * 60);
    for (const other of others) expect(other).toBeGreaterThan(2);
  });

  it('share it by their weights', async () => {
    const [first = 0, second = 0] = await tenJobs({ weight: 9 });
    // 9 of 18 parts, and 1.
    expect(first).toBeGreaterThan(40);
    expect(second).toBeGreaterThan(4);
    expect(second).toBeLessThan(6);
  });
});
