import { describe, expect, it } from 'vitest';
import type { PolicyName } from '../../src/contracts/policy-names.ts';
import type { JobOutcome } from '../../src/sim/outcome.ts';
import type { ScenarioInput } from '../../src/sim/scenario.ts';
import { simulate } from '../../src/sim/simulate.ts';
import { scenarioOf } from './scenarios.ts';

const onFargate = { kind: 'fargate', size: 'medium' } as const;

/**
 * Lambda has one environment, which a job of many tasks keeps busy for an hour. Another has read its input there before,
 * and now runs twelve tasks of 10 s on Fargate, one of which takes 200 s at its first attempt.
 */
const besideFullLambda = (policy: PolicyName): ScenarioInput => ({
  cluster: {
    nodes: [{ count: 200, elastic: true }],
    placement: 'warmest',
    startMs: 50,
    fargateStartMs: 3_000,
    queue: { environments: [{ fromMs: 0, count: 1 }] },
  },
  scheduler: { tickMs: 1_000, claimLeaseMs: 900_000 },
  reports: { everyMs: 1_000 },
  jobs: [
    {
      name: 'mixed',
      policy,
      stages: [
        { name: 'read', tasks: 1, workMs: 2_000 },
        {
          name: 'work',
          tasks: 12,
          upstream: ['read'],
          worker: onFargate,
          workMs: 10_000,
          attemptsMs: [[200_000, 10_000], ...Array.from({ length: 11 }, () => [10_000])],
        },
      ],
    },
    {
      name: 'full',
      arrivals: { kind: 'list', atMs: [3_000] },
      stages: [{ name: 'map', tasks: 120, workMs: 30_000 }],
    },
  ],
});

async function mixedOf(policy: PolicyName): Promise<JobOutcome> {
  const { jobs } = await simulate(scenarioOf(besideFullLambda(policy)), { seed: '1' });
  const job = jobs.find(({ name }) => name === 'mixed');
  if (job === undefined) throw new Error('no such job');
  return job;
}

describe('a straggler on Fargate, of a job of which a stage ran on Lambda', () => {
  it('is waited for without copies, and takes no environment of Lambda', async () => {
    const job = await mixedOf('none');
    expect(job.completedAtMs).toBeGreaterThan(200_000);
    expect(job.completedAtMs).toBeLessThan(230_000);
  });

  it.each(['late', 'mantri', 'outrider', 'spark', 'hadoop', 'mapreduce', 'dryad', 'cubed'] as const)(
    'is overtaken by a copy under %s while Lambda is full: the copy needs no room there',
    async (policy) => {
      const job = await mixedOf(policy);
      expect(job).toMatchObject({ state: 'succeeded', error: undefined });
      expect(job.completedAtMs).toBeLessThan(150_000);
    },
  );
});
