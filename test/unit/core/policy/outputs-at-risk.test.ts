import { describe, expect, it } from 'vitest';
import type { EdgePattern } from '../../../../src/contracts/plan.ts';
import { epochMs } from '../../../../src/contracts/units.ts';
import { producersOf, readersOf } from '../../../../src/core/model/edge-manifest.ts';
import { applyReplica, applyResult, createJobState, taskAt } from '../../../../src/core/model/job-state.ts';
import { isUnprotected } from '../../../../src/core/policy/mantri/outputs-at-risk.ts';
import { attempt, resultOf } from '../../../support/job-states.ts';

const stage = (name: string, tasks: number, upstream: readonly number[], patterns: EdgePattern[] = []) => ({
  ...{ name, tasks, upstream, patterns, sourceBytes: [] },
});

/** Which outputs of the first stage are unprotected once all of it is done, and these tasks of the others. */
function unprotected(pattern: EdgePattern, readers: number, done: readonly string[]): number[] {
  const state = createJobState([
    stage('first', 4, []),
    stage('second', readers, [0], [pattern]),
    stage('last', 1, [1], ['all-to-all']),
  ]);
  const first = [0, 1, 2, 3].map((task) => `first/${task}`);
  for (const task of [...first, ...done]) applyResult(state, resultOf(`${task}/0`, 5), epochMs(5));
  return [0, 1, 2, 3].filter((task) => isUnprotected(state, taskAt(state, 0, task)));
}

describe('an output that might be copied', () => {
  it('is one that a task reads which is not done', () => {
    expect(unprotected('one-to-one', 4, [])).toEqual([0, 1, 2, 3]);
    expect(unprotected('one-to-one', 4, ['second/0', 'second/2'])).toEqual([1, 3]);
    expect(unprotected('many-to-one', 2, ['second/0'])).toEqual([2, 3]);
    expect(unprotected('all-to-all', 2, ['second/0'])).toEqual([0, 1, 2, 3]);
    expect(unprotected('all-to-all', 2, ['second/0', 'second/1'])).toEqual([]);
    expect(unprotected('broadcast', 2, ['second/1'])).toEqual([0, 1, 2, 3]);
  });

  it('is none of the last stage, none without bytes, and none of which there is a copy', () => {
    const state = createJobState([stage('first', 4, []), stage('last', 1, [0])]);
    applyResult(state, resultOf('first/0/0', 5), epochMs(5));
    applyResult(state, { ...resultOf('first/1/0', 5), bytesOut: 0 }, epochMs(5));
    applyResult(state, resultOf('first/2/0', 5), epochMs(5));
    applyReplica(state, resultOf('first/2/1', 5));
    applyResult(state, resultOf('first/3/0', 5), epochMs(5));
    state.copied.set(attempt('first/3/0'), { bytes: 10, reason: 'worth' });
    expect([0, 1, 2, 3].filter((task) => isUnprotected(state, taskAt(state, 0, task)))).toEqual([0]);
    applyResult(state, resultOf('last/0/0', 5), epochMs(5));
    expect(isUnprotected(state, taskAt(state, 1, 0))).toBe(false);
  });
});

describe('who reads an output', () => {
  it.each([
    ['one-to-one', 5, 5],
    ['many-to-one', 7, 3],
    ['many-to-one', 6, 3],
    ['many-to-one', 1_000, 49],
    ['many-to-one', 3, 5],
    ['all-to-all', 3, 4],
    ['broadcast', 2, 3],
  ] as const)(
    'are those that have it among what they read: %s, %i outputs, %i readers',
    (pattern, tasks, readers) => {
      const edge = { pattern, producerTasks: tasks };
      for (let producer = 0; producer < tasks; producer++) {
        const reading = Array.from({ length: readers }, (_, reader) => reader).filter((reader) => {
          const { from, to } = producersOf(edge, reader, readers);
          return from <= producer && producer < to;
        });
        const { from, to } = readersOf(edge, producer, readers);
        expect(Array.from({ length: to - from }, (_, place) => from + place)).toEqual(reading);
      }
    },
  );
});
