import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { locationFactors, type ZoneSample } from '../../../src/core/estimate/location-factor.ts';
import { costOf } from '../../../src/core/model/task-cost.ts';
import { recordSlowness, type ZonesSlowness } from '../../../src/core/model/zone-slowness.ts';
import { draws } from '../../support/draws.ts';
import { jobOf, type TaskSpec } from '../../support/policy-views.ts';

const arbSlowness = fc.double({ min: 0.01, max: 100, noNaN: true });
const arbZone = fc.constantFrom('a', 'b', 'c', 'd');
interface Sample {
  readonly zone: string;
  readonly slowness: number;
  readonly kind: 'won' | 'outrun' | 'running';
}
const arbSample: fc.Arbitrary<Sample> = fc.record({
  zone: arbZone,
  slowness: arbSlowness,
  kind: fc.constantFrom('won' as const, 'outrun' as const, 'running' as const),
});

/** The factors, of samples in their order. */
function factorsOf(samples: readonly Sample[]): ReadonlyMap<string, number> {
  const zones: ZonesSlowness = new Map();
  const running: ZoneSample[] = [];
  for (const { zone, slowness, kind } of samples)
    if (kind === 'running') running.push({ zone, slowness });
    else recordSlowness(zones, zone, { slowness, hasWon: kind === 'won' });
  return new Map([...locationFactors(zones, running)].map(([zone, { factor }]) => [zone, factor]));
}

const variance = (values: readonly number[], mean: number): number =>
  values.reduce((sum, each) => sum + (each - mean) ** 2, 0);
const meanOf = (values: readonly number[]): number =>
  values.reduce((sum, each) => sum + each, 0) / values.length;

/** The same from all samples at once, by lists and no sums that are kept. */
function byBruteForce(samples: readonly Sample[]): ReadonlyMap<string, number> {
  const groups = Map.groupBy(samples, ({ zone }) => zone);
  const logs = new Map([...groups].map(([zone, all]) => [zone, all.map((each) => Math.log(each.slowness))]));
  const mean = meanOf([...logs.values()].flat());
  const inside = [...logs.values()].reduce((sum, all) => sum + variance(all, meanOf(all)), 0);
  const v = (inside + 1) / (samples.length - groups.size + 1);
  const outside = [...logs.values()].reduce((sum, all) => sum + all.length * (meanOf(all) - mean) ** 2, 0);
  const freedom = groups.size - 1;
  const chance = v * (freedom + 2 * Math.sqrt(2 * freedom));
  const alike = [...logs.values()].reduce((sum, all) => sum + all.length ** 2, 0) / samples.length;
  const a = freedom === 0 ? 0 : Math.max(0, outside - chance) / (samples.length - alike);
  const took = new Map(
    [...logs].map(([zone, all]) => {
      const z = all.length / (all.length + v / a);
      return [zone, Math.exp(mean + z * (meanOf(all) - mean))];
    }),
  );
  const counted = samples.filter(({ kind }) => kind !== 'outrun').map(({ zone }) => took.get(zone) ?? 0);
  return new Map([...took].map(([zone, t]) => [zone, a > 0 && counted.length > 0 ? t / meanOf(counted) : 1]));
}

function expectAlike(one: ReadonlyMap<string, number>, other: ReadonlyMap<string, number>): void {
  expect([...one.keys()].toSorted()).toEqual([...other.keys()].toSorted());
  for (const [zone, factor] of one) expect(factor).toBeCloseTo(other.get(zone) ?? Number.NaN, 6);
}

describe('factors of zones', () => {
  it('are what all samples at once give, whatever came when', () => {
    fc.assert(
      fc.property(fc.array(arbSample, { minLength: 1, maxLength: 60 }), (samples) => {
        expectAlike(factorsOf(samples), byBruteForce(samples));
      }),
      { numRuns: draws(300) },
    );
  });

  it('are 1 where zones have the same samples', () => {
    fc.assert(
      fc.property(fc.array(arbSlowness, { minLength: 1, maxLength: 20 }), (all) => {
        const samples = ['a', 'b', 'c'].flatMap((zone) =>
          all.map((slowness): Sample => ({ zone, slowness, kind: 'won' })),
        );
        expect([...factorsOf(samples).values()]).toEqual([1, 1, 1]);
      }),
      { numRuns: draws(200) },
    );
  });

  it('are the same whatever time is counted in', () => {
    fc.assert(
      fc.property(
        fc.array(arbSample, { minLength: 1, maxLength: 40 }),
        fc.double({ min: 1e-3, max: 1e3, noNaN: true }),
        (samples, unit) => {
          const others = samples.map((each) => ({ ...each, slowness: each.slowness * unit }));
          expectAlike(factorsOf(samples), factorsOf(others));
        },
      ),
      { numRuns: draws(200) },
    );
  });

  it('keep the mean of the samples that t_new is a mean of', () => {
    fc.assert(
      fc.property(fc.array(arbSample, { minLength: 1, maxLength: 60 }), (samples) => {
        const factors = factorsOf(samples);
        const counted = samples.filter(({ kind }) => kind !== 'outrun');
        if (counted.length === 0) return;
        expect(meanOf(counted.map(({ zone }) => factors.get(zone) ?? 1))).toBeCloseTo(1, 9);
      }),
      { numRuns: draws(200) },
    );
  });
});

describe('what a stage keeps of its zones', () => {
  const arbTask: fc.Arbitrary<TaskSpec> = fc.record({
    bytes: fc.integer({ min: 1, max: 5_000_000 }),
    doneMs: fc.integer({ min: 1, max: 100_000 }),
    zone: arbZone,
  });

  it('is what its tasks took over what they cost by all that is learnt, in whatever order they ended', () => {
    fc.assert(
      fc.property(fc.array(arbTask, { minLength: 1, maxLength: 80 }), (tasks) => {
        const statistics = jobOf(tasks).stages[0]?.statistics;
        for (const zone of ['a', 'b', 'c', 'd']) {
          const own = tasks.filter((each) => each.zone === zone);
          const kept = statistics?.zones.get(zone)?.won;
          expect(kept?.count ?? 0).toBe(own.length);
          const logs = own.map(({ bytes = 0, doneMs = 0 }) =>
            statistics === undefined ? 0 : Math.log(doneMs / costOf(statistics.cost, bytes)),
          );
          expect(kept?.sum ?? 0).toBeCloseTo(own.length * (own.length === 0 ? 0 : meanOf(logs)), 6);
        }
      }),
      { numRuns: draws(100) },
    );
  });
});
