import { describe, expect, it } from 'vitest';
import { invariant } from '../../../../src/contracts/errors.ts';
import { lossLeftMs } from '../../../../src/core/policy/loss-limit.ts';
import { outrider } from '../../../../src/core/policy/outrider/outrider.ts';
import { type TaskSpec, times, viewOf } from '../../../support/policy-views.ts';

const running: TaskSpec = { running: [{ ranMs: 2_000, bytesRead: 1 }] };
const done: TaskSpec = { doneMs: 2_000 };
const waits: TaskSpec = {};

function leftMs(tasks: readonly TaskSpec[], lossAhead?: number): number {
  const view = { ...viewOf(tasks), ...(lossAhead === undefined ? {} : { lossAhead }) };
  const [runs] = view.runs;
  invariant(runs !== undefined, 'a stage runs', {});
  return lossLeftMs(runs, view);
}

describe('what copies and kills of a stage may lose', () => {
  it('is a quarter of what its tasks have taken, finished and running, where none waits', () => {
    expect(leftMs([...times(3, running), ...times(5, done)])).toBe(4_000);
  });

  it('is more by tasks that wait, as far as a policy counts on them', () => {
    expect(leftMs([...times(3, running), done, ...times(2, waits)])).toBe(2_000);
    expect(leftMs([...times(3, running), done, ...times(2, waits)], 1)).toBe(3_000);
    expect(leftMs([...times(4, running), ...times(4, waits)], 1)).toBe(4_000);
    expect(leftMs([...times(4, running), ...times(100, waits)], 1)).toBe(4_000);
    expect(leftMs([...times(4, running), ...times(100, waits)], 0.25)).toBe(2_500);
  });

  it('leaves outrider a kill in a first wave of four', () => {
    const late: TaskSpec = { running: [{ ranMs: 2_300, bytesRead: 1 }] };
    expect(leftMs([late, ...times(3, running), ...times(9, waits)])).toBeLessThan(2_300);
    expect(leftMs([late, ...times(3, running), ...times(9, waits)], outrider.lossAhead)).toBeGreaterThan(
      2_300,
    );
  });

  it('is less by what copies have taken besides', () => {
    const two = { ranMs: 2_000, bytesRead: 1 };
    expect(leftMs([{ running: [two, two] }, ...times(3, running), ...times(4, waits)])).toBe(0);
  });
});
