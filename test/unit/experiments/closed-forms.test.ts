import { describe, expect, it } from 'vitest';
import { straggleWithCac, straggleWithCc, clonesInTime } from '../../../src/experiments/clone-groups.ts';
import { cloneCount, phaseClones } from '../../../src/core/policy/dolly/clone-count.ts';
import { jobLevelStraggle, taskLevelStraggle } from '../../../src/experiments/straggle-probability.ts';

const sizes = [1, 2, 5, 10, 20, 50, 100, 500, 1_000];
const model = (stragglerProbability: number, tasks: number, clones: number) => ({
  stragglerProbability,
  tasks,
  clones,
});

describe('cloneCount at a risk of 5 %', () => {
  it.each([
    [0.01, [1, 1, 1, 2, 2, 2, 2, 2, 3]],
    [0.02, [1, 1, 2, 2, 2, 2, 2, 3, 3]],
    [0.05, [1, 2, 2, 2, 2, 3, 3, 4, 4]],
    [0.1, [2, 2, 2, 3, 3, 3, 4, 4, 5]],
    [0.2, [2, 3, 3, 4, 4, 5, 5, 6, 7]],
    [0.3, [3, 4, 4, 5, 5, 6, 7, 8, 9]],
  ])('with p = %d for one task up to a thousand', (stragglerProbability, expected) => {
    expect(sizes.map((tasks) => cloneCount({ tasks, stragglerProbability, straggleRisk: 0.05 }))).toEqual(
      expected,
    );
  });

  it('clones nothing where nothing straggles, nor where everything does', () => {
    for (const stragglerProbability of [-1, 0, 1, 2]) {
      expect(cloneCount({ tasks: 10, stragglerProbability, straggleRisk: 0.05 })).toBe(1);
    }
  });

  it('has no more clones downstream than upstream, nor than allowed', () => {
    const phase = { tasks: 1_000, stragglerProbability: 0.3, straggleRisk: 0.05 };
    expect(phaseClones(phase, { mostClones: 20, upstreamClones: [] })).toBe(9);
    expect(phaseClones(phase, { mostClones: 4, upstreamClones: [] })).toBe(4);
    expect(phaseClones(phase, { mostClones: 20, upstreamClones: [5, 2, 3] })).toBe(2);
    expect(phaseClones(phase, { mostClones: 20, upstreamClones: [1] })).toBe(1);
    expect(
      phaseClones({ ...phase, tasks: 1, stragglerProbability: 0.1 }, { mostClones: 20, upstreamClones: [4] }),
    ).toBe(2);
  });
});

describe('the probability that a job of one phase straggles', () => {
  it.each([
    [0.05, 10, [0.40126, 0.16101, 0.06461, 0.02592], [0.40126, 0.02472, 0.00125, 0.00006]],
    [0.05, 100, [0.99408, 0.98819, 0.98234, 0.97653], [0.99408, 0.22144, 0.01242, 0.00062]],
    [0.1, 10, [0.65132, 0.42422, 0.2763, 0.17996], [0.65132, 0.09562, 0.00996, 0.001]],
    [0.1, 20, [0.87842, 0.77163, 0.67782, 0.59541], [0.87842, 0.18209, 0.01981, 0.002]],
  ])('with p = %d and n = %d is that of Fig. 3', (p, tasks, jobLevel, taskLevel) => {
    for (const [place, expected] of jobLevel.entries())
      expect(jobLevelStraggle(model(p, tasks, place + 1))).toBeCloseTo(expected, 5);
    for (const [place, expected] of taskLevel.entries())
      expect(taskLevelStraggle(model(p, tasks, place + 1))).toBeCloseTo(expected, 5);
  });
});

describe('the probability that a job of two phases straggles', () => {
  it.each([
    [10, 1, [0.641514, 0.641514, 0.811307, 0.811307, 0.878423, 0.878423]],
    [10, 2, [0.281079, 0.04883, 0.497633, 0.120508, 0.617101, 0.182093]],
    [10, 3, [0.046856, 0.002497, 0.144098, 0.01019, 0.232844, 0.019811]],
    [10, 4, [0.006033, 0.000125, 0.031597, 0.000819, 0.065995, 0.001998]],
    [10, 5, [0.000686, 0.000006, 0.005925, 0.000066, 0.015764, 0.0002]],
    [20, 1, [0.871488, 0.871488, 0.964395, 0.964395, 0.985219, 0.985219]],
    [20, 2, [0.582852, 0.095276, 0.80945, 0.226495, 0.890269, 0.331028]],
    [20, 3, [0.127861, 0.004988, 0.333832, 0.020277, 0.485955, 0.03923]],
    [20, 4, [0.019579, 0.00025, 0.092022, 0.001637, 0.176666, 0.003992]],
    [20, 5, [0.002414, 0.000012, 0.019349, 0.000131, 0.048593, 0.0004]],
  ])('with n = %d and c = %d under CAC and CC at p = 5, 8 and 10 %', (tasks, clones, expected) => {
    const got = [0.05, 0.08, 0.1].flatMap((p) => [
      straggleWithCac(model(p, tasks, clones)),
      straggleWithCc(model(p, tasks, clones)),
    ]);
    for (const [place, value] of expected.entries()) expect(got[place]).toBeCloseTo(value, 6);
  });

  it('differs by over 10 and 30 points between CAC and CC with three clones, as Fig. 5 says', () => {
    expect(straggleWithCac(model(0.08, 10, 3)) - straggleWithCc(model(0.08, 10, 3))).toBeCloseTo(0.134, 3);
    expect(straggleWithCac(model(0.08, 20, 3)) - straggleWithCc(model(0.08, 20, 3))).toBeCloseTo(0.314, 3);
  });
});

describe('clonesInTime', () => {
  it('is certain for none and impossible for more than there are', () => {
    expect(clonesInTime(model(0.3, 7, 3), 0)).toBeCloseTo(1, 12);
    expect(clonesInTime(model(0.3, 7, 3), 4)).toBe(0);
  });

  it('is counted by hand for two groups of two', () => {
    expect(clonesInTime(model(0.5, 2, 2), 1)).toBeCloseTo(0.5625, 12);
    expect(clonesInTime(model(0.5, 2, 2), 2)).toBeCloseTo(0.0625, 12);
  });
});
