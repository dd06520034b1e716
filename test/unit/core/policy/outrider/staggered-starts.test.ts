import { describe, expect, it } from 'vitest';
import { outrider } from '../../../../../src/core/policy/outrider/outrider.ts';
import { type TaskSpec, times, viewOf } from '../../../../support/policy-views.ts';

const size = 1_000_000;

/** A task of a stage that is slow at first: a second after each of its reports, which come less and less often. */
const taskAt = (ranMs: number): TaskSpec => {
  // A hundredth is read after 10 s, and after as long again three times as much.
  const readBy = (ms: number): number => Math.round(0.01 * size * (ms / 10_000) ** 1.6);
  const reports = [1_000, 4_000, 14_000, 24_000].filter((ms) => ms <= ranMs);
  const last = reports.at(-1) ?? 1_000;
  const before = reports.slice(0, -1).map((ms) => [ms, readBy(ms)] as const);
  return { bytes: size, running: [{ ranMs: last, bytesRead: readBy(last), before, silentMs: ranMs - last }] };
};

const proposed = (tasks: readonly TaskSpec[]): string[] =>
  outrider.propose(viewOf(tasks, { free: 100 })).flatMap(({ kind }) => (kind === 'decline' ? [] : [kind]));

// Tasks on Fargate begin half a minute apart. Those that have just begun show only that they take no less than so much,
// which is little: as an estimate of what a copy takes it had all the others copied.
describe('a stage slow at first whose tasks do not begin at once', () => {
  it('is not copied where some have just begun', () => {
    for (const olderMs of [9_000, 15_000, 25_000])
      for (const youngerMs of [1_500, 5_000])
        expect(proposed([...times(3, taskAt(olderMs)), ...times(20, taskAt(youngerMs))])).toEqual([]);
  });

  it('is not copied where all have just begun, each at another time', () => {
    expect(proposed(Array.from({ length: 40 }, (_, place) => taskAt(1_000 + place * 200)))).toEqual([]);
  });

  it('is copied where one has come no further than others that began after it, in a tenth of its time', () => {
    const [late] = times(1, taskAt(4_000)).map((task): TaskSpec => ({
      ...task,
      running: [{ ranMs: 60_000, bytesRead: 1_000 }],
    }));
    if (late === undefined) throw new Error('no task');
    expect(proposed([...times(20, taskAt(25_000)), ...times(10, taskAt(1_500)), late]).length).toBe(1);
  });
});
