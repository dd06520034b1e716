import { describe, expect, it } from 'vitest';
import { policyNames } from '../../src/contracts/policy-names.ts';
import { createRng } from '../../src/lib/rng.ts';
import type { JobOutcome } from '../../src/sim/outcome.ts';
import type { ScenarioInput } from '../../src/sim/scenario.ts';
import { runOne } from './scenarios.ts';

type JobInput = ScenarioInput['jobs'][number];

/** Dollars of a second of a medium worker on Lambda: 1,769 MB at $0.0000133334 for a GB. */
const lambdaSecond = (1769 / 1024) * 0.0000133334;
/** Dollars of a second of a medium worker on Fargate: 1 vCPU, 2 GB and a public address by the hour. */
const fargateSecond = (0.03238 + 2 * 0.00356 + 0.005) / 3600;
/** What an attempt asks for is below this: two objects in and out, and a record of a few dozen writes. */
const requestsMost = 0.0001;

const job = (more: Partial<JobInput> = {}): ScenarioInput => ({
  cluster: { nodes: [{ count: 10, elastic: true }], placement: 'warmest' },
  reports: { cadence: 'worker' },
  jobs: [{ policy: 'none', stages: [{ name: 'map', tasks: 100, workMs: 60_000 }], ...more }],
});

const copiesOf = ({ attempts }: JobOutcome): number =>
  attempts.filter(({ reason }) => reason === 'backup' || reason === 'clone' || reason === 'restart').length;
const launched = ({ attempts }: JobOutcome): number =>
  new Set(attempts.map(({ attemptId }) => attemptId)).size;

/** Seconds that attempts had held workers until a time, by what the simulator itself saw of them. */
const secondsUntil = ({ attempts }: JobOutcome, atMs: number): number =>
  attempts.reduce(
    (sum, { claimedAtMs, leftAtMs }) =>
      claimedAtMs === undefined ? sum : sum + Math.max(0, Math.min(leftAtMs, atMs) - claimedAtMs) / 1_000,
    0,
  );

describe('a budget in the simulator, by production ticks', () => {
  it('ends a job that is to stop, which then has cost no more than the budget and what was running', async () => {
    const outcome = await runOne(job({ budget: 0.05, onBudget: 'stop' }));
    expect(outcome.state).toBe('failed');
    expect(outcome.error).toMatch(
      /^the budget of \$0\.05 is used up: \$0\.04\d* counted so far, \d+ tasks are still owed an attempt, which costs about \$0\.001\d*, and it is to stop there \(onBudget "stop"\)$/,
    );
    // 60 s cost $0.00138: 36 fit into it, and nothing runs any more at the end.
    expect(launched(outcome)).toBeGreaterThan(28);
    expect(launched(outcome)).toBeLessThanOrEqual(36);
    expect(outcome.dollars).toBeGreaterThan(0.04);
    expect(outcome.dollars).toBeLessThanOrEqual(0.05);
  });

  it('tries one attempt where nobody knows what it costs, and none beside it that could go beyond the budget', async () => {
    const outcome = await runOne(job({ budget: 0.001, onBudget: 'stop' }));
    expect(outcome.state).toBe('failed');
    expect(launched(outcome)).toBe(1);
    expect(outcome.dollars).toBeLessThanOrEqual(60.5 * lambdaSecond + requestsMost);
  });

  it('goes on with one attempt of each task where it is not to stop, and makes no copies', async () => {
    const slow = Array.from({ length: 100 }, (_, task) => (task % 20 === 0 ? [600_000, 60_000] : [60_000]));
    const stages = [{ name: 'map', tasks: 100, workMs: 60_000, attemptsMs: slow }];
    const free = await runOne(job({ stages, policy: 'mantri' }));
    expect(copiesOf(free)).toBeGreaterThan(2);
    const bound = await runOne(job({ stages, policy: 'mantri', budget: 0.05 }));
    expect(bound.state).toBe('succeeded');
    expect(copiesOf(bound)).toBe(0);
    expect(launched(bound)).toBe(100);
    // Enough for all of it and the copies: it is as if there were none.
    const ample = await runOne(job({ stages, policy: 'mantri', budget: 5 }));
    expect(copiesOf(ample)).toBe(copiesOf(free));
    expect(ample.completedAtMs).toBe(free.completedAtMs);
  });

  it('makes no clones of a job whose budget they could use up', async () => {
    const stages = [{ name: 'map', tasks: 4, workMs: 60_000 }];
    const policyConfig = { dolly: { mostClones: 3, straggleRisk: 0.01 } } as const;
    const wide = (budget: object): ScenarioInput => ({
      ...job({ stages, policy: 'dolly', policyConfig, ...budget }),
      cluster: { nodes: [{ count: 100, slots: 10 }] },
    });
    const free = await runOne(wide({}));
    expect(copiesOf(free)).toBeGreaterThan(0);
    // Twelve attempts of at most 15 minutes each, which is all that is known of them, cost $0.25.
    expect(copiesOf(await runOne(wide({ budget: 0.3 })))).toBe(copiesOf(free));
    const bound = await runOne(wide({ budget: 0.006 }));
    expect(copiesOf(bound)).toBe(0);
    expect(bound.state).toBe('succeeded');
  });

  it('lets a task that has failed have no second attempt beyond the budget, and says so', async () => {
    const failing = { ...job({ budget: 0.02 }), faults: { attemptFailure: 0.05 } };
    const outcome = await runOne(failing);
    expect(outcome.state).toBe('failed');
    expect(outcome.error).toMatch(
      /^the budget of \$0\.02 is used up: \$0\.0\d+ counted so far, and stage map, task \d+ may have no second attempt after its first: /,
    );
    const seconds = outcome.attempts.filter(({ number }) => number > 0);
    expect(seconds).toEqual([]);
    const rich = await runOne({ ...job({ budget: 2 }), faults: { attemptFailure: 0.05 } });
    expect(rich.state).toBe('succeeded');
    expect(rich.attempts.filter(({ number }) => number > 0).length).toBeGreaterThan(0);
  });

  it('counts a minute of Fargate for attempts of a second', async () => {
    const worker = { kind: 'fargate', size: 'medium' } as const;
    const stages = [{ name: 'map', tasks: 100, workMs: 1_000 }];
    // A minute costs $0.00074: five fit into $0.004, where sixty seconds of work would by far.
    const outcome = await runOne(job({ stages, worker, budget: 0.004, onBudget: 'stop' }));
    expect(outcome.state).toBe('failed');
    expect(launched(outcome)).toBeLessThanOrEqual(5);
    expect(outcome.dollars).toBeLessThanOrEqual(0.004 + 60 * fargateSecond);
  });
});

/** A job of two stages that draws its policy, its stragglers, its faults and a budget about what it costs. */
function drawn(seed: number): ScenarioInput {
  const rng = createRng(`budget:${String(seed)}`);
  const pick = <T>(choices: readonly T[]): T => {
    const chosen = choices[Math.floor(rng.next() * choices.length)];
    if (chosen === undefined) throw new Error('nothing to choose from');
    return chosen;
  };
  const tasks = pick([1, 5, 20, 60]);
  const workMs = pick([2_000, 20_000, 90_000]);
  const whole = ((tasks + 5) * workMs * lambdaSecond) / 1_000;
  return {
    cluster: { nodes: [{ count: pick([3, 10, 30]), elastic: true }], placement: 'warmest', queue: {} },
    reports: { cadence: 'worker', delayMs: pick([0, 3_000]) },
    scheduler: { claimLeaseMs: 30_000 },
    faults: {
      attemptFailure: pick([0, 0.05]),
      lostAttempt: pick([0, 0.05]),
      doubleLaunch: pick([0, 0.2]),
      lostLaunch: pick([0, 0.05]),
      lostOutput: pick([0, 0.05]),
    },
    jobs: [
      {
        policy: pick(policyNames),
        budget: whole * pick([0.1, 0.5, 1.1, 3]),
        onBudget: 'stop',
        stages: [
          { name: 'map', tasks, workMs, slowdown: { kind: 'pareto', scale: 1, shape: 1.5, max: 15 } },
          { name: 'reduce', tasks: 5, upstream: ['map'], workMs },
        ],
      },
    ],
  };
}

describe('any job that is to stop at its budget', () => {
  it.each(Array.from({ length: 40 }, (_, seed) => seed))(
    'launches nothing once it has spent that, draw %i',
    async (seed) => {
      const scenario = drawn(seed);
      const outcome = await runOne(scenario, String(seed));
      const cap = scenario.jobs[0]?.budget ?? 0;
      // By the simulator's own record of who held a worker when, and not by what the scheduler has counted. A report that
      // is late by 3 s, or a death that nobody told of, is seen so much later.
      const seen = [...outcome.attempts].sort((a, b) => a.takenAtMs - b.takenAtMs);
      for (const { takenAtMs, attemptId } of seen) {
        const spent = secondsUntil(outcome, takenAtMs - 1_000) * lambdaSecond;
        expect(spent, attemptId).toBeLessThanOrEqual(cap * 1.02 + 5 * 4 * lambdaSecond);
      }
      if (outcome.state === 'failed' && !/failed \d+ times/.test(outcome.error ?? ''))
        expect(outcome.error).toMatch(/^the budget of /);
    },
  );
});

describe('a job that has begun to read what is lost', () => {
  it.each([0, 1, 2, 3, 4, 5])(
    'makes it again before it pays for tasks that wait for it, draw %i',
    async (seed) => {
      // Of 40 reduces of which nobody knows what they take 30 wait for a place: 15 minutes each would be $0.62.
      const stages = [
        { name: 'map', tasks: 20, workMs: 60_000 },
        { name: 'reduce', tasks: 40, upstream: ['map'], workMs: 10_000 },
      ];
      const scenario = { ...job({ stages, budget: 0.3 }), faults: { lostOutput: 0.1 }, maxEvents: 100_000 };
      const outcome = await runOne(scenario, String(seed));
      expect(outcome.state).toBe('succeeded');
      // Two waves of maps and four of reduces, and each lost map again beside others.
      expect(outcome.completedAtMs).toBeLessThan(600_000);
      expect(outcome.dollars).toBeLessThan(0.3);
    },
  );
});
