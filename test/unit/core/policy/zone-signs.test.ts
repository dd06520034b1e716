import { describe, expect, it } from 'vitest';
import { attemptIdOf, type JobId } from '../../../../src/contracts/ids.ts';
import { epochMs } from '../../../../src/contracts/units.ts';
import { addAttempt, applyAttempt, stageAt } from '../../../../src/core/model/job-state.ts';
import type { JobState } from '../../../../src/core/model/job-view.ts';
import type { ZoneBook } from '../../../../src/core/model/zone-book.ts';
import { zoneSigns } from '../../../../src/core/policy/zone-signs.ts';
import { createRng } from '../../../../src/lib/rng.ts';
import { attemptRecord, progressOf } from '../../../support/job-states.ts';
import { jobOf, type TaskSpec } from '../../../support/policy-views.ts';

const jobId = 'words-0123456789ab' as JobId;
const now = epochMs(60_000);

/** Tasks of a zone that took so many seconds each, every one on a machine of its own, or all on one. */
const inZone = (zone: string, seconds: readonly number[], node?: string): TaskSpec[] =>
  seconds.map((each, place) => ({
    ...{ doneMs: 1_000 * each, zone, node: node ?? `${zone}${String(place)}` },
  }));
const usual = [1, 1, 1.2, 0.9];
const slow = [5, 5, 5, 5];
const signsOf = (state: JobState, at = now): ZoneBook => zoneSigns(jobId, state, at);
const toldOf = (tasks: readonly TaskSpec[]): unknown =>
  signsOf(jobOf(tasks, 'fargate')).map(({ zones }) =>
    zones.map(({ zone, factor, samples }) => [zone, factor, samples]),
  );

describe('what a job tells others of zones', () => {
  it('is a zone in which nothing was fast, by what tasks take there and elsewhere in the middle', () => {
    const tasks = [...inZone('a', [4, 5, 5, 9]), ...inZone('b', usual), ...inZone('c', usual)];
    expect(toldOf(tasks)).toEqual([
      [
        ['a', 5, 4],
        ['b', 1, 4],
        ['c', 1, 4],
      ],
    ]);
  });

  it('is nothing where one of few was fast, or tasks took less than twice as long', () => {
    expect(toldOf([...inZone('a', [1, 5, 5, 9]), ...inZone('b', usual)])).toEqual([]);
    expect(toldOf([...inZone('a', [1.9, 5, 5, 9]), ...inZone('b', usual)])).toEqual([]);
  });

  it('bears one fast task of ten', () => {
    const most = Array.from({ length: 9 }, () => 5);
    expect(toldOf([...inZone('a', [1, ...most]), ...inZone('b', usual)])).toHaveLength(1);
    expect(toldOf([...inZone('a', [1, 1, ...most]), ...inZone('b', usual)])).toEqual([]);
  });

  it('is nothing by fewer than four machines there or elsewhere: several tasks of one tell of the machine', () => {
    expect(toldOf([...inZone('a', slow.slice(1)), ...inZone('b', usual)])).toEqual([]);
    expect(toldOf([...inZone('a', slow, 'one'), ...inZone('b', usual)])).toEqual([]);
    expect(toldOf([...inZone('a', slow), ...inZone('b', usual, 'one')])).toEqual([]);
    expect(toldOf([...inZone('a', slow), ...inZone('b', usual)])).toHaveLength(1);
  });

  it('is of stages that are done, on Fargate, and not placed by what they read, for a quarter of an hour', () => {
    const tasks = [...inZone('a', slow), ...inZone('b', usual)];
    const minuteMs = 60_000;
    const state = jobOf(tasks, 'fargate');
    // Its last task was done 6 s after 0.
    expect(signsOf(state, epochMs(15 * minuteMs))).toHaveLength(1);
    expect(signsOf(state, epochMs(16 * minuteMs))).toEqual([]);
    expect(signsOf(jobOf(tasks, 'lambda'))).toEqual([]);
    stageAt(state, 0).placement = { zones: ['a', 'b'], tasks: [], facts: {} };
    expect(signsOf(state)).toEqual([]);
    expect(signsOf(jobOf([...tasks, {}], 'fargate'))).toEqual([]);
  });

  /** The job, with a copy of its first task in zone `a` that was stopped after so many ms in which it read half. */
  function withStopped(ranMs: number): JobState {
    const state = jobOf([...inZone('b', usual), ...inZone('c', usual), ...inZone('a', slow)], 'fargate');
    const id = attemptIdOf('map', 0, 1);
    const claimedAt = epochMs(1_100);
    addAttempt(state, id, 'backup', claimedAt);
    const progress = progressOf(500_000, 1_000_000, 0, ranMs);
    for (const attemptState of ['running', 'cancelled'] as const) {
      const record = attemptRecord(id, attemptState, claimedAt + ranMs, {
        ...{ claimedAt, progress, node: 'a9', zone: 'a' },
      });
      applyAttempt(state, record, epochMs(claimedAt + ranMs));
    }
    return state;
  }

  it('bears a copy that was stopped when it had read what lay in buffers alone, not one that ran for half of the usual', () => {
    expect(signsOf(withStopped(300))).toMatchObject([
      { zones: [{ zone: 'b' }, { zone: 'c' }, { zone: 'a', samples: 4, factor: 5 }] },
    ]);
    expect(signsOf(withStopped(600))).toEqual([]);
  });

  // A fifth of all tasks takes eight times as long, as stragglers do: five of five in one zone in 3 of 3,125 stages.
  it('is next to never what stragglers do by chance', () => {
    const rng = createRng('stragglers in zones');
    const seconds = (): number => (rng.next() < 0.2 ? 8 : 1) * (0.8 + 0.4 * rng.next());
    let told = 0;
    for (let stage = 0; stage < 500; stage++) {
      const tasks = ['a', 'b', 'c'].flatMap((zone) => inZone(zone, Array.from({ length: 5 }, seconds)));
      told += signsOf(jobOf(tasks, 'fargate')).length;
    }
    expect(told).toBeLessThanOrEqual(2);
  });
});
