import { describe, expect, it } from 'vitest';
import { late } from '../../../../src/core/policy/late/late.ts';
import { slowNodes } from '../../../../src/core/policy/late/slow-node-threshold.ts';
import { times, told, viewOf } from '../../../support/policy-views.ts';

const size = 1_000_000;
const slow = { ranMs: 100_000, bytesRead: 100_000 };

describe('LATE', () => {
  it('divides a score by the age at which it was reported, not by that of today', () => {
    // Half done after 100 s, of which it spoke 50 s ago: 100 s left, where 150 s would be left by its age of today.
    const silent = { running: [{ ranMs: 100_000, bytesRead: 0.5 * size, silentMs: 50_000 }] };
    expect(told(late.propose(viewOf([silent, ...times(6, { doneMs: 10_000 })])))).toEqual([
      'backup 0 100000',
    ]);
  });

  it('ranks by time left: B at half the rate with 10 % done before A at a fifth with 90 % done', () => {
    const view = viewOf([
      { running: [{ ranMs: 4_500_000, bytesRead: 0.9 * size }] },
      { running: [{ ranMs: 200_000, bytesRead: 0.1 * size }] },
      ...times(6, { doneMs: 1_000_000 }),
    ]);
    expect(told(late.propose(view))).toEqual(['backup 1 1800000', 'backup 0 500000']);
  });

  it('copies nothing while a task waits', () => {
    expect(late.propose(viewOf([{ running: [slow] }, ...times(6, { doneMs: 10_000 }), {}]))).toEqual([]);
  });

  it('copies before tasks that wait where it is told not to wait for them, as Mantri held it against its rule', () => {
    const tasks = [{ running: [slow] }, ...times(6, { doneMs: 10_000 }), {}];
    const early = viewOf(tasks, { config: { late: { waitForStarts: false } } });
    expect(late.propose(early)).toMatchObject([{ kind: 'backup', task: { index: 0 }, urgent: true }]);
    expect(late.propose(viewOf(tasks.slice(0, -1)))).toMatchObject([{ kind: 'backup', urgent: false }]);
  });

  it('leaves a task alone until it has run for a minute', () => {
    const at = (ranMs: number): string[] =>
      told(late.propose(viewOf([{ running: [{ ranMs, bytesRead: 100 }] }, ...times(6, { doneMs: 10_000 })])));
    expect(at(59_999)).toEqual([]);
    expect(at(60_000)).toEqual(['backup 0 599940000']);
  });

  it('copies a task once', () => {
    const view = viewOf([{ running: [slow, slow] }, { running: [slow] }, ...times(12, { doneMs: 10_000 })]);
    expect(told(late.propose(view))).toEqual(['backup 1 900000']);
  });

  it('finds no task slow among equals', () => {
    expect(
      late.propose(viewOf([...times(3, { running: [slow] }), ...times(9, { doneMs: 1_000_000 })])),
    ).toEqual([]);
  });

  it('ranks a task without progress first', () => {
    const view = viewOf([
      { running: [slow] },
      { running: [{ ranMs: 70_000, bytesRead: 0 }] },
      ...times(10, { doneMs: 10_000 }),
    ]);
    expect(told(late.propose(view))).toEqual(['backup 1 1000000000000', 'backup 0 900000']);
  });

  it('allows a tenth of the slots to copies, and at least one', () => {
    expect([5, 10, 19, 20, 80].map((cluster) => late.copyCap?.(viewOf([{}], { cluster })))).toEqual([
      1, 1, 1, 2, 8,
    ]);
  });

  it('declines nodes strictly below the 25th percentile of progress', () => {
    // The example's nodes at 2.9 min: ten with 2.9 tasks, X with 1, Y with 0.29.
    const fast = Array.from({ length: 10 }, (_, index) => `fast${index}`);
    const view = viewOf([
      ...fast.flatMap((node) => [
        ...times(2, { doneMs: 60_000, node }),
        { running: [{ ranMs: 54_000, bytesRead: 0.9 * size, node }] },
      ]),
      { doneMs: 174_000, node: 'X' },
      { running: [{ ranMs: 174_000, bytesRead: 0.29 * size, node: 'Y' }] },
    ]);
    expect(slowNodes(view, 0.25)).toEqual(['Y', 'X']);
    expect(slowNodes(view, 0)).toEqual([]);
    expect(told(late.propose(view))).toEqual(['backup 31 426000']);
    expect(late.propose(view)[0]).toMatchObject({ avoidNodes: ['Y', 'X'] });
  });
});
