import { describe, expect, it } from 'vitest';
import type { PolicyConfigInput } from '../../src/contracts/policy-config.ts';
import type { JobOutcome } from '../../src/sim/outcome.ts';
import type { ScenarioInput } from '../../src/sim/scenario.ts';
import { simulate } from '../../src/sim/simulate.ts';
import { atOnce, runOne, scenarioOf } from './scenarios.ts';

const workMs = 10_000;
const straggling = (probability: number) => ({ kind: 'mixture', probability, outlier: 8, usual: 1 }) as const;

const clonesOf = (job: JobOutcome): string[] =>
  job.attempts
    .filter(({ reason }) => reason === 'clone')
    .map(({ attemptId }) => attemptId)
    .sort();

describe('Dolly in the simulator', () => {
  const small: ScenarioInput = {
    cluster: { nodes: [{ count: 100, slots: 10 }] },
    scheduler: atOnce,
    jobs: [
      {
        policy: 'dolly',
        stages: [
          {
            name: 'map',
            tasks: 4,
            workMs,
            attemptsMs: [[80_000, 80_000, 10_000], [10_000], [10_000], [10_000, 90_000]],
          },
          { name: 'reduce', tasks: 2, workMs, upstream: ['map'], attemptsMs: [[90_000, 10_000], [10_000]] },
        ],
      },
    ],
  };

  it('starts all clones with the originals, takes the first to finish and stops the others', async () => {
    const job = await runOne({
      ...small,
      jobs: small.jobs.map((each) => ({
        ...each,
        policyConfig: { dolly: { mostClones: 3, straggleRisk: 0.01, assignment: 'cc' } },
      })),
    });
    expect(job).toMatchObject({ state: 'succeeded', completedAtMs: 20_000 });
    expect(clonesOf(job)).toEqual([
      'map/0/1',
      'map/0/2',
      'map/1/1',
      'map/1/2',
      'map/2/1',
      'map/2/2',
      'map/3/1',
      'map/3/2',
      'reduce/0/1',
      'reduce/0/2',
      'reduce/1/1',
      'reduce/1/2',
    ]);
    expect(
      Math.max(...job.attempts.filter(({ stage }) => stage === 0).map(({ takenAtMs }) => takenAtMs)),
    ).toBe(0);
    expect(Math.max(...job.attempts.map(({ leftAtMs }) => leftAtMs))).toBe(20_000);
  });

  it('clones all of a phase or nothing of it', async () => {
    // p = 10 %, ε = 5 %: two clones of four tasks, charged 8 slots; β is 5 % of 159 slots, or of 160.
    const of = (count: number) => runOne({ ...small, cluster: { nodes: [{ count }] } });
    expect(clonesOf(await of(159)).filter((id) => id.startsWith('map'))).toEqual([]);
    expect(clonesOf(await of(160)).filter((id) => id.startsWith('map'))).toEqual([
      'map/0/1',
      'map/1/1',
      'map/2/1',
      'map/3/1',
    ]);
  });

  it('does not clone downstream of what is not cloned', async () => {
    const job = await runOne({ ...small, cluster: { nodes: [{ count: 159 }] } });
    expect(clonesOf(job)).toEqual([]);
  });

  it('clones a part where the admission says so', async () => {
    const jobs = (admission: 'partial' | 'first-come') =>
      small.jobs.map((each) => ({
        ...each,
        policyConfig: { dolly: { admission, mostClones: 3, straggleRisk: 1e-6, otherwise: 'none' as const } },
      }));
    const of = (admission: 'partial' | 'first-come') =>
      runOne({ ...small, cluster: { nodes: [{ count: 160 }] }, jobs: jobs(admission) });
    const ofMap = (job: JobOutcome): string[] => clonesOf(job).filter((id) => id.startsWith('map'));
    expect(ofMap(await of('partial'))).toEqual(['map/0/1', 'map/1/1', 'map/2/1', 'map/3/1']);
    expect(ofMap(await of('first-come'))).toEqual(['map/0/1', 'map/0/2', 'map/1/1', 'map/1/2']);
  });

  /** A job of four tasks, of which one copy each is fast, and ten seconds later one of a single task. */
  const largeAndSmall = (admission: 'preemption' | 'all-or-nothing'): ScenarioInput => {
    const policyConfig: PolicyConfigInput = { dolly: { admission, assignment: 'cc', otherwise: 'none' } };
    const [first, second] = [
      [80_000, 40_000],
      [40_000, 80_000],
    ];
    return {
      // β·C is what the clones of the four tasks are charged: eight slots.
      cluster: { nodes: [{ count: 160 }] },
      scheduler: atOnce,
      jobs: [
        {
          policy: 'dolly',
          policyConfig,
          stages: [{ name: 'map', tasks: 4, workMs, attemptsMs: [first, second, first, second] }],
        },
        {
          policy: 'dolly',
          policyConfig,
          arrivals: { kind: 'list', atMs: [10_000] },
          stages: [{ name: 'map', tasks: 1, workMs, attemptsMs: [[90_000, 10_000]] }],
        },
      ],
    };
  };
  const stopsOf = (job: JobOutcome | undefined): Record<string, number> =>
    Object.fromEntries(job?.attempts.map(({ attemptId, leftAtMs }) => [attemptId, leftAtMs]) ?? []);

  it("stops a large job's clones for a small job's, and goes on with the copies that are ahead", async () => {
    const { jobs } = await simulate(scenarioOf(largeAndSmall('preemption')), { seed: '1' });
    expect(jobs.map(({ state, completedAtMs }) => [state, completedAtMs])).toEqual([
      ['succeeded', 40_000],
      ['succeeded', 20_000],
    ]);
    const { 'map/0/0': told = 0, ...others } = stopsOf(jobs[0]);
    // Its scheduler looks once a second.
    expect(told).toBeGreaterThanOrEqual(10_000);
    expect(told).toBeLessThanOrEqual(11_000);
    expect(others).toEqual({
      'map/0/1': 40_000,
      'map/1/0': 40_000,
      'map/1/1': told,
      'map/2/0': told,
      'map/2/1': 40_000,
      'map/3/0': 40_000,
      'map/3/1': told,
    });
    expect(stopsOf(jobs[1])).toEqual({ 'map/0/0': 20_000, 'map/0/1': 20_000 });
  });

  it('leaves a large job its clones where admission is all, and a small job goes without', async () => {
    const { jobs } = await simulate(scenarioOf(largeAndSmall('all-or-nothing')), { seed: '1' });
    expect(jobs.map(({ completedAtMs }) => completedAtMs)).toEqual([40_000, 100_000]);
    expect(new Set(Object.values(stopsOf(jobs[0])))).toEqual(new Set([40_000]));
  });

  it('learns from earlier jobs how often copies straggle', async () => {
    const { jobs } = await simulate(
      scenarioOf({
        cluster: { nodes: [{ count: 1_000 }] },
        scheduler: atOnce,
        jobs: [
          { arrivals: { kind: 'list', atMs: [0] }, stages: [{ name: 'map', tasks: 200, workMs }] },
          {
            arrivals: { kind: 'list', atMs: [60_000] },
            policy: 'dolly',
            stages: [{ name: 'map', tasks: 4, workMs }],
          },
        ],
      }),
      { seed: '1' },
    );
    expect(jobs.map(({ attempts }) => attempts.length)).toEqual([200, 4]);
  });

  it.each(
    (['all-or-nothing', 'preemption'] as const).flatMap((admission) =>
      ['1', '2', '3'].map((seed) => ({ admission, seed })),
    ),
  )(
    'ends every job and gives everything back, whatever fails: $admission, seed $seed',
    async ({ admission, seed }) => {
      const policy = 'dolly' as const;
      const policyConfig: PolicyConfigInput = { dolly: { budgetShare: 0.4, admission, mostClones: 3 } };
      const workMs = { kind: 'uniform', min: 1_000, max: 20_000 } as const;
      const { jobs, trace } = await simulate(
        scenarioOf({
          cluster: {
            nodes: [{ count: 40, slots: 2, elastic: true }],
            throttle: { launchesPerS: 20, burst: 10 },
            placement: 'warmest',
          },
          reports: { everyMs: 2_000, loss: 0.1 },
          faults: {
            attemptFailure: 0.05,
            lostLaunch: 0.05,
            doubleLaunch: 0.1,
            lostAttempt: 0.05,
            untilMs: 3_600_000,
          },
          jobs: [
            {
              policy,
              policyConfig,
              arrivals: { kind: 'poisson', jobs: 30, meanMs: 6_000 },
              stages: [
                { name: 'map', tasks: 3, workMs, slowdown: straggling(0.2) },
                { name: 'reduce', tasks: 2, workMs: 5_000, upstream: ['map'], slowdown: straggling(0.2) },
              ],
            },
            {
              policy,
              policyConfig,
              arrivals: { kind: 'poisson', jobs: 15, meanMs: 12_000 },
              stages: [{ name: 'map', tasks: 6, workMs, slowdown: straggling(0.2) }],
            },
          ],
        }),
        { seed, trace: true },
      );
      expect(jobs).toHaveLength(45);
      expect(jobs.some((job) => clonesOf(job).length > 0)).toBe(true);
      expect(trace.some((line) => line.includes('preempt-clones'))).toBe(admission === 'preemption');
    },
  );
});
