import { existsSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { traceScenario } from '../../src/experiments/trace-scenario.ts';
import { createRng } from '../../src/lib/rng.ts';
import type { JobOutcome } from '../../src/sim/outcome.ts';
import { parseScenario, type ScenarioInput } from '../../src/sim/scenario.ts';
import { simulate } from '../../src/sim/simulate.ts';
import { collectJobs } from '../../src/traces/collect-jobs.ts';
import { readTrace } from '../../src/traces/read-trace.ts';

const slots = 50;
/** Environments of Lambda: a launch takes 50 ms where one is warm, and up to 1.5 s where it is not. */
const cluster: ScenarioInput['cluster'] = {
  nodes: [{ count: slots, elastic: true }],
  placement: 'warmest',
  startMs: 50,
  cold: { startMs: { kind: 'uniform', min: 300, max: 1_500 } },
};

/** Mean time of a job, seconds, and launches of all. */
async function replay(
  jobs: ScenarioInput['jobs'],
  scheduler: ScenarioInput['scheduler'],
): Promise<{ meanS: number; launches: number; invocations: number; coldStarts: number; events: number }> {
  const scenario = parseScenario({ name: 'short-tasks', cluster, scheduler, jobs, maxEvents: 5_000_000 });
  const { jobs: outcomes, events, coldStarts } = await simulate(scenario, { seed: '1' });
  expect(outcomes.filter(({ state }) => state !== 'succeeded')).toEqual([]);
  const sumMs = outcomes.reduce(
    (sum, { completedAtMs, arrivedAtMs }) => sum + completedAtMs - arrivedAtMs,
    0,
  );
  const launches = outcomes.reduce((sum, { launches: { made } }) => sum + made, 0);
  const invocations = outcomes.reduce((sum, each) => sum + each.invocations, 0);
  return { meanS: sumMs / outcomes.length / 1_000, launches, invocations, coldStarts, events };
}

const tpch = new URL('../../../shared/data/tpch-spark/tpch_spark_tasks.jsonl.gz', import.meta.url).pathname;
const traces = [tpch].filter((path) => existsSync(path));

/** Queries of three stages of short tasks that arrive one after the other. */
const queries: ScenarioInput['jobs'] = Array.from({ length: 12 }, (_, job) => ({
  arrivals: { kind: 'list', atMs: [job * 2_500] },
  policy: 'none',
  stages: ['scan', 'join', 'sum'].map((name, stage, names) => ({
    name,
    tasks: [300, 100, 20][stage] ?? 1,
    upstream: names.slice(Math.max(0, stage - 1), stage),
    workMs: { kind: 'lognormal', median: 140, sigma: 0.8 },
  })),
}));

describe('jobs of short tasks', () => {
  it('take at most 1.3 times as long as where a slot is handed over at once', async () => {
    const atOnce = await replay(queries, { wakeOnEnd: true });
    const looking = await replay(queries, {});
    expect(looking.meanS).toBeLessThanOrEqual(1.3 * atOnce.meanS);
    expect(looking.launches).toBe(atOnce.launches);
    // One worker takes up several short ones: every fifth invocation at least is saved.
    expect(atOnce.invocations).toBe(atOnce.launches);
    expect(looking.invocations).toBeLessThan(0.8 * atOnce.invocations);
    expect(looking.coldStarts).toBeLessThanOrEqual(atOnce.coldStarts);
    // Packs make no job longer than its attempts one by one.
    const apart = await replay(queries, { packs: false });
    expect(apart.invocations).toBe(apart.launches);
    expect(looking.meanS).toBeLessThanOrEqual(apart.meanS);
    // What looking by the tick alone made of it.
    expect((await replay(queries, { looks: false })).meanS).toBeGreaterThan(2 * atOnce.meanS);
  });

  it.skipIf(traces.length === 0)('do so on a history of TPC-H', async () => {
    const jobs = await collectJobs(readTrace('tpch', traces[0] ?? ''), { maxJobs: 10, keep: () => true });
    const rng = createRng('trace/1');
    const replayed = traceScenario(jobs, {
      format: 'tpch',
      policy: 'none',
      host: 'hadoop',
      slots,
      load: 0.4,
      rng,
    });
    const atOnce = await replay(replayed.jobs, { wakeOnEnd: true });
    const looking = await replay(replayed.jobs, {});
    expect(looking.meanS).toBeLessThanOrEqual(1.3 * atOnce.meanS);
    expect(looking.invocations).toBeLessThan(0.6 * atOnce.invocations);
    expect(looking.coldStarts).toBeLessThanOrEqual(atOnce.coldStarts);
  });

  it('costs jobs of long tasks no looks', async () => {
    const long: ScenarioInput['jobs'] = [
      { policy: 'none', stages: [{ name: 'map', tasks: 200, workMs: 60_000 }] },
    ];
    const looking = await replay(long, {});
    const ticking = await replay(long, { looks: false });
    // Some while nothing had ended yet, ever more rarely.
    expect(looking.events - ticking.events).toBeLessThan(150);
  });
});

describe('a stage of tasks that end before their first report', () => {
  /** Two hundred tasks of a tenth of a second, but for some. */
  const run = async (slowMs: number, slow: number, seed: string): Promise<JobOutcome['attempts']> => {
    const attemptsMs = Array.from({ length: 200 }, (_, task) => (task < slow ? [slowMs, 100] : [100]));
    const stage = { name: 'scan', tasks: 200, inputBytes: 200e6, workMs: 100, attemptsMs };
    const jobs: ScenarioInput['jobs'] = [{ policy: 'outrider', stages: [stage] }];
    const reports = { everyMs: 10_000, cadence: 'worker' } as const;
    const { jobs: outcomes } = await simulate(parseScenario({ cluster, reports, jobs }), { seed });
    return outcomes.flatMap(({ attempts }) => attempts);
  };

  it.each(['1', '2', '3'])('has no copies of those that take half a second more, seed %s', async (seed) => {
    expect(await run(600, 10, seed)).toHaveLength(200);
  });

  it('has one that is stuck copied once its first report is due', async () => {
    const attempts = await run(60_000, 1, '1');
    expect(attempts.filter(({ number }) => number > 0)).toHaveLength(1);
    expect(Math.max(...attempts.map(({ leftAtMs }) => leftAtMs))).toBeLessThan(6_000);
  });
});
