import { describe, expect, it } from 'vitest';
import { defaultPolicyConfig } from '../../../../../src/contracts/policy-config.ts';
import { admitDeadline, neededSlots } from '../../../../../src/core/policy/jockey/admission.ts';
import { divideByMarginalUtility, worthOf } from '../../../../../src/core/policy/jockey/marginal-utility.ts';
import {
  allocationsUpTo,
  controlStep,
  rawAllocation,
} from '../../../../../src/core/policy/jockey/control-loop.ts';
import { controlTerms } from '../../../../../src/core/policy/jockey/deadline-scaling.ts';
import { oracleSlots, shareAboveOracle } from '../../../../../src/core/policy/jockey/oracle.ts';
import { hardDeadline, softDeadline, utilityAt } from '../../../../../src/core/policy/jockey/utility.ts';

const minute = 60_000;
const hour = 60 * minute;

describe('utility of a deadline of an hour', () => {
  const soft = softDeadline(hour, 10 * minute);
  // Ground truth, 5.4.
  it.each([
    [0, 1],
    [59, 1],
    [60, 1],
    [61, 0.8],
    [65, 0],
    [70, -1],
    [80, -11.0909],
    [100, -31.2727],
    [1_060, -1_000],
    [1_070, -1_010.0909],
  ])('that ends after %f min is worth %f', (min, worth) => {
    expect(utilityAt(soft, min * minute)).toBeCloseTo(worth, 4);
  });

  it('falls at once where it is hard, and hardly any more after that', () => {
    const hard = hardDeadline(hour, 10 * minute);
    expect(utilityAt(hard, hour)).toBe(1);
    expect(utilityAt(hard, hour + 6_000)).toBe(-100);
    expect(utilityAt(hard, 2 * hour)).toBeGreaterThan(-101);
    expect(utilityAt(hard, 2 * hour)).toBeLessThan(-100);
  });
});

describe('the control loop', () => {
  const rules = {
    utility: softDeadline(hour, 10 * minute),
    slack: 1.2,
    hysteresis: 0.2,
    release: 0.2,
    deadZoneMs: 3 * minute,
    toleranceMs: 3 * minute,
    deadlineMs: hour,
    allocations: allocationsUpTo(100),
  };
  const work = (slotMinutes: number) => (slots: number) => (slotMinutes * minute) / slots;

  it('wants the fewest slots that meet the deadline, a dead zone before it', () => {
    // 1.2 × 1,000 / a ≤ 57.
    expect(rawAllocation(rules, { elapsedMs: 0, remainingMs: work(1_000), before: undefined })).toBe(22);
    // However late it is, all slots are the least late.
    expect(rawAllocation(rules, { elapsedMs: 2 * hour, remainingMs: work(1_000), before: 5 })).toBe(100);
  });

  it('goes a fifth of the way with each step: 20, 36, 48.8, 59.04, 67.232', () => {
    const smoothed: number[] = [];
    let before = 20;
    for (let step = 0; step < 4; step++) {
      ({ smoothed: before } = controlStep(rules, { elapsedMs: hour, remainingMs: work(9_000), before }));
      smoothed.push(before);
    }
    expect(smoothed).toEqual([36, 48.8, 59.04, 67.232].map((each) => expect.closeTo(each, 9) as number));
  });

  it('adds nothing while the job is behind by less than it tolerates, and gives back freely', () => {
    // On 21 slots it ends after 57.1 min: late for 57, not for 60.
    const behind = { elapsedMs: 0, remainingMs: work(1_000), before: 21 };
    expect(controlStep(rules, behind)).toEqual({ raw: 22, smoothed: 21, slots: 21 });
    expect(controlStep({ ...rules, toleranceMs: 0 }, behind)).toEqual({ raw: 22, smoothed: 21.2, slots: 22 });
    const without = { ...rules, deadZoneMs: 0, toleranceMs: 0 };
    expect(controlStep(without, { ...behind, before: 19 }).smoothed).toBeGreaterThan(19);
    expect(controlStep(rules, { ...behind, before: 30 })).toEqual({ raw: 22, smoothed: 28.4, slots: 29 });
  });

  it('adds slots at once and gives them back slowly, where it tolerates nothing', () => {
    const ours = { ...rules, hysteresis: 1, release: 0.2, toleranceMs: 0 };
    const view = { elapsedMs: 0, remainingMs: work(1_000) };
    expect(controlStep(ours, { ...view, before: 21 })).toEqual({ raw: 22, smoothed: 22, slots: 22 });
    expect(controlStep(ours, { ...view, before: 32 })).toEqual({ raw: 22, smoothed: 30, slots: 30 });
  });

  it('starts with what is wanted, and never leaves what may be had', () => {
    expect(controlStep(rules, { elapsedMs: 0, remainingMs: work(1_000), before: undefined }).smoothed).toBe(
      22,
    );
    expect(controlStep(rules, { elapsedMs: 0, remainingMs: () => 0, before: 1 }).slots).toBe(1);
    expect(controlStep(rules, { elapsedMs: 2 * hour, remainingMs: work(1e9), before: 400 }).slots).toBe(100);
  });

  it('has few allocations to choose from, however many slots there are', () => {
    expect(allocationsUpTo(1)).toEqual([1]);
    expect(allocationsUpTo(3)).toEqual([1, 2, 3]);
    const many = allocationsUpTo(1_000_000);
    expect(many.length).toBeLessThan(1_200);
    expect(many.at(-1)).toBe(1_000_000);
  });
});

describe('times of the loop', () => {
  const { jockey } = defaultPolicyConfig;
  const paper = { ...jockey, preset: 'paper' as const };

  it('are those of the paper for an hour and longer', () => {
    for (const ms of [hour, 4 * hour])
      expect(controlTerms(paper, ms)).toEqual({
        ...{ statistic: 'worst', slack: 1.2, correct: false, caution: 0, frugal: false },
        ...{ deadZoneMs: 180_000, toleranceMs: 0, periodMs: 60_000 },
        hysteresis: expect.closeTo(0.2, 12) as number,
        release: expect.closeTo(0.2, 12) as number,
        lateMs: 600_000,
      });
  });

  it('tolerate a dead zone where somebody wants slots held back in it', () => {
    for (const preset of ['paper', 'outrider'] as const) {
      const held = controlTerms({ ...jockey, preset, holdsInDeadZone: true }, hour / 2);
      expect(held).toMatchObject({ deadZoneMs: 90_000, toleranceMs: 90_000 });
    }
  });

  it('are as large a share of a shorter deadline, with a period of a second at least', () => {
    expect(controlTerms(paper, 10 * minute)).toMatchObject({
      periodMs: 10_000,
      deadZoneMs: 30_000,
      lateMs: 100_000,
    });
    const short = controlTerms(paper, 20_000);
    expect(short).toMatchObject({ periodMs: 1_000, deadZoneMs: 1_000 });
    // Three steps of a third of a second in one: 1 − 0.8³.
    expect(short.hysteresis).toBeCloseTo(0.488, 6);
  });

  it('are in our own setting what somebody sets, both ways, and without tolerance', () => {
    expect(controlTerms({ ...jockey, hysteresis: 0.3, deadZoneMs: 120_000 }, hour)).toMatchObject({
      hysteresis: expect.closeTo(0.3, 12) as number,
      release: expect.closeTo(0.3, 12) as number,
      deadZoneMs: 120_000,
      toleranceMs: 0,
    });
  });
});

describe('the oracle', () => {
  it('divides work by the deadline: 12.7, 23.5 and 18.5 h in 45 min', () => {
    expect([12.7, 23.5, 18.5].map((hours) => oracleSlots(hours * hour, 45 * minute))).toEqual([17, 32, 25]);
    expect(oracleSlots(0, hour)).toBe(1);
  });

  it('is exceeded by a share of what was asked for', () => {
    const asked = [
      { atMs: 0, slots: 30 },
      { atMs: 10, slots: 10 },
    ];
    // 10 × (30 − 20) of 10 × 30 + 20 × 10.
    expect(shareAboveOracle(asked, 20, 30)).toBeCloseTo(0.2, 12);
    expect(shareAboveOracle([], 20, 30)).toBe(0);
  });
});

describe('admission', () => {
  const need = {
    ...{ deadlineMs: hour, slack: 1.2, deadZoneMs: 3 * minute, allocations: allocationsUpTo(100) },
    remainingMs: (slots: number) => (1_000 * minute) / slots,
  };

  it('takes a job on where what it needs is left', () => {
    expect(neededSlots(need)).toBe(22);
    expect(admitDeadline(need, 22)).toEqual({ fits: true, slots: 22 });
    expect(admitDeadline(need, 21)).toEqual({ fits: false, why: 'no-room', slots: 22 });
    expect(admitDeadline({ ...need, deadlineMs: 10 * minute }, 100)).toEqual({
      ...{ fits: false, why: 'too-long', slots: 100 },
    });
  });
});

describe('division by marginal utility', () => {
  const divide = (total: number, bids: readonly (readonly (readonly [number, number])[])[]) =>
    divideByMarginalUtility(
      total,
      bids.map((bid) => ({ bid, weight: 1 })),
    );

  it('gives slots where they bring the most', () => {
    const steep = [
      [1, 0],
      [10, 9],
    ] as const;
    const flat = [
      [1, 0],
      [10, 0.9],
    ] as const;
    expect(divide(11, [steep, flat])).toEqual([10, 1]);
    expect(divide(11, [flat, steep])).toEqual([1, 10]);
    expect(divide(20, [flat, steep])).toEqual([10, 10]);
  });

  it('takes a step over points that bring nothing by themselves', () => {
    const cliff = [
      [1, -100],
      [9, -100],
      [10, 1],
    ] as const;
    expect(
      divide(12, [
        [
          [1, 0],
          [10, 9],
        ],
        cliff,
      ]),
    ).toEqual([2, 10]);
  });

  it('leaves none without a slot while there are any, and gives no more than is asked for', () => {
    expect(divide(3, [[[5, 1]], [[5, 1]], [[5, 1]]])).toEqual([1, 1, 1]);
    expect(divide(2, [[[5, 1]], [[5, 1]], [[5, 1]]])).toEqual([1, 1, 0]);
    expect(divide(0, [[[5, 1]]])).toEqual([0]);
    expect(
      divide(100, [
        [],
        [[0, 1]],
        [
          [1, 0],
          [4, 1],
        ],
      ]),
    ).toEqual([0, 0, 4]);
  });

  it('is straight between the points of a bid', () => {
    expect(
      worthOf(
        [
          [2, 0],
          [4, 1],
        ],
        3,
      ),
    ).toBe(0.5);
    expect(
      worthOf(
        [
          [2, 0],
          [4, 1],
        ],
        1,
      ),
    ).toBe(0);
    expect(
      worthOf(
        [
          [2, 0],
          [4, 1],
        ],
        9,
      ),
    ).toBe(1);
  });
});
