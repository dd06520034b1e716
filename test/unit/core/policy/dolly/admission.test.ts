import { describe, expect, it } from 'vitest';
import { admitUnits } from '../../../../../src/core/capacity/clone-admission.ts';
import { chargeOf, cloneTerms } from '../../../../../src/core/policy/dolly/admission.ts';
import { addTallies, noStragglers } from '../../../../../src/core/model/straggler-tally.ts';
import { stragglerProbability, tallyOf } from '../../../../../src/core/policy/dolly/straggler-rate.ts';

const terms = cloneTerms(1_000, { budgetShare: 0.05, utilizationCeiling: 0.8 });

describe('admission to a cluster of 1,000 slots', () => {
  const all = { phase: 'map', leastUnits: 1, mostUnits: 1, besideSlots: 0 };
  const of = (usedSlots: number, cloneSlots: number, charge: number, besideSlots = 0) =>
    admitUnits({ usedSlots, cloneSlots }, terms, { ...all, unitSlots: charge, besideSlots }).reason ??
    'admitted';

  it('takes what just fits and refuses one slot more', () => {
    expect(of(0, 20, 30)).toBe('admitted');
    expect(of(0, 20, 31)).toBe('clone-budget');
    expect(of(770, 0, 30)).toBe('admitted');
    expect(of(771, 0, 30)).toBe('utilization');
    expect(of(760, 0, 30, 10)).toBe('admitted');
    expect(of(760, 0, 30, 11)).toBe('utilization');
    expect(of(900, 40, 30)).toBe('clone-budget');
  });

  it('takes as many units as fit where a part is of use, and tells by which numbers', () => {
    const inParts = { phase: 'map', unitSlots: 4, leastUnits: 2, mostUnits: 10, besideSlots: 3 };
    expect(admitUnits({ usedSlots: 100, cloneSlots: 31 }, terms, inParts)).toEqual({
      units: 4,
      usedSlots: 100,
      cloneSlots: 31,
    });
    expect(admitUnits({ usedSlots: 100, cloneSlots: 0 }, terms, inParts)).toEqual({
      units: 10,
      usedSlots: 100,
      cloneSlots: 0,
    });
    expect(admitUnits({ usedSlots: 789, cloneSlots: 0 }, terms, inParts)).toEqual({
      units: 2,
      usedSlots: 789,
      cloneSlots: 0,
    });
    expect(admitUnits({ usedSlots: 790, cloneSlots: 0 }, terms, inParts)).toEqual({
      units: 0,
      reason: 'utilization',
      usedSlots: 790,
      cloneSlots: 0,
    });
    expect(admitUnits({ usedSlots: 0, cloneSlots: 43 }, terms, inParts)).toEqual({
      units: 0,
      reason: 'clone-budget',
      usedSlots: 0,
      cloneSlots: 43,
    });
  });

  it('charges all copies or the additional ones, and nothing for tasks without clones', () => {
    expect(chargeOf(10, 3, 'all-copies')).toBe(30);
    expect(chargeOf(10, 3, 'extra-copies')).toBe(20);
    expect(chargeOf(10, 1, 'all-copies')).toBe(0);
  });
});

describe('the straggler probability', () => {
  it('counts rates strictly below half the median', () => {
    expect(tallyOf([10, 4.9, 10, 5, 10, 1, 10])).toEqual({ attempts: 7, stragglers: 2 });
    expect(tallyOf([10, 10, 10, 10, 5])).toEqual({ attempts: 5, stragglers: 0 });
  });

  it('learns nothing from phases of one or two copies', () => {
    expect(tallyOf([10, 1])).toEqual({ attempts: 0, stragglers: 0 });
    expect(tallyOf([])).toEqual({ attempts: 0, stragglers: 0 });
  });

  it('is the prior until enough has been seen', () => {
    const prior = { prior: 0.1, minAttempts: 100 };
    expect(stragglerProbability(noStragglers, prior)).toBe(0.1);
    expect(stragglerProbability({ attempts: 99, stragglers: 99 }, prior)).toBe(0.1);
    expect(
      stragglerProbability(
        addTallies({ attempts: 99, stragglers: 1 }, { attempts: 101, stragglers: 39 }),
        prior,
      ),
    ).toBe(0.2);
    expect(stragglerProbability(noStragglers, { prior: 0.1, minAttempts: 0 })).toBe(0.1);
  });
});
