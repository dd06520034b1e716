import { describe, expect, it } from 'vitest';
import { invariant } from '../../../../src/contracts/errors.ts';
import { lossLeftMs } from '../../../../src/core/policy/loss-limit.ts';
import { type TaskSpec, times, viewOf } from '../../../support/policy-views.ts';

const running: TaskSpec = { running: [{ ranMs: 2_000, bytesRead: 1 }] };
const done: TaskSpec = { doneMs: 2_000 };
const waits: TaskSpec = {};

function leftMs(tasks: readonly TaskSpec[]): number {
  const view = viewOf(tasks);
  const [runs] = view.runs;
  invariant(runs !== undefined, 'a stage runs', {});
  return lossLeftMs(runs, view);
}

describe('what copies and kills of a stage may lose', () => {
  it('is a quarter of what its tasks have taken, finished and running, where none waits', () => {
    expect(leftMs([...times(3, running), ...times(5, done)])).toBe(4_000);
  });

  it('is as much again for tasks that wait, as far as they are as many as have begun', () => {
    expect(leftMs([...times(3, running), done, ...times(2, waits)])).toBe(3_000);
    expect(leftMs([...times(4, running), ...times(4, waits)])).toBe(4_000);
    expect(leftMs([...times(4, running), ...times(100, waits)])).toBe(4_000);
  });

  it('leaves a first wave of four a kill of one of them', () => {
    const late: TaskSpec = { running: [{ ranMs: 2_300, bytesRead: 1 }] };
    expect(leftMs([late, ...times(3, running), ...times(9, waits)])).toBeGreaterThan(2_300);
  });

  it('is less by what copies have taken besides', () => {
    const two = { ranMs: 2_000, bytesRead: 1 };
    expect(leftMs([{ running: [two, two] }, ...times(3, running), ...times(4, waits)])).toBe(2_000);
  });
});
