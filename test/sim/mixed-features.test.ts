import { describe, expect, it } from 'vitest';
import { simulate } from '../../src/sim/simulate.ts';
import {
  explainedLaunches,
  isRobbed,
  luckMs,
  mixedScenario,
  withoutPolicies,
} from '../support/mixed-scenarios.ts';
import { scenarioOf } from './scenarios.ts';

/** In this one Mantri pruned 39 copies that took longer than Δ to start, each before it began, and launched another. */
const found = ['68'];
const seeds = [...Array.from({ length: 48 }, (_, number) => String(number)), ...found];

/**
 * Each run checks by itself that no job uses more than it was granted, that all grants are no more slots than there
 * are, that all are given back at the end, and that it comes to an end.
 */
describe('features that meet', () => {
  it.each(seeds)('let all jobs end well, seed %s', async (seed) => {
    const scenario = mixedScenario(seed);
    const { jobs } = await simulate(scenarioOf(scenario), { seed: '1' });
    const bare = await simulate(scenarioOf(withoutPolicies(scenario)), { seed: '1' });
    const endOf = (result: typeof bare): number =>
      Math.max(...result.jobs.map(({ completedAtMs }) => completedAtMs));
    expect(endOf({ ...bare, jobs })).toBeLessThan(1.5 * endOf(bare) + luckMs(scenario));
    for (const [place, job] of jobs.entries()) {
      expect(job).toMatchObject({ state: 'succeeded', error: undefined });
      expect(job.launches.made).toBeLessThanOrEqual(explainedLaunches(job));
      const { made, unclaimed } = job.launches;
      const anyway = bare.jobs[place]?.launches.unclaimed ?? 0;
      // What no policy is to blame for is not counted, nor what others took away.
      if (!isRobbed(scenario)) expect(unclaimed).toBeLessThanOrEqual(0.05 * made + 4 + anyway);
    }
  });
});
