import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { completionTable, remainingMs } from '../../../../src/core/forecast/completion-table.ts';
import type { JobProfile } from '../../../../src/core/forecast/job-profile.ts';
import { progressIndicator } from '../../../../src/core/forecast/progress-indicators.ts';
import { stageTotals } from '../../../../src/core/forecast/stage-totals.ts';
import { createRng } from '../../../../src/lib/rng.ts';
import { barrier, profile, steady, times } from './profiles.ts';

const tableOf = (job: JobProfile, slots: readonly number[], runs = 20) =>
  completionTable(job, {
    indicator: progressIndicator('totalworkWithQ', {
      totals: stageTotals(job, 1),
      tasks: job.stages.map(({ tasks }) => tasks),
    }),
    slots,
    runs,
    rng: createRng('table'),
  });

describe('C(p, a)', () => {
  const plain = tableOf(profile(steady(10_000, 100)), [10, 20]);
  const left = (progress: number, slots: number): number =>
    remainingMs(plain, { progress, slots, statistic: 'mean' });

  it('is what equal tasks still take', () => {
    expect(left(0, 10)).toBeCloseTo(95_000, -3);
    // Half is done from 50 s on, until the next ten end at 60 s.
    expect(left(0.5, 10)).toBeCloseTo(45_000, -3);
    expect(left(0.5, 20)).toBeCloseTo(20_000, -3);
    expect(left(1, 10)).toBe(0);
  });

  it('lies between two numbers of slots as shared work does', () => {
    const [few, many] = [left(0, 10), left(0, 20)];
    // 1/a half-way between 1/10 and 1/20 is a = 13 1/3.
    expect(left(0, 40 / 3)).toBeCloseTo((few + many) / 2, 3);
    expect(left(0, 3)).toBe(few);
    expect(left(0, 500)).toBe(many);
  });

  it('tells the worst, the most, the half and the mean of what was seen', () => {
    const spread = [{ slots: 1, times: times({ later: [10_000, 20_000, 90_000] }) }];
    const table = tableOf(profile(steady(0, 1, [], { runs: spread })), [1], 300);
    const at = (statistic: 'mean' | 'half' | 'most' | 'worst'): number =>
      remainingMs(table, { progress: 0, slots: 1, statistic });
    expect(at('worst')).toBe(90_000);
    expect(at('mean')).toBeLessThan(at('most'));
    expect(at('half')).toBeLessThan(at('most'));
    expect(at('most')).toBeLessThanOrEqual(at('worst'));
  });

  it('tells how long the last task may still run where its share of the work rounds to nothing', () => {
    // 400 tasks at once, and then one that is half a hundredth of all work: 99.7 % are done while it runs.
    const table = tableOf(profile(steady(10_000, 400), steady(12_000, 1, barrier(0))), [400]);
    const left = remainingMs(table, { progress: 0.997, slots: 400, statistic: 'worst' });
    expect(left).toBeGreaterThan(11_000);
    expect(left).toBeLessThanOrEqual(12_000);
  });

  it('takes what lies between where no run was ever seen at a point of progress', () => {
    // One task after the other, each half of the work: progress is 0, one half, or 1.
    const table = tableOf(profile(steady(10_000, 1), steady(10_000, 1, barrier(0))), [1]);
    const at = (progress: number): number => remainingMs(table, { progress, slots: 1, statistic: 'worst' });
    expect(at(0)).toBe(20_000);
    expect(at(0.5)).toBeCloseTo(10_000, -2);
    expect(at(0.25)).toBeCloseTo((at(0) + at(0.5)) / 2, 3);
  });

  it.each([1, 10])(
    'looks at a run on %i slots a thousand times at most, however long its tasks wait',
    (slots) => {
      let looks = 0;
      completionTable(profile(steady(20, 10, [], { queueMs: [45_000] })), {
        indicator: ([fraction = 0]) => {
          looks += 1;
          return fraction;
        },
        slots: [slots],
        runs: 4,
        rng: createRng('table'),
      });
      expect(looks / 4).toBeGreaterThan(200);
      expect(looks / 4).toBeLessThanOrEqual(1_000);
    },
  );

  it('never tells more left with more slots, nor with more done, in the mean of jobs without luck', () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.record({ ms: fc.integer({ min: 1_000, max: 9_000 }), tasks: fc.integer({ min: 1, max: 30 }) }),
          {
            minLength: 1,
            maxLength: 4,
          },
        ),
        (drawn) => {
          const stages = drawn.map(({ ms, tasks }, stage) =>
            steady(ms, tasks, stage === 0 ? [] : barrier(stage - 1)),
          );
          const table = tableOf(profile(...stages), [1, 3, 9], 1);
          // Work is done in whole tasks: it stands still for up to one of them.
          const step = Math.max(...drawn.map(({ ms }) => ms));
          const isFalling = (values: readonly number[]): boolean =>
            values.every((value, at) => at === 0 || value <= (values[at - 1] ?? 0) + step);
          const at = (progress: number, slots: number): number =>
            remainingMs(table, { progress, slots, statistic: 'mean' });
          for (const progress of [0, 0.3, 0.8, 1])
            expect([1, 3, 9].map((slots) => at(progress, slots))).toSatisfy(isFalling);
          expect([0, 0.5, 1].map((progress) => at(progress, 3))).toSatisfy(isFalling);
        },
      ),
      { numRuns: 50 },
    );
  });
});
