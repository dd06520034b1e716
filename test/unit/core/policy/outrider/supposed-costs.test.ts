import { describe, expect, it } from 'vitest';
import { outrider } from '../../../../../src/core/policy/outrider/outrider.ts';
import { type TaskSpec, times, viewOf } from '../../../../support/policy-views.ts';

/** Tasks that have read a megabyte each and taken 600 s, and ones with nothing to read, or little, that have run for a while. */
const stageOf = (bytes: number, ranMs: number): TaskSpec[] => [
  ...times(40, { bytes: 1_000_000, doneMs: 600_000 }),
  ...times(8, { bytes, running: [{ ranMs, bytesRead: 0 }] }),
];

const copiesOf = (tasks: readonly TaskSpec[], waiting: number): string[] => {
  const view = viewOf([...tasks, ...times(waiting, { bytes: 1_000 })], { free: waiting === 0 ? 100 : 0 });
  return outrider.propose(view).flatMap(({ kind }) => (kind === 'decline' ? [] : [kind]));
};

describe('tasks with less to read than all that have finished', () => {
  it.each([0, 1_000, 100_000])(
    'are not taken to take less, as long as nothing is learnt of costs: %d bytes, and no copies at 300 s',
    (bytes) => {
      expect(copiesOf(stageOf(bytes, 300_000), 0)).toEqual([]);
      expect(copiesOf(stageOf(bytes, 300_000), 200)).toEqual([]);
    },
  );

  it('are copied once they are late by what those have taken', () => {
    expect(copiesOf(stageOf(0, 1_300_000), 0)).toEqual(times(8, {}).map(() => 'backup'));
  });
});
