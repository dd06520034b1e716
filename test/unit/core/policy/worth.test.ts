import { describe, expect, it } from 'vitest';
import { worthForEnd, type Candidate } from '../../../../src/core/policy/outrider/worth.ts';
import type { JudgedTask } from '../../../../src/core/policy/outrider/judge.ts';
import { viewOf } from '../../../support/policy-views.ts';

/** Tasks of a stage with so much time left each. */
function tasksOf(...remsMs: readonly number[]): JudgedTask[] {
  const view = viewOf(remsMs.map(() => ({ running: [{ ranMs: 1_000, bytesRead: 1 }] })));
  return (view.runs[0]?.tasks ?? []).map((running, place) => {
    const remMs = remsMs[place] ?? 0;
    const [attempt] = running.copies;
    return {
      running,
      copies: [{ attempt, remMs, isTold: true, ranMs: 1_000 }],
      remMs,
      leastRemMs: remMs,
      ranMs: 1_000,
      newMs: [10_000],
      newMeanMs: 10_000,
      usualMs: 10_000,
      bytes: 1,
      sinceCopyMs: 1_000,
      slowness: 1,
      recordFactor: 1,
      isLate: false,
    };
  });
}

/** A copy that takes ten seconds whatever the task has left, and costs as much twice, less what it saves. */
const worthOfTen = (task: JudgedTask): Candidate => ({
  task,
  worth: { savedMs: task.remMs - 10_000, extraMs: 20_000 - task.remMs, newMs: 10_000 },
});

const chosen = (remsMs: readonly number[], candidates: readonly number[]): number[] => {
  const tasks = tasksOf(...remsMs);
  const known = tasks.filter((_, place) => candidates.includes(place)).map(worthOfTen);
  return [...worthForEnd(known, tasks, 0.3)].map(({ running }) => running.task.index);
};

describe('which tasks are copied for the end of their stage', () => {
  it('those that it ends with, as far as their copies bring it forward', () => {
    expect(chosen([60_000, 9_000, 9_000], [0])).toEqual([0]);
    expect(chosen([60_000, 50_000, 9_000], [0, 1])).toEqual([0, 1]);
    // The second ends with the ordinary ones.
    expect(chosen([60_000, 15_000, 15_000, 15_000], [0, 1])).toEqual([0]);
  });

  it('none where a task that cannot be helped ends later', () => {
    expect(chosen([60_000, 50_000], [1])).toEqual([]);
    expect(chosen([60_000, 60_000], [1])).toEqual([]);
  });

  it('none where many would have to be copied for little', () => {
    // Each copy costs 5 s in addition and saves 5 s of its own task: together they save the stage 5 s for 100 s.
    const even = Array.from({ length: 20 }, () => 15_000);
    expect(chosen(even, [...even.keys()])).toEqual([]);
    expect(chosen([15_000, 15_000, 9_000], [0, 1])).toEqual([0, 1]);
  });
});
