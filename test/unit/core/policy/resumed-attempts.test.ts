import { describe, expect, it } from 'vitest';
import { mantri } from '../../../../src/core/policy/mantri/mantri.ts';
import { outrider } from '../../../../src/core/policy/outrider/outrider.ts';
import { type RunningSpec, type TaskSpec, times, viewOf } from '../../../support/policy-views.ts';

const policies = [outrider, mantri] as const;
const size = 1_000_000;
/** Finished tasks of 100 s each. */
const done = times(99, { doneMs: 100_000 });

/** What is done about a task of which nine tenths were handed on, so that another attempt takes ten seconds. */
function actsOn(
  policy: (typeof policies)[number],
  running: RunningSpec,
  { handedOn = 0.9, waiting = 0 }: { readonly handedOn?: number; readonly waiting?: number } = {},
): string[] {
  const tasks: TaskSpec[] = [...done, { handedOn, running: [running] }, ...times(waiting, {})];
  const view = viewOf(tasks, { reportMs: 1_000, ...(waiting === 0 ? {} : { free: 1 }) });
  return policy
    .propose(view)
    .flatMap(({ kind, task }) => (kind === 'decline' || task.index !== 99 ? [] : [kind]));
}

/** One that has read so much of the whole input after so many seconds, as evenly as its reports tell. */
const evenly = (seconds: number, share: number): RunningSpec => ({
  ranMs: seconds * 1_000,
  bytesRead: share * size,
  before: [0.25, 0.5, 0.75].map((part) => [part * seconds * 1_000, part * share * size] as const),
});

describe.each(policies)('$name, of an attempt that does the rest of a task', (policy) => {
  it('copies one that is ten times as slow: a copy takes up the same work', () => {
    // 80 s are left of it, and a copy of the whole task would take 100 s.
    expect(actsOn(policy, evenly(20, 0.02))).toEqual(['backup']);
  });

  it('kills or copies it before tasks that wait', () => {
    expect(actsOn(policy, evenly(20, 0.02), { waiting: 1 })).toHaveLength(1);
  });

  it('leaves alone one that gets on as others do, or has just begun', () => {
    expect(actsOn(policy, evenly(5, 0.05))).toEqual([]);
    expect(actsOn(policy, { ranMs: 2_000, bytesRead: 0 })).toEqual([]);
  });

  it('copies one that stands still since it has taken up what was there', () => {
    expect(actsOn(policy, { ranMs: 600_000, bytesRead: 0, takeUpMs: 5_000, before: [[6_000, 0]] })).toEqual([
      'backup',
    ]);
  });

  it('leaves alone one that took long to take up what was there: so would a copy', () => {
    // A minute before its first byte, and then as fast as any: it needs 9 s more, where a copy would need 70.
    const started = {
      ranMs: 61_000,
      bytesRead: 0.01 * size,
      takeUpMs: 60_000,
      before: [[60_000, 0]] as const,
    };
    expect(actsOn(policy, started)).toEqual([]);
    expect(actsOn(policy, started, { waiting: 1 })).toEqual([]);
  });

  it('leaves alone one whose rest a copy would not do sooner', () => {
    // Half of the task is left, which takes a copy 50 s; this one needs 40 s more.
    expect(actsOn(policy, evenly(60, 0.3), { handedOn: 0.5 })).toEqual([]);
  });
});
