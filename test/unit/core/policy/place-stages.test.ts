import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decisionsOf } from '../../../../src/contracts/decision-log.ts';
import type { JobId } from '../../../../src/contracts/ids.ts';
import type { Worker } from '../../../../src/contracts/job-spec.ts';
import type { EdgePattern } from '../../../../src/contracts/plan.ts';
import { epochMs } from '../../../../src/contracts/units.ts';
import { applyDecisions, decideTick } from '../../../../src/core/decide-tick.ts';
import {
  addAttempt,
  applyAttempt,
  applyResult,
  createJobState,
  openStage,
} from '../../../../src/core/model/job-state.ts';
import type { JobState } from '../../../../src/core/model/job-view.ts';
import {
  inputsByZone,
  stagePlacements,
  wantedZone,
} from '../../../../src/core/policy/mantri/place-stages.ts';
import { createRng } from '../../../../src/lib/rng.ts';
import { attempt, attemptRecord, failure, resultOf, tickConfig } from '../../../support/job-states.ts';

const at = epochMs;
const zones = ['a', 'b', 'c'];
const fargate: Worker = { kind: 'fargate', size: 'medium' };

/**
 * What a task of the first stage has left, and where: with its worker in `zone`, in the directory bucket of a zone, or in
 * storage that has no zones.
 */
interface Left {
  readonly zone: string;
  readonly lengths: readonly number[];
  readonly isKept?: boolean;
  readonly inBucketOf?: string;
}

interface Form {
  readonly pattern?: EdgePattern;
  readonly tasks?: number;
  readonly worker?: Worker;
}

/** A job whose first stage is done, and whose second waits to open. */
function jobOf(
  left: readonly Left[],
  { pattern = 'all-to-all', tasks, worker = fargate }: Form = {},
): JobState {
  const partitions = tasks ?? left[0]?.lengths.length ?? 1;
  const state = createJobState([
    { name: 'map', tasks: left.length, upstream: [], sourceBytes: left.map(() => 1), worker },
    {
      name: 'reduce',
      ...{ tasks: partitions, upstream: [0], patterns: [pattern], worker, addableTasks: 100 },
      sourceBytes: Array.from({ length: partitions }, () => 0),
    },
  ]);
  openStage(state, 0, [], at(0));
  for (const [task, { zone, lengths, inBucketOf, isKept = inBucketOf === undefined }] of left.entries()) {
    const id = `map/${String(task)}/0`;
    addAttempt(state, attempt(id), 'first', at(0));
    applyAttempt(state, attemptRecord(id, 'done', 100, { zone }), at(100));
    const kept = isKept ? { worker: `10.0.0.${String(task)}:7843` } : {};
    const inZone = inBucketOf === undefined ? {} : { zone: inBucketOf };
    applyResult(state, { ...resultOf(id, 100, lengths), ...kept, ...inZone }, at(100));
  }
  return state;
}

const placedIn = (state: JobState, among = zones): (readonly number[])[] =>
  stagePlacements(state, among).map(({ placement }) => placement.tasks);

describe('the bytes that each task reads from each zone', () => {
  const left: Left[] = [
    { zone: 'a', lengths: [1, 20] },
    { zone: 'c', lengths: [300, 4_000] },
    { zone: 'a', lengths: [50_000, 600_000] },
  ];
  const inputsOf = (pattern: EdgePattern, tasks: number): readonly (readonly number[])[] => {
    const state = jobOf(left, { pattern, tasks });
    const stage = state.stages[1];
    return stage === undefined ? [] : inputsByZone(state, stage, [], zones);
  };

  it.each([
    // Each task its partition of all.
    [
      'all-to-all',
      2,
      [
        [50_001, 0, 300],
        [600_020, 0, 4_000],
      ],
    ],
    // Each task all.
    [
      'broadcast',
      2,
      [
        [650_021, 0, 4_300],
        [650_021, 0, 4_300],
      ],
    ],
    [
      'one-to-one',
      3,
      [
        [21, 0, 0],
        [0, 0, 4_300],
        [650_000, 0, 0],
      ],
    ],
    // Task 0 reads the first output, task 1 the others.
    [
      'many-to-one',
      2,
      [
        [21, 0, 0],
        [650_000, 0, 4_300],
      ],
    ],
  ] as const)('%s', (pattern, tasks, expected) => {
    expect(inputsOf(pattern, tasks)).toEqual(expected);
  });

  it('go by the directory bucket that a piece is in, not by its worker, and none by the data bucket of a zonal job', () => {
    const state = jobOf([
      { zone: 'a', inBucketOf: 'a', lengths: [1, 20] },
      // Copied there from elsewhere; and written while the zone of its worker did not answer.
      { zone: 'b', inBucketOf: 'c', lengths: [300, 4_000] },
      { zone: 'b', isKept: false, lengths: [50_000, 600_000] },
      // A zone that Lambda has been in, and no subnet is.
      { zone: 'd', inBucketOf: 'd', lengths: [7, 7] },
    ]);
    const [, stage] = state.stages;
    expect(stage === undefined ? [] : inputsByZone(state, stage, [], zones)).toEqual([
      [1, 0, 300],
      [20, 0, 4_000],
    ]);
  });

  it('are those of its part where a partition is split', () => {
    const state = jobOf(left);
    const [, stage] = state.stages;
    const splits = [{ task: 1, input: 0, cuts: [2], facts: {} }];
    expect(stage === undefined ? [] : inputsByZone(state, stage, splits, zones)).toEqual([
      [50_001, 0, 300],
      [20, 0, 4_000],
      [600_000, 0, 0],
    ]);
  });
});

describe('where the tasks of a stage are to run', () => {
  it('is the zone of their input where that lies in one', () => {
    const state = jobOf([{ zone: 'b', lengths: [10, 20, 30, 40] }]);
    expect(stagePlacements(state, zones)).toEqual([
      {
        stage: 1,
        placement: {
          zones,
          tasks: [1, 1, 1, 1],
          // Of 100 bytes 2/3 would cross if tasks were anywhere.
          facts: { crossingBytes: 0, spreadBytes: 67, slowestLinkBytes: 0 },
        },
      },
    ]);
  });

  it('is that of the directory bucket which holds their input', () => {
    expect(placedIn(jobOf([{ zone: 'b', inBucketOf: 'c', lengths: [10, 20] }]))).toEqual([[2, 2]]);
  });

  it('is what Mantri has of uneven input: the fixture of four tasks in three racks', () => {
    // Rows (6,2,1), (1,5,3), (2,2,8), (4,4,4): (0,2,2,1) is optimal, with 10 over the slowest link.
    const state = jobOf([
      { zone: 'a', lengths: [6, 1, 2, 4] },
      { zone: 'b', lengths: [2, 5, 2, 4] },
      { zone: 'c', lengths: [1, 3, 8, 4] },
    ]);
    expect(stagePlacements(state, zones)).toEqual([
      {
        stage: 1,
        placement: {
          zones,
          tasks: [0, 2, 2, 1],
          // 42 bytes in all, of which 6 + 3 + 8 + 4 stay within a zone.
          facts: { crossingBytes: 21, spreadBytes: 28, slowestLinkBytes: 10 },
        },
      },
    ]);
  });

  it('is not said where input lies in storage without zones, on Lambda, or among fewer than two zones', () => {
    const left = [{ zone: 'b', lengths: [10, 20] }];
    expect(placedIn(jobOf(left.map((each) => ({ ...each, isKept: false }))))).toEqual([]);
    expect(placedIn(jobOf(left, { worker: { kind: 'lambda', size: 'medium' } }))).toEqual([]);
    expect(placedIn(jobOf(left), [])).toEqual([]);
    expect(placedIn(jobOf(left), ['b'])).toEqual([]);
    expect(placedIn(jobOf([{ zone: 'elsewhere', lengths: [10, 20] }]))).toEqual([]);
    expect(placedIn(jobOf([{ zone: 'b', lengths: [0, 0] }]))).toEqual([]);
  });

  it('leaves out of account what lies in no zone', () => {
    const state = jobOf([
      { zone: 'a', lengths: [1_000, 1_000], isKept: false },
      { zone: 'c', lengths: [1, 1] },
    ]);
    expect(placedIn(state)).toEqual([[2, 2]]);
  });

  it('is worked out by runs of like tasks where there are many', () => {
    // 10,000 tasks, each of which reads the output of one: those of zones a and b by turns, and of c.
    const left = Array.from({ length: 10_000 }, (_, task) => ({
      zone: zones[task % 3] ?? '',
      lengths: [1_000 + (task % 7)],
    }));
    const state = jobOf(left, { pattern: 'one-to-one', tasks: 10_000 });
    // Task by task it would not end within the test's time.
    const [placed] = stagePlacements(state, zones);
    const apart = placed?.placement.tasks.filter((zone, task) => zone !== task % 3).length;
    // Two runs of ten tasks hold some of two zones each.
    expect(apart).toBeLessThanOrEqual(20);
  });

  it('crosses no more than the best of all placements does over its slowest link', () => {
    const bytes = fc.integer({ min: 0, max: 50 });
    const arbLeft = fc.array(
      fc.record({
        zone: fc.constantFrom(...zones),
        lengths: fc.array(bytes, { minLength: 4, maxLength: 4 }),
      }),
      { minLength: 1, maxLength: 5 },
    );
    const all = Array.from({ length: 81 }, (_, number) =>
      [27, 9, 3, 1].map((by) => Math.floor(number / by) % 3),
    );
    fc.assert(
      fc.property(arbLeft, (left) => {
        const [placed] = stagePlacements(jobOf(left), zones);
        const slowest = all.map((places) => {
          const [up, down] = [
            [0, 0, 0],
            [0, 0, 0],
          ];
          for (const { zone, lengths } of left)
            for (const [task, length] of lengths.entries()) {
              const [from, to] = [zones.indexOf(zone), places[task] ?? 0];
              if (from === to) continue;
              up[from] = (up[from] ?? 0) + length;
              down[to] = (down[to] ?? 0) + length;
            }
          return Math.max(...up, ...down);
        });
        if (placed !== undefined)
          expect(placed.placement.facts['slowestLinkBytes']).toBe(Math.min(...slowest));
      }),
    );
  });
});

describe('a stage that was placed', () => {
  const left = [{ zone: 'b', lengths: [10, 20] }];
  const budget = (state: JobState) => ({
    ...{ slots: 10, cancelRequested: false },
    placements: stagePlacements(state, zones),
  });

  function opened(): JobState {
    const state = jobOf(left);
    const { decisions } = decideTick(state, at(200), tickConfig, budget(state), createRng('x'));
    // As whoever takes the job over reads them.
    const entry = {
      version: 1,
      epoch: 1,
      at: at(200),
      decisions: JSON.parse(JSON.stringify(decisions)) as unknown[],
    };
    const read = decisionsOf('job-0123456789ab' as JobId, entry, 0);
    expect(read).toEqual(decisions);
    applyDecisions(state, read, {
      now: at(200),
      openStage: (stage) => {
        openStage(state, stage, [], at(200));
      },
    });
    return state;
  }

  const zoneWanted = (state: JobState, id: string): string | undefined => {
    const [stage, view] = [state.stages[1], state.attempts.get(attempt(id))];
    return stage === undefined || view === undefined ? 'no such attempt' : wantedZone(stage, view);
  };

  it('knows the zones of its tasks from the log, and keeps them when it opens once more', () => {
    const state = opened();
    expect(state.stages[1]?.placement).toMatchObject({ zones, tasks: [1, 1] });
    expect(state.stages[0]?.placement).toBeUndefined();
    const other = { zones, tasks: [0, 0], facts: {} };
    const again = { kind: 'open-stage', stage: 1, placement: other } as const;
    applyDecisions(state, [again], { now: at(300), openStage: () => undefined });
    expect(state.stages[1]?.placement?.tasks).toEqual([1, 1]);
  });

  it('wants first attempts, and those in place of failed ones, in their zone', () => {
    const state = opened();
    addAttempt(state, attempt('reduce/0/0'), 'first', at(200));
    expect(zoneWanted(state, 'reduce/0/0')).toBe('b');
    applyAttempt(state, attemptRecord('reduce/0/0', 'failed', 300, { zone: 'b' }), at(300));
    addAttempt(state, attempt('reduce/0/1'), 'retry', at(300));
    expect(zoneWanted(state, 'reduce/0/1')).toBe('b');
  });

  it('wants what comes after an attempt that found no place in its zone anywhere', () => {
    const state = opened();
    addAttempt(state, attempt('reduce/0/0'), 'first', at(200));
    const unplaced = attemptRecord('reduce/0/0', 'launched', 300, { failure: failure('expired') });
    applyAttempt(state, { ...unplaced, state: 'lost', endedAt: at(300) }, at(300));
    addAttempt(state, attempt('reduce/0/1'), 'retry', at(300));
    expect(zoneWanted(state, 'reduce/0/1')).toBeUndefined();
    // And others of its stage as before.
    addAttempt(state, attempt('reduce/1/0'), 'first', at(300));
    expect(zoneWanted(state, 'reduce/1/0')).toBe('b');
  });

  it('wants copies of attempts that are slow in their zone anywhere, and of those that are slow elsewhere in it', () => {
    const state = opened();
    for (const [task, zone] of ['b', 'c'].entries()) {
      const id = `reduce/${String(task)}`;
      addAttempt(state, attempt(`${id}/0`), 'first', at(200));
      applyAttempt(state, attemptRecord(`${id}/0`, 'running', 300, { zone }), at(300));
      addAttempt(state, attempt(`${id}/1`), task === 0 ? 'backup' : 'restart', at(400));
    }
    expect(zoneWanted(state, 'reduce/0/1')).toBeUndefined();
    expect(zoneWanted(state, 'reduce/1/1')).toBe('b');
  });
});
