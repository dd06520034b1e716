import { describe, expect, it } from 'vitest';
import { amdahlRemainingMs } from '../../../../src/core/forecast/amdahl.ts';
import {
  progressIndicator,
  progressIndicatorNames,
} from '../../../../src/core/forecast/progress-indicators.ts';
import { forecastTable } from '../../../../src/core/forecast/forecast-table.ts';
import { predictorOf } from '../../../../src/core/forecast/predictor.ts';
import { createRng } from '../../../../src/lib/rng.ts';
import { storedProfile } from '../../../../src/core/forecast/stored-profile.ts';
import { stageTotals } from '../../../../src/core/forecast/stage-totals.ts';
import { meanAndLongest, timesAt } from '../../../../src/core/forecast/run-times.ts';
import { barrier, profile, steady, times } from './profiles.ts';

/** A diamond: 0 → 1, 0 → 2, both → 3. Longest tasks 10, 40, 20, 5. */
const diamond = profile(
  steady(10, 4, [], { queueMs: [1] }),
  steady(40, 2, barrier(0)),
  steady(20, 10, barrier(0)),
  steady(5, 1, [...barrier(1), ...barrier(2)]),
);
const totals = stageTotals(diamond, 1);

it('tells of each stage its work, its longest task and the longest path behind it', () => {
  expect(totals).toEqual([
    { workMs: 40, queueMs: 4, longestMs: 10, afterMs: 45 },
    { workMs: 80, queueMs: 0, longestMs: 40, afterMs: 5 },
    { workMs: 200, queueMs: 0, longestMs: 20, afterMs: 5 },
    { workMs: 5, queueMs: 0, longestMs: 5, afterMs: 0 },
  ]);
});

it('counts the waits of those alone that do not ride behind another', () => {
  const riding = profile(steady(10, 40, [], { queueMs: [6, 10], queuedShare: 0.25 }));
  expect(stageTotals(riding, 1)).toEqual([{ workMs: 400, queueMs: 80, longestMs: 10, afterMs: 0 }]);
  const predictor = predictorOf({ profile: storedProfile('riding', riding).profile }, 'amdahl');
  expect(predictor.partsLeft([0.5])).toEqual({ chainMs: 5, workMs: 200, queueMs: 40 });
});

describe('Amdahl’s law', () => {
  it('counts what tasks take to start where it stands in for a table, and is the paper’s where it is asked for', () => {
    const left = (table: ReturnType<typeof forecastTable> | undefined): number =>
      predictorOf(
        { profile: storedProfile('diamond', diamond).profile, ...(table === undefined ? {} : { table }) },
        'amdahl',
      ).remainingMs([0, 0, 0, 0], 5, 'worst');
    // 55 + (325 + 4) / 5, and 55 + 325 / 5.
    expect(left(undefined)).toBeCloseTo(120.8, 9);
    const terms = { totalSlots: 5, rng: createRng('table') };
    expect(left(forecastTable({ profile: diamond, runs: 1 }, terms))).toBeCloseTo(120, 9);
  });

  it.each([
    // S = 10 + 45 = 55, P = 325.
    [[0, 0, 0, 0], 1, 380],
    [[0, 0, 0, 0], 5, 120],
    // Stage 0 has ended, half of 1 and a tenth of 2: S = max(20 + 5, 18 + 5, 5), P = 40 + 180 + 5.
    [[1, 0.5, 0.1, 0], 5, 70],
    [[1, 1, 1, 0], 5, 6],
    [[1, 1, 1, 1], 5, 0],
  ])('leaves of a job with %j done on %i slots %d ms', (fractions, slots, ms) => {
    expect(amdahlRemainingMs(totals, fractions, slots)).toBeCloseTo(ms, 9);
  });

  it('leaves less the more slots there are', () => {
    const left = [1, 2, 5, 10, 100].map((slots) => amdahlRemainingMs(totals, [0, 0, 0, 0], slots));
    expect(left).toEqual(left.toSorted((a, b) => b - a));
    expect(new Set(left).size).toBe(left.length);
  });
});

describe('progress indicators', () => {
  const spans = [
    { begin: 0, end: 0.2 },
    { begin: 0.2, end: 0.9 },
    { begin: 0.2, end: 0.6 },
    { begin: 0.9, end: 1 },
  ];
  const basis = { totals, tasks: [4, 2, 10, 1], spans, unlimitedSpans: spans };

  it.each(progressIndicatorNames)('%s is 0 at the begin and 1 at the end', (name) => {
    const indicator = progressIndicator(name, basis);
    expect(indicator([0, 0, 0, 0])).toBe(0);
    expect(indicator([1, 1, 1, 1])).toBe(1);
  });

  it.each([
    // (44 + 80/2 + 200/10) / 329.
    ['totalworkWithQ', 104 / 329],
    ['totalwork', 100 / 325],
    // 4 + 1 + 1 of 17 tasks.
    ['vertexfrac', 6 / 17],
    // 25 of 55 are left.
    ['cp', 30 / 55],
    // The second has come to 0.55, the third to 0.24, the fourth to its begin.
    ['minstage', 0.24],
    ['minstage-inf', 0.24],
  ] as const)('%s is as the paper writes it', (name, progress) => {
    expect(progressIndicator(name, basis)([1, 0.5, 0.1, 0])).toBeCloseTo(progress, 9);
  });
});

describe('run times between two runs', () => {
  const runs = [
    { slots: 10, times: times({ cold: [100, 200], later: [10, 20] }) },
    { slots: 20, times: times({ cold: [300, 400], later: [30, 40] }) },
  ];

  it('lie between theirs, rank by rank', () => {
    expect(timesAt(runs, 15).cold).toEqual([200, 300]);
    expect(timesAt(runs, 12).later).toEqual([14, 24]);
    expect(timesAt(runs, 10).later).toEqual([10, 20]);
  });

  it('are those of the nearest beyond both', () => {
    expect(timesAt(runs, 1).later).toEqual([10, 20]);
    expect(timesAt(runs, 500).later).toEqual([30, 40]);
  });

  it('are stood in for by others where none are known', () => {
    expect(timesAt(runs, 10).first).toEqual([10, 20]);
    expect(timesAt([{ slots: 1, times: times({ cold: [7] }) }], 1).later).toEqual([7]);
  });

  it('have their mean and longest between as well', () => {
    expect(meanAndLongest(runs, 10)).toEqual({ meanMs: 82.5, longestMs: 200 });
    expect(meanAndLongest(runs, 15)).toEqual({ meanMs: 137.5, longestMs: 300 });
  });
});
