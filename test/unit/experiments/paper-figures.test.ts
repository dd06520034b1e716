import { describe, expect, it } from 'vitest';
import { assignmentChecks, type Point, settings } from '../../../src/experiments/dolly-assignment.ts';
import type { Check } from '../../../src/experiments/experiment.ts';
import { whatIfChecks } from '../../../src/experiments/facebook-checks.ts';
import { savedByMedianMs } from '../../../src/experiments/facebook-window.ts';
import { mixChecks, mixes } from '../../../src/experiments/late-mixes.ts';

const values = (checks: readonly Check[]): readonly (readonly [string, boolean])[] =>
  checks.filter(({ kind }) => kind === 'value').map(({ what, ok }) => [what, ok]);
const held = (checks: readonly Check[]): readonly boolean[] => values(checks).map(([, ok]) => ok);

interface Sooner {
  readonly CAC: number;
  readonly CC: number;
  readonly delay: number;
}

/** Jobs of 100 s under LATE that end sooner by so many percent, in two runs. */
function pointsOf(two: Sooner, six: Sooner): readonly Point[] {
  const runsOf = (meanS: number) =>
    [meanS, meanS].map((each) => ({ meanS: each, clonedShare: 1, waitS: undefined, utilization: 0.5 }));
  return settings.map((setting) => {
    const { CAC, CC, delay } = setting.phases === 6 ? six : two;
    return {
      setting,
      runs: { LATE: runsOf(100), CAC: runsOf(100 - CAC), CC: runsOf(100 - CC), delay: runsOf(100 - delay) },
    };
  });
}

describe('the figures that the paper states of delay assignment', () => {
  it('hold where they come out as in the paper', () => {
    const checks = assignmentChecks(pointsOf({ CAC: 17, CC: 26, delay: 37 }, { CAC: 5, CC: 18, delay: 31 }));
    expect(held(checks)).toEqual([true, true, true, true, true]);
  });

  it('fail where all gains are twice as large, though their order is the same', () => {
    const checks = assignmentChecks(pointsOf({ CAC: 34, CC: 52, delay: 74 }, { CAC: 30, CC: 40, delay: 62 }));
    expect(held(checks)).toEqual([false, false, false, false, true]);
    expect(
      checks.filter(({ what, kind }) => kind === 'shape' && what.includes('sooner than LATE')),
    ).toMatchObject([{ ok: true }]);
  });

  it('fail where delay assignment hardly leads', () => {
    const checks = assignmentChecks(pointsOf({ CAC: 30, CC: 33, delay: 36 }, { CAC: 29, CC: 30, delay: 31 }));
    expect(held(checks)).toEqual([false, true, true, true, false]);
  });
});

describe('the figures that the paper states of LATE on mixed machines', () => {
  const [ec2] = mixes;
  if (ec2 === undefined) throw new Error('no mix');
  const found = (lateS: number, hadoopS: number, noneS: number) =>
    (
      [
        ['late', lateS],
        ['hadoop', hadoopS],
        ['none', noneS],
      ] as const
    ).map(([policy, seconds]) => ({ policy, seconds: [seconds, seconds], copies: [1, 1], won: [1, 1] }));

  it('hold at 27 % and 31 %', () => {
    expect(held(mixChecks(ec2, found(100, 127, 131)))).toEqual([true, true]);
  });

  it('fail beside the orders that hold', () => {
    const checks = mixChecks(ec2, found(100, 190, 200));
    expect(checks.filter(({ kind }) => kind === 'shape').every(({ ok }) => ok)).toBe(true);
    expect(held(checks)).toEqual([false, false]);
  });
});

describe('what jobs would gain if no task were slower than the median of its phase', () => {
  const stage = (taskMs: readonly number[]) => ({ taskMs, clones: undefined, openedAtMs: 0, doneAtMs: 0 });
  const work = (worksMs: readonly number[]) => ({ tasks: worksMs.map((workMs) => ({ workMs })) });
  const saved = (phases: readonly (readonly [readonly number[], readonly number[]])[]): number =>
    savedByMedianMs(
      { stages: phases.map(([taskMs]) => stage(taskMs)) } as unknown as Parameters<typeof savedByMedianMs>[0],
      phases.map(([, worksMs]) => work(worksMs)) as unknown as Parameters<typeof savedByMedianMs>[1],
    );

  it('is what the slowest task of each phase is behind', () => {
    expect(
      saved([
        [
          [10, 10, 80],
          [10, 10, 10],
        ],
      ]),
    ).toBe(70);
    // The last has twice as much to do, and has taken four times as long: 20 would have been enough.
    expect(
      saved([
        [
          [10, 10, 40],
          [10, 10, 20],
        ],
      ]),
    ).toBe(20);
    expect(
      saved([
        [
          [10, 10, 80],
          [10, 10, 10],
        ],
        [[5], [5]],
      ]),
    ).toBe(70);
    expect(
      saved([
        [
          [10, 30],
          [10, 10],
        ],
      ]),
    ).toBe(10);
    expect(saved([[[], []]])).toBe(0);
  });

  it("is held against the paper's 47 % and 49 %", () => {
    const run = (sharePct: number) => ({
      jobs: [
        {
          index: 0,
          bin: 1,
          ms: 1_000,
          whatIfMs: 1_000 - 10 * sharePct,
          isCloned: false,
          cloneMs: 0,
          phases: [],
        },
      ],
      slotSeconds: 1,
      utilization: 0.02,
      slots: 1,
      smallPeakSlots: 1,
    });
    expect(held(whatIfChecks([run(47), run(49)]))).toEqual([true, true]);
    expect(held(whatIfChecks([run(15), run(15)]))).toEqual([false, false]);
  });
});
