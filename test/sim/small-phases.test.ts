import { describe, expect, it } from 'vitest';
import type { PolicyConfigInput } from '../../src/contracts/policy-config.ts';
import { mean } from '../../src/lib/quantiles.ts';
import { completionMsOf, slotTimeOf } from '../../src/sim/metrics.ts';
import type { JobOutcome } from '../../src/sim/outcome.ts';
import { simulate } from '../../src/sim/simulate.ts';
import { atOnce, scenarioOf } from './scenarios.ts';

const workMs = 10_000;
const gapMs = 50_000;
const jobsPerSize = 120;
/** So many jobs of four tasks, with their backups, end less than a hundred copies; so many end as many by themselves. */
const [unmeasured, measured] = [15, 25];

/** Jobs of four tasks and of one by turns under the default policy. */
async function runAll(
  probability: number,
  policyConfig: PolicyConfigInput = {},
): Promise<{ readonly four: readonly JobOutcome[]; readonly lone: readonly JobOutcome[] }> {
  const slowdown = { kind: 'mixture' as const, probability, outlier: 8, usual: 1 };
  const scenario = scenarioOf({
    cluster: { nodes: [{ count: 100 }] },
    scheduler: atOnce,
    jobs: Array.from({ length: 2 * jobsPerSize }, (_, place) => ({
      policy: 'outrider' as const,
      policyConfig,
      arrivals: { kind: 'list' as const, atMs: [place * gapMs] },
      stages: [{ name: 'map', tasks: place % 2 === 0 ? 4 : 1, workMs, slowdown }],
    })),
  });
  const { jobs } = await simulate(scenario, { seed: '1' });
  expect(jobs.every(({ state }) => state === 'succeeded')).toBe(true);
  return { four: jobs.filter(({ tasks }) => tasks === 4), lone: jobs.filter(({ tasks }) => tasks === 1) };
}

const clonesOf = (jobs: readonly JobOutcome[]): number =>
  jobs.flatMap(({ attempts }) => attempts).filter(({ reason }) => reason === 'clone').length;
const meanMs = (jobs: readonly JobOutcome[]): number => mean(jobs.map(completionMsOf)) ?? 0;
const slotMs = (jobs: readonly JobOutcome[]): number =>
  jobs.reduce((sum, job) => sum + slotTimeOf(job).usedMs, 0);

describe('phases in which there is nothing to compare with, under the default policy', () => {
  it('are cloned once it was measured that many copies straggle, and end sooner for little', async () => {
    const cloned = await runAll(0.15);
    const not = await runAll(0.15, { dolly: { budgetShare: 0 } });
    expect(clonesOf(cloned.lone.slice(0, unmeasured))).toBe(0);
    const [with2, with1] = [cloned.lone.slice(measured), not.lone.slice(measured)];
    expect(clonesOf(with2)).toBeGreaterThan(0.9 * with2.length);
    expect(clonesOf(not.lone)).toBe(0);
    expect(meanMs(with2)).toBeLessThan(0.75 * meanMs(with1));
    expect(slotMs(with2)).toBeLessThan(1.3 * slotMs(with1));
  });

  it('alone are: four tasks tell which of them lags', async () => {
    expect(clonesOf((await runAll(0.15)).four)).toBe(0);
  });

  it('are not where few copies straggle: it would but double what they cost', async () => {
    expect(clonesOf((await runAll(0.01)).lone)).toBe(0);
  });
});
