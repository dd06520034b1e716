import { describe, expect, it } from 'vitest';
import { locationFactors, type ZoneSample } from '../../../../src/core/estimate/location-factor.ts';
import { recordSlowness, type ZonesSlowness } from '../../../../src/core/model/zone-slowness.ts';

/** Samples of winners by zone, and of attempts that were outrun. */
function slownessOf(
  won: Readonly<Record<string, readonly number[]>>,
  outrun: Readonly<Record<string, readonly number[]>> = {},
): ZonesSlowness {
  const zones: ZonesSlowness = new Map();
  for (const [zone, all] of Object.entries(won))
    for (const slowness of all) recordSlowness(zones, zone, { slowness, hasWon: true });
  for (const [zone, all] of Object.entries(outrun))
    for (const slowness of all) recordSlowness(zones, zone, { slowness, hasWon: false });
  return zones;
}

const running = (zone: string | undefined, ...all: readonly number[]): ZoneSample[] =>
  all.map((slowness) => ({ zone, slowness }));

const factorsOf = (finished: ZonesSlowness, now: readonly ZoneSample[] = []): Record<string, number> =>
  Object.fromEntries([...locationFactors(finished, now)].map(([zone, { factor }]) => [zone, factor]));

const three = (value: number): number[] => [value, value, value];

/**
 * Three samples of each zone, 6, 1 and 1, of logarithms ln 6, 0 and 0. Within zones v = 1 / 7: nothing, and the supposed
 * sample. Zones lie 2 (ln 6)² apart, of which chance has (2 + 2 · 2) / 7; by their sizes a = (2 (ln 6)² − 6/7) / 6 = 0.927277,
 * so that Z = 3 / (3 + 0.154061) = 0.951155. Of the mean, ln 6 / 3, a goes to 5.659941 and b and c to 1.029603, in the mean
 * of the samples 2.573049.
 */
const ofA = 2.199702;
const ofB = 0.400149;

describe('locationFactor', () => {
  it('is near to how slow a zone is over the mean of all, once three tasks of each tell it', () => {
    const factors = factorsOf(slownessOf({ a: three(6), b: three(1), c: three(1) }));
    expect(factors['a']).toBeCloseTo(ofA, 6);
    expect(factors['b']).toBeCloseTo(ofB, 6);
    expect(factors['c']).toBe(factors['b']);
  });

  it('counts what runs as what has finished', () => {
    const factors = factorsOf(slownessOf({ b: [1, 1], c: three(1) }), [
      ...running('a', 6, 6, 6),
      ...running('b', 1),
    ]);
    expect(factors['a']).toBeCloseTo(ofA, 6);
    expect(factors['b']).toBeCloseTo(ofB, 6);
  });

  it('is 1 where one task of each zone tells no more than chance does', () => {
    expect(factorsOf(slownessOf({ a: [6], b: [1], c: [1] }))).toEqual({ a: 1, b: 1, c: 1 });
  });

  it('is 1 where a straggler makes a zone look slow whose others are as fast', () => {
    const factors = factorsOf(slownessOf({ a: [1, 1, 1, 1, 20], b: [1, 1, 1, 1, 1], c: [1, 1, 1, 1, 1] }));
    expect(factors).toEqual({ a: 1, b: 1, c: 1 });
  });

  // t_new is a mean of what ran in b and c alone then: there it stays as it is, and in a it is 5.659941 / 1.029603 of that.
  it('remembers a zone of which all tasks were outrun', () => {
    const factors = factorsOf(slownessOf({ b: three(1), c: three(1) }, { a: three(6) }));
    expect(factors['b']).toBe(1);
    expect(factors['c']).toBe(1);
    expect(factors['a']).toBeCloseTo(5.497209, 6);
  });

  it('takes what ran nobody knows where for a part of the mean, and of no zone', () => {
    const factors = factorsOf(
      slownessOf({ a: three(6), b: three(1), c: three(1) }),
      running(undefined, 8 / 3, 8 / 3),
    );
    expect(Object.keys(factors)).toEqual(['a', 'b', 'c']);
    expect(factors['a']).toBeCloseTo(2.195736, 6);
    expect(factors['b']).toBeCloseTo(0.399427, 6);
  });

  it('is not there without samples, and 1 of one zone alone', () => {
    expect(factorsOf(new Map())).toEqual({});
    expect(factorsOf(slownessOf({ a: [3, 4, 5] }))).toEqual({ a: 1 });
  });

  it('is told nothing by tasks that took no time', () => {
    expect(factorsOf(slownessOf({ a: three(0) }), running('b', 0, 0))).toEqual({});
  });

  it('tells by how many samples', () => {
    const factors = locationFactors(slownessOf({ a: [1, 2] }, { a: [3] }), running('a', 4));
    expect(factors.get('a')?.samples).toBe(4);
  });
});
