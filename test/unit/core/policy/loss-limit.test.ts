import { describe, expect, it } from 'vitest';
import { invariant } from '../../../../src/contracts/errors.ts';
import { policyNames } from '../../../../src/contracts/policy-names.ts';
import { lossLeftMs } from '../../../../src/core/policy/loss-limit.ts';
import { policySetOf } from '../../../../src/core/policy/policy-sets.ts';
import { type TaskSpec, times, viewOf } from '../../../support/policy-views.ts';

const running: TaskSpec = { running: [{ ranMs: 2_000, bytesRead: 1 }] };
const done: TaskSpec = { doneMs: 2_000 };
const waits: TaskSpec = {};

function leftMs(tasks: readonly TaskSpec[], losesAhead = false): number {
  const view = { ...viewOf(tasks), losesAhead };
  const [runs] = view.runs;
  invariant(runs !== undefined, 'a stage runs', {});
  return lossLeftMs(runs, view);
}

describe('what copies and kills of a stage may lose', () => {
  it('is a quarter of what its tasks have taken, finished and running, less what copies have taken besides', () => {
    expect(leftMs([...times(3, running), ...times(5, done)])).toBe(4_000);
    expect(leftMs([...times(3, running), done, ...times(9, waits)])).toBe(2_000);
    const two = { ranMs: 2_000, bytesRead: 1 };
    expect(leftMs([{ running: [two, two] }, ...times(3, running), ...times(4, waits)])).toBe(0);
  });

  it('is at first one task of four that run beside each other, though their starts differ', () => {
    const long: TaskSpec = { running: [{ ranMs: 2_400, bytesRead: 1 }] };
    // A quarter of the 8.4 s that they have taken would be 2.1 s.
    expect(leftMs([long, ...times(3, running), ...times(8, waits)])).toBe(2_400);
    // Of three it is not: 7/24 of 6.4 s.
    expect(leftMs([long, ...times(2, running), ...times(8, waits)])).toBeCloseTo(1_866.7, 1);
    // Of many no more than one, and no less than the quarter.
    expect(leftMs([long, ...times(4, running), ...times(8, waits)])).toBe(2_600);
  });

  it('is at first one task where those that wait bear it, if the policy says so', () => {
    const long: TaskSpec = { running: [{ ranMs: 3_000, bytesRead: 1 }] };
    // 5 s in two tasks, 2.5 s in each of the ten others: a quarter of 30 s would bear two.
    expect(leftMs([long, running, ...times(10, waits)], true)).toBe(3_000);
    // A quarter of 10 s bears less than one.
    expect(leftMs([long, running, ...times(2, waits)], true)).toBe(2_500);
    expect(leftMs([long, running, ...times(2, waits)])).toBeCloseTo(1_458.3, 1);
    // No less than without.
    expect(leftMs([...times(3, running), ...times(20, done)], true)).toBe(11_500);
  });

  it('is that no more once something was lost', () => {
    const copied: TaskSpec = {
      running: [
        { ranMs: 3_000, bytesRead: 1 },
        { ranMs: 1_000, bytesRead: 1 },
      ],
    };
    expect(leftMs([copied, running, ...times(20, waits)], true)).toBe(250);
  });

  it('is counted on by outrider alone', () => {
    expect(policyNames.filter((name) => policySetOf(name).losesAhead === true)).toEqual(['outrider']);
  });
});
