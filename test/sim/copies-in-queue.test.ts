import { describe, expect, it } from 'vitest';
import type { PolicyName } from '../../src/contracts/policy-names.ts';
import type { JobOutcome } from '../../src/sim/outcome.ts';
import type { ScenarioInput } from '../../src/sim/scenario.ts';
import { simulate } from '../../src/sim/simulate.ts';
import { runOne, scenarioOf } from './scenarios.ts';

/** Twelve tasks of 10 s, one of which takes 200 s at its first attempt, on Lambda: launches wait in its queue unseen. */
const oneSlow = (policy: PolicyName): ScenarioInput => ({
  cluster: {
    nodes: [{ count: 200, elastic: true }],
    placement: 'warmest',
    startMs: 50,
    queue: { environments: [{ fromMs: 0, count: 200 }], eventAgeMs: 900_000 },
  },
  scheduler: { tickMs: 1_000, claimLeaseMs: 900_000 },
  reports: { everyMs: 1_000 },
  jobs: [
    {
      policy,
      stages: [
        {
          name: 'map',
          tasks: 12,
          workMs: 10_000,
          attemptsMs: [[200_000, 10_000], ...Array.from({ length: 11 }, () => [10_000])],
        },
      ],
    },
  ],
});

const copiesOf = ({ attempts }: JobOutcome): number =>
  attempts.filter(({ attemptId }) => !attemptId.endsWith('/0')).length;

describe('a straggler of a job whose launches wait in the queue of Lambda', () => {
  it('is waited for without copies', async () => {
    const job = await runOne(oneSlow('none'));
    expect(job.completedAtMs).toBeGreaterThan(200_000);
    expect(copiesOf(job)).toBe(0);
  });

  it.each(['late', 'mantri', 'dolly', 'outrider', 'spark', 'hadoop', 'mapreduce', 'dryad', 'cubed'] as const)(
    'is overtaken by a copy under %s: copies have room as first attempts have',
    async (policy) => {
      const job = await runOne(oneSlow(policy));
      expect(job).toMatchObject({ state: 'succeeded', error: undefined });
      expect(copiesOf(job)).toBeGreaterThan(0);
      expect(job.completedAtMs).toBeLessThan(150_000);
    },
  );
});

describe('a simulated scheduler that is told of ends at once', () => {
  // Copies that have no room ask for no slot: it ticked again and again at one instant, while slots were spare.
  it('does not tick without end for copies that wait for room behind the queue of Lambda', async () => {
    const { jobs, events } = await simulate(
      scenarioOf({
        cluster: {
          nodes: [{ count: 60, elastic: true }],
          placement: 'warmest',
          startMs: 50,
          queue: { environments: [{ fromMs: 0, count: 2 }], eventAgeMs: 900_000 },
        },
        scheduler: { tickMs: 1_000, claimLeaseMs: 900_000, wakeOnEnd: true },
        reports: { everyMs: 1_000 },
        jobs: [
          {
            policy: 'mapreduce',
            arrivals: { kind: 'list', atMs: [0, 5_000, 10_000, 15_000] },
            stages: [
              {
                name: 'map',
                tasks: 12,
                workMs: 10_000,
                attemptsMs: [[200_000, 10_000], ...Array.from({ length: 11 }, () => [10_000])],
              },
            ],
          },
        ],
        maxEvents: 200_000,
      }),
      { seed: '1' },
    );
    expect(jobs.map(({ state }) => state)).toEqual(Array.from({ length: 4 }, () => 'succeeded'));
    expect(events).toBeLessThan(50_000);
  });
});
