import { describe, expect, it } from 'vitest';
import { exponentialNewCopyMs, exponentialRate } from '../../../../src/core/estimate/exponential-rate.ts';
import {
  phaseAwareTimeLeftMs,
  meanPhaseMs,
  phaseTimesOf,
} from '../../../../src/core/estimate/phase-aware.ts';
import { ranMs, timeLeftMs } from '../../../../src/core/estimate/progress-rate.ts';
import { phasedScore } from '../../../../src/experiments/phased-score.ts';
import { remainingMs } from '../../../../src/core/estimate/remaining-time.ts';
import { late } from '../../../../src/core/policy/late/late.ts';
import {
  foretoldRuns,
  newCopyMs,
  probabilityBelow,
  samplesOf,
} from '../../../../src/core/estimate/new-copy.ts';
import { epochMs } from '../../../../src/contracts/units.ts';
import { emptySorted, insertSorted } from '../../../../src/lib/sorted-numbers.ts';
import { jobOf, nowMs, type RunningSpec, times, told, viewOf } from '../../../support/policy-views.ts';

const size = 1_000_000;

function attemptOf(running: RunningSpec, bytes = size) {
  const attempt = jobOf([{ bytes, running: [running] }]).stages[0]?.tasks[0]?.attempts[0];
  if (attempt === undefined) throw new Error('no attempt');
  return attempt;
}

describe('progress score and rate', () => {
  it('scores a reduce half-way through copy 1/6, half-way through reduce 5/6', () => {
    expect(phasedScore(0, 0.5)).toBeCloseTo(1 / 6, 12);
    expect(phasedScore(2, 0.5)).toBeCloseTo(5 / 6, 12);
  });

  it('foretells at the average rate', () => {
    expect(timeLeftMs(0.6, 20_000)).toBeCloseTo(13_333.33, 1);
    expect(timeLeftMs(0.5, 10_000)).toBe(10_000);
    expect(timeLeftMs(0, 10_000)).toBe(Infinity);
  });

  it("counts time since a report on our clock, since the report on the worker's", () => {
    expect(ranMs(attemptOf({ ranMs: 5_000, bytesRead: 1, silentMs: 700 }), epochMs(nowMs))).toBe(5_700);
  });
});

describe('a task that slows down half-way (5 %/s to half, then 1 %/s)', () => {
  // At 20 s: T1 began at 0, T2 at 10.
  const t1: RunningSpec = {
    ranMs: 20_000,
    bytesRead: 0.6 * size,
    before: [
      [5_000, 0.25 * size],
      [10_000, 0.5 * size],
    ],
  };
  const t2: RunningSpec = { ranMs: 10_000, bytesRead: 0.5 * size, before: [[5_000, 0.25 * size]] };
  const others = times(10, { doneMs: 1_000 });
  const propose = (estimator: 'progress-rate' | 'phase-aware'): string[] =>
    told(
      late.propose(
        viewOf([{ running: [t1] }, { running: [t2] }, ...others], {
          config: { late: { minAgeMs: 0, slowTaskThreshold: 1, estimator, phaseEnds: [0.5, 1] } },
        }),
      ),
    );

  it('is misjudged by its average rate: T1 13.3 s, T2 10 s', () => {
    expect(propose('progress-rate')).toEqual(['backup 0 13333', 'backup 1 10000']);
  });

  it('is judged right by its phases: T1 40 s, T2 50 s', () => {
    expect(propose('phase-aware')).toEqual(['backup 1 50000', 'backup 0 40000']);
  });

  it('has no estimate by phases where nobody has entered the next one', () => {
    const phases = phaseTimesOf(
      [{ workedMs: 5_000, bytesRead: 25 }],
      { bytesTotal: 100, ranMs: 5_000 },
      [0.5, 1],
    );
    expect(phases).toEqual({ finishedMs: [], currentFraction: 0.5, currentMs: 5_000 });
    expect(phaseAwareTimeLeftMs(phases, meanPhaseMs([phases], 2))).toBeUndefined();
  });
});

describe('t_rem', () => {
  const terms = { now: epochMs(nowMs), wrapUpMs: 0, lateWrapUpMs: 0, window: 3, deltaMs: 10_000 };

  it('is the elapsed time by what is left over what is read, and the wrap-up', () => {
    expect(remainingMs(attemptOf({ ranMs: 30_000, bytesRead: 0.25 * size }), terms)).toBe(90_000);
    expect(
      remainingMs(attemptOf({ ranMs: 30_000, bytesRead: 0.25 * size }), { ...terms, wrapUpMs: 500 }),
    ).toBe(90_500);
  });

  it('averages when the last reports say that it ends', () => {
    // Ends foretold: 40 s, 50 s, 80 s; it has run 40 s.
    const before = [
      [10_000, 0.25 * size],
      [20_000, 0.4 * size],
    ] as const;
    expect(remainingMs(attemptOf({ ranMs: 40_000, bytesRead: 0.5 * size, before }), terms)).toBeCloseTo(
      16_666.67,
      1,
    );
    expect(
      remainingMs(attemptOf({ ranMs: 40_000, bytesRead: 0.5 * size, before }), { ...terms, window: 1 }),
    ).toBe(40_000);
  });

  it('falls between reports and rises when they stop', () => {
    const after = (silentMs: number) =>
      remainingMs(attemptOf({ ranMs: 20_000, bytesRead: 0.5 * size, silentMs }), terms);
    expect(after(5_000)).toBe(15_000);
    expect(after(20_000)).toBe(40_000);
  });

  it('is unknown before the first byte', () => {
    expect(remainingMs(attemptOf({ ranMs: 20_000, bytesRead: 0 }), terms)).toBeUndefined();
  });
});

describe('t_rem once all is read', () => {
  const terms = { now: epochMs(nowMs), wrapUpMs: 8_000, lateWrapUpMs: 9_000, window: 3, deltaMs: 10_000 };
  const after = (wrappingUpMs: number) =>
    remainingMs(
      attemptOf({ ranMs: 10_000 + wrappingUpMs, bytesRead: size, before: [[10_000, size]] }),
      terms,
    );

  it('is what is left of the mean wrap-up', () => {
    expect(after(1_000)).toBe(7_000);
    expect(after(8_500)).toBe(0);
  });

  it('is unknown once the wrap-up takes longer than nearly all have', () => {
    expect(after(9_001)).toBeUndefined();
  });
});

describe('t_new', () => {
  const state = jobOf([
    { doneMs: 10_000 },
    { doneMs: 20_000 },
    { bytes: 2 * size, doneMs: 20_000 },
    { running: [{ ranMs: 30_000, bytesRead: size / 2, lagMs: 1_000 }] },
  ]);
  const stage = state.stages[0];
  const running = [...state.live].flatMap((attempt) => {
    const task = stage?.tasks[attempt.task];
    return task === undefined ? [] : [{ task, attempt }];
  });
  const samples = stage === undefined ? undefined : samplesOf(stage, foretoldRuns(running, 3));

  it('is the mean rate by the input, and the mean lag', () => {
    // 10, 20, 10 and 60 s a megabyte; lags 0, 0, 0 and 1 s.
    expect(samples === undefined ? 0 : newCopyMs(samples, size)).toBeCloseTo(25_250, 6);
    expect(samples === undefined ? 0 : newCopyMs(samples, 3 * size, 2)).toBeCloseTo(150_250, 6);
  });

  it('takes the rate of a running attempt from its late reports, time over data, not from its whole life', () => {
    // A tenth of the input in 100 s, and since then a tenth each 10 s: 100 s a megabyte of late, 325 s over its life.
    const before = [100_000, 110_000, 120_000].map((ms, place) => [ms, (place + 1) * 0.1 * size] as const);
    const { stages, live } = jobOf([{ running: [{ ranMs: 130_000, bytesRead: 0.4 * size, before }] }]);
    const [attempt] = live;
    const [own] = stages;
    const task = own?.tasks[0];
    if (own === undefined || task === undefined || attempt === undefined) throw new Error('nothing runs');
    expect(newCopyMs(samplesOf(own, foretoldRuns([{ task, attempt }], 3)), size)).toBeCloseTo(100_000, 6);
  });

  it('is a distribution', () => {
    expect(
      [10_250, 10_251, 20_251, 60_251].map((limit) =>
        samples === undefined ? 0 : probabilityBelow(samples, size, limit),
      ),
    ).toEqual([0, 0.5, 0.75, 1]);
  });
});

describe('the simple exponential estimator', () => {
  it('weighs a reading by its gap', () => {
    const attempt = attemptOf({
      ranMs: 20_000,
      bytesRead: 0.3 * size,
      before: [
        [5_000, 0.1 * size],
        [10_000, 0.2 * size],
      ],
    });
    const rate = exponentialRate(attempt, { smoothingMs: 10_000, skippedReports: 0 });
    // 0.02/s, then 0.01/s with weight 1 − 1/e.
    expect((rate ?? 0) * 1_000).toBeCloseTo(0.0136788, 6);
    expect(exponentialRate(attempt, { smoothingMs: 10_000, skippedReports: 1 })).toBeCloseTo(0.00001, 12);
    expect(exponentialRate(attempt, { smoothingMs: 10_000, skippedReports: 2 })).toBeUndefined();
  });

  it('takes the upper end of the mean and a margin for a new copy', () => {
    const runs = emptySorted();
    for (const ms of [8_000, 12_000, 8_000, 12_000]) insertSorted(runs, ms);
    // Mean 10, deviation 2: 10 + 1.96, and 1.
    expect(exponentialNewCopyMs(runs)).toBeCloseTo(12_960, 6);
    expect(exponentialNewCopyMs(emptySorted())).toBeUndefined();
  });
});
