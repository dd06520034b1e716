import { describe, expect, it } from 'vitest';
import { hostOf } from '../../src/sim/host-profiles.ts';
import type { JobOutcome } from '../../src/sim/outcome.ts';
import type { ScenarioInput } from '../../src/sim/scenario.ts';
import { simulate } from '../../src/sim/simulate.ts';
import { runOne, scenarioOf } from './scenarios.ts';

type Job = ScenarioInput['jobs'][number];

/** A job on Fargate with so many slots. */
function onFargate(slots: number, job: Job): ScenarioInput {
  const { cluster, scheduler, reports, worker } = hostOf('fargate', slots, 100_000);
  return { cluster, scheduler, reports, jobs: [{ worker, ...job }] };
}

const mapOf = (tasks: number, workMs: number): Job => ({
  policy: 'none',
  stages: [{ name: 'map', tasks, workMs }],
});

const takenBy = ({ attempts }: JobOutcome, ms: number): number =>
  attempts.filter(({ takenAtMs }) => takenAtMs <= ms).length;

describe('the host fargate', () => {
  it('starts a task for each worker, half a minute to a minute before it works, in any of three zones', async () => {
    const job = await runOne(onFargate(4, mapOf(12, 100_000)));
    expect(job.state).toBe('succeeded');
    expect(new Set(job.attempts.map(({ node }) => node)).size).toBe(12);
    expect(new Set(job.attempts.map(({ zone }) => zone)).size).toBe(3);
    for (const { takenAtMs, claimedAtMs = 0 } of job.attempts) {
      expect(claimedAtMs - takenAtMs).toBeGreaterThanOrEqual(30_000);
      expect(claimedAtMs - takenAtMs).toBeLessThanOrEqual(60_000);
    }
    // Three waves, each of which begins within a tick of the one before.
    expect(job.completedAtMs).toBeGreaterThan(3 * 130_000);
    expect(job.completedAtMs).toBeLessThan(3 * 162_000);
  });

  it('starts a hundred tasks at once and then twenty a second', async () => {
    const job = await runOne(onFargate(300, mapOf(300, 100_000)));
    expect(takenBy(job, 900)).toBeGreaterThanOrEqual(100);
    for (const seconds of [0, 1, 3, 5, 8])
      expect(takenBy(job, seconds * 1_000)).toBeLessThanOrEqual(100 + 20 * seconds);
    expect(takenBy(job, 13_000)).toBe(300);
  });

  it('costs what Fargate asks for, a minute at the least', async () => {
    const dear = await runOne(onFargate(10, mapOf(10, 600_000)));
    const short = await runOne(onFargate(10, mapOf(10, 20_000)));
    // Ten tasks of 1 vCPU and 2 GB: for ten minutes each, and for one.
    expect(dear.dollars).toBeCloseTo((10 * 600 * (0.03238 + 2 * 0.00356 + 0.005)) / 3_600, 2);
    expect(short.dollars).toBeCloseTo((10 * 60 * (0.03238 + 2 * 0.00356 + 0.005)) / 3_600, 2);
  });
});

describe('a worker of which nothing is heard', () => {
  const silent = (changes: Partial<ScenarioInput['cluster']> = {}): Promise<JobOutcome> => {
    const { cluster, reports, ...scenario } = onFargate(4, mapOf(1, 600_000));
    return runOne({ ...scenario, cluster: { ...cluster, ...changes }, reports: { ...reports, loss: 1 } });
  };

  it('is stopped where it is a task on Fargate, seconds after it was given up', async () => {
    const [first] = (await silent()).attempts;
    expect(first?.ending).toBe('cancelled');
    expect(first?.leftAtMs).toBeLessThan(200_000);
  });

  it('works on for as long as stopping it takes', async () => {
    const [first] = (await silent({ fargateStopMs: 300_000 })).attempts;
    expect(first?.leftAtMs).toBeGreaterThan(350_000);
    expect(first?.leftAtMs).toBeLessThan(500_000);
  });
});

it('does not leave an environment to Lambda: its workers start cold after others that ran on Fargate', async () => {
  const { cluster, scheduler, reports } = hostOf('lambda', 4, 1_000);
  const { coldStarts, jobs } = await simulate(
    scenarioOf({
      cluster: { ...cluster, fargateStartMs: 10_000 },
      scheduler,
      reports,
      jobs: [
        {
          policy: 'none',
          stages: [
            { name: 'far', tasks: 4, workMs: 60_000, worker: { kind: 'fargate', size: 'medium' } },
            { name: 'near', tasks: 4, workMs: 60_000, upstream: ['far'] },
          ],
        },
      ],
    }),
    { seed: '1' },
  );
  expect(jobs[0]?.state).toBe('succeeded');
  expect(coldStarts).toBe(4);
});
