import { describe, expect, it } from 'vitest';
import { forecastFormat, type StoredForecast, type StoredTable } from '../../../../src/contracts/forecast.ts';
import { attemptIdOf, type JobId } from '../../../../src/contracts/ids.ts';
import { limits } from '../../../../src/contracts/limits.ts';
import { type Plan, planSchema } from '../../../../src/contracts/plan.ts';
import type { Progress } from '../../../../src/contracts/progress.ts';
import type { AttemptRecord } from '../../../../src/contracts/records.ts';
import { epochMs } from '../../../../src/contracts/units.ts';
import { fingerprintOf, learnProfile, tellsOf } from '../../../../src/core/forecast/learn-profile.ts';
import { mostAtOnce, timesOfStages } from '../../../../src/core/forecast/task-times.ts';

const idOf = (run: number): JobId => `words-${run.toString(16).padStart(12, '0')}` as JobId;

interface Changes {
  readonly tasks?: number;
  readonly sourceBytes?: number;
  readonly size?: string;
  readonly pattern?: string;
  readonly sha256?: string;
}

/** A plan of a stage that reads sources and one that reads all of it. */
function planOf({
  tasks = 2,
  sourceBytes = 100,
  size = 'small',
  pattern = 'all-to-all',
}: Changes = {}): Plan {
  const stage = (name: string, inputs: unknown[], bytes: number[]) => ({
    description: {
      jobId: idOf(1),
      name,
      operator: name === 'map' ? 'tokenize' : 'sum-counts',
      options: {},
      worker: { kind: 'lambda', size },
      inputs,
      tasks: bytes.length,
      partitions: 1,
      output: name === 'map' ? 'sorted' : 'final',
      dataBucket: 'data',
      outputPrefix: { bucket: 'data', key: 'out/' },
    },
    sourceBytes: bytes,
    manifestOffsets: [[]],
  });
  const source = { kind: 'source', format: 'text', header: false, onBadRecord: 'fail' };
  const read = { kind: 'stage', stage: 'map', pattern, producerTasks: tasks, producerPartitions: 1 };
  return planSchema.parse({
    version: 1,
    jobId: idOf(1),
    nonce: 'n',
    name: 'words',
    policy: 'none',
    policyConfig: {},
    shards: 1,
    stages: [
      stage(
        'map',
        [source],
        Array.from({ length: tasks }, () => sourceBytes),
      ),
      stage('reduce', [read], [0]),
    ],
  });
}

const progress = (bytesRead: number): Progress => ({
  bytesRead,
  bytesTotal: bytesRead,
  recordsIn: 0,
  recordsOut: 0,
  phase: 'write',
  phaseMs: { init: 0, read: 0, compute: 0, write: 0 },
  peakMemoryBytes: 0,
});

/** An attempt launched at `launched`, that began at `from` and ended at `to`. */
const ran = (
  [stage, task, number = 0]: readonly [string, number, number?],
  [launched, from, to]: readonly [number, number, number],
  fields: Partial<AttemptRecord> = {},
): AttemptRecord => ({
  attemptId: attemptIdOf(stage, task, number),
  state: 'done',
  order: 'continue',
  beat: 1,
  launchedAt: epochMs(launched),
  claimedAt: epochMs(from),
  endedAt: epochMs(to),
  node: 'a',
  progress: progress(100),
  ...fields,
});

/** Two tasks beside each other, then one that reads both; the times of all are `factor` times as long. */
const attemptsOf = (factor = 1): AttemptRecord[] => [
  ran(['map', 0], [0, 10, 10 + 1_000 * factor], { node: 'a' }),
  ran(['map', 1], [0, 20, 20 + 2_000 * factor], { node: 'b' }),
  ran(['reduce', 0], [9_000, 9_005, 9_005 + 500 * factor], { node: 'b' }),
];

/** So many tasks that take longer than a worker has: each was handed on once. */
const handedOnOnce = (tasks: number): AttemptRecord[] =>
  Array.from({ length: tasks }, (_, task) => [
    ran(['map', task], [0, 0, 900_000], { state: 'failed' }),
    ran(['map', task, 1], [900_000, 900_000, 1_200_000], {
      progress: { ...progress(25), takenUp: { attempt: 0, bytes: 75 } },
    }),
  ]).flat();

const learned = (run: number, before?: StoredForecast, changes: Changes = {}, factor = 1) =>
  learnProfile({ jobId: idOf(run), plan: planOf(changes), attempts: attemptsOf(factor) }, before);

function known(run: number, before?: StoredForecast, changes: Changes = {}, factor = 1): StoredForecast {
  const found = learned(run, before, changes, factor);
  if (found === undefined) throw new Error('nothing was learned');
  return found;
}

describe('what one run tells', () => {
  it('is how long tasks took, by what ran before them, how long they queued, and what they read', () => {
    expect(known(1)).toEqual({
      version: forecastFormat,
      name: 'words',
      fingerprint: fingerprintOf(planOf()),
      inputBytes: 200,
      runs: 1,
      jobs: [idOf(1)],
      profile: {
        stages: [
          {
            name: 'map',
            tasks: 2,
            inputs: [],
            runs: [{ slots: 2, times: { cold: [1_000, 2_000], first: [], later: [] } }],
            queueMs: [10, 20],
            failureShare: 0,
            taskBytes: 100,
          },
          {
            name: 'reduce',
            tasks: 1,
            inputs: [{ stage: 0, isBarrier: true }],
            runs: [{ slots: 2, times: { cold: [], first: [500], later: [] } }],
            queueMs: [5],
            failureShare: 0,
            taskBytes: 100,
          },
        ],
      },
    });
  });

  it('takes a task for as long as its straggler ran until a copy came, and not for what that took to stop', () => {
    const told = timesOfStages([
      ran(['map', 0], [0, 0, 9_000], { state: 'cancelled' }),
      ran(['map', 0, 1], [4_000, 4_100, 5_000], { node: 'b' }),
    ]).get('map');
    expect(told?.times).toEqual({ cold: [5_000], first: [], later: [] });
    expect(told?.queueMs).toEqual([0, 100]);
  });

  it('counts what failed or was lost as failures, and its time as nobody’s', () => {
    const told = timesOfStages([
      ran(['map', 0], [0, 0, 50], { state: 'failed' }),
      ran(['map', 0, 1], [60, 60, 160]),
      ran(['map', 1], [0, 0, 100], { state: 'lost', node: 'b' }),
      ran(['map', 1, 1], [200, 200, 300], { node: 'b' }),
    ]).get('map');
    expect(told?.failureShare).toBe(0.5);
    expect(told?.times).toEqual({ cold: [], first: [], later: [100, 100] });
  });

  it('counts no attempt as a failure whose work the winner took up: its time is told as the task’s', () => {
    const rest = (attempt: number) => ({ progress: { ...progress(50), takenUp: { attempt, bytes: 50 } } });
    const told = timesOfStages([
      ran(['map', 0], [0, 0, 700], { state: 'failed' }),
      ran(['map', 0, 1], [700, 700, 1_200], rest(0)),
      // What it had taken up was lost with it: the winner began anew.
      ran(['map', 1], [0, 0, 700], { state: 'failed', node: 'b' }),
      ran(['map', 1, 1], [700, 700, 900], { state: 'failed', node: 'b', ...rest(0) }),
      ran(['map', 1, 2], [900, 900, 2_100], { node: 'b' }),
    ]).get('map');
    expect(told?.times).toEqual({ cold: [], first: [], later: [1_200, 1_200] });
    // Two of map/1 beside the two winners.
    expect(told?.failureShare).toBe(0.5);
    expect(timesOfStages(handedOnOnce(20)).get('map')?.failureShare).toBe(0);
  });

  it('counts no launch that nobody took up, neither as a failure nor beside those', () => {
    const unclaimed = (task: number): AttemptRecord => ({
      attemptId: attemptIdOf('map', task, 0),
      state: 'lost',
      order: 'cancel',
      beat: 0,
      launchedAt: epochMs(0),
      endedAt: epochMs(60),
    });
    const told = timesOfStages([
      ...[unclaimed(0), unclaimed(1), unclaimed(2)],
      ...[0, 1, 2].map((task) => ran(['map', task, 1], [100, 100, 200])),
      ran(['map', 3], [0, 0, 50], { state: 'failed' }),
      ran(['map', 3, 1], [100, 100, 200]),
    ]).get('map');
    expect(told?.failureShare).toBe(0.2);
  });

  it('counts a wait behind another attempt of an invocation as no queueing', () => {
    const told = timesOfStages([
      ran(['map', 0], [0, 30, 1_030], { invocation: 'i' }),
      ran(['map', 1], [0, 1_030, 2_030], { invocation: 'i' }),
    ]).get('map');
    expect(told?.queueMs).toEqual([30]);
    // One launch of two attempts.
    expect(told?.queuedShare).toBe(0.5);
  });

  it('has the share of attempts that waited for a launch of their own, where others rode behind them', () => {
    const attempts = attemptsOf().map((each) => ({
      ...each,
      invocation: each.attemptId.startsWith('map') ? 'i' : 'j',
    }));
    const learn = (run: number, before?: StoredForecast): StoredForecast | undefined =>
      learnProfile({ jobId: idOf(run), plan: planOf(), attempts }, before);
    expect(learn(1)?.profile.stages.map(({ queuedShare }) => queuedShare)).toEqual([0.5, undefined]);
    // Of two runs each counts for a half.
    expect(learn(2, known(1))?.profile.stages[0]?.queuedShare).toBe(0.75);
    expect(learn(2, learn(1))?.profile.stages[0]?.queuedShare).toBe(0.5);
  });

  it('is not thrown off by clocks that are apart, or by what never began', () => {
    const told = timesOfStages([
      ran(['map', 0], [5_000, 1_000, 2_000]),
      { ...ran(['map', 1], [0, 0, 0]), state: 'cancelled' },
      {
        attemptId: attemptIdOf('map', 2, 0),
        state: 'launched',
        order: 'cancel',
        beat: 0,
        launchedAt: epochMs(0),
      },
    ]).get('map');
    expect(told?.queueMs).toEqual([0, 0]);
    expect(told?.times.cold.concat(told.times.first, told.times.later)).toEqual([1_000]);
  });

  it('has all tasks that ran, where partitions were split into more than were planned', () => {
    const parts = [2, 3, 4].map((task) => ran(['map', task], [0, 10, 510], { node: `n${task}` }));
    const run = { jobId: idOf(1), plan: planOf(), attempts: [...attemptsOf(), ...parts] };
    const [map, reduce] = learnProfile(run, undefined)?.profile.stages ?? [];
    // Of 1, 2, and three times half a second: 4.5 s of work in all.
    expect(map?.runs[0]?.times.cold).toEqual([500, 500, 500, 1_000, 2_000]);
    expect(map).toMatchObject({ tasks: 5, plannedTasks: 2 });
    expect(reduce).toMatchObject({ tasks: 1 });
    expect(reduce).not.toHaveProperty('plannedTasks');
  });

  it('is nothing where a stage says nothing, and where there are no attempts', () => {
    const plan = planOf();
    const none = attemptsOf().filter(({ attemptId }) => !attemptId.startsWith('reduce'));
    expect(learnProfile({ jobId: idOf(1), plan, attempts: none }, undefined)).toBeUndefined();
    expect(learnProfile({ jobId: idOf(1), plan, attempts: [] }, undefined)).toBeUndefined();
  });

  it.each([
    [[], 1],
    [[[0, 10]], 1],
    [
      [
        [0, 10],
        [10, 20],
      ],
      1,
    ],
    [
      [
        [0, 10],
        [9, 20],
      ],
      2,
    ],
    [
      [
        [0, 100],
        [10, 20],
        [30, 40],
        [35, 90],
        [36, 37],
      ],
      4,
    ],
  ] as const)('has had the slots of the most attempts at once: %j had %s', (spans, slots) => {
    const attempts = spans.map(([from, to], task) => ran(['map', task], [0, from, to]));
    expect(mostAtOnce(attempts)).toBe(slots);
  });
});

describe('several runs', () => {
  it('are merged, newest counts and ids last, with how much work each was', () => {
    const second = known(2, known(1), {}, 3);
    expect(second).toMatchObject({ runs: 2, jobs: [idOf(1), idOf(2)] });
    expect(second.profile.stages[0]?.runs).toEqual([
      { slots: 2, times: { cold: [1_000, 2_000, 3_000, 6_000], first: [], later: [] } },
    ]);
    // The work of runs of 3.5 and 10.5 s beside the 7 s of the profile.
    expect(second.profile.workFactors).toEqual([0.5, 1.5]);
  });

  it('count once each, however often they are told', () => {
    const first = known(1);
    expect(learned(1, first)).toBeUndefined();
    expect(learned(1, known(2, first))).toBeUndefined();
  });

  it('keep the table of before until there is another', () => {
    const table: StoredTable = {
      ofRuns: 1,
      indicator: 'totalworkWithQ',
      basisSlots: 2,
      slots: [1],
      buckets: 1,
      remainingMs: new Float32Array(14),
    };
    expect(known(2, { ...known(1), table }).table).toEqual(table);
    expect(known(2, { ...known(1), table }, { size: 'large' }).table).toBeUndefined();
  });

  it.each([
    ['another worker', { size: 'large' }],
    ['another edge', { pattern: 'broadcast' }],
    ['more than twice the input', { sourceBytes: 201 }],
    ['less than half of the input', { sourceBytes: 49 }],
  ])('start anew with %s', (_, changes) => {
    expect(known(9, known(2, known(1)), changes)).toMatchObject({ runs: 1, jobs: [idOf(9)] });
  });

  it.each([
    ['twice the input', { tasks: 2, sourceBytes: 200 }],
    ['half of it', { tasks: 2, sourceBytes: 50 }],
    ['the input in more tasks', { tasks: 4, sourceBytes: 50 }],
  ])('go on with %s', (_, changes) => {
    const next = known(9, known(1), changes);
    expect(next.runs).toBe(2);
    expect(next.profile.stages[0]?.tasks).toBe(changes.tasks);
  });

  it('stay within the limits of what is kept, whatever comes', () => {
    let before: StoredForecast | undefined;
    for (let run = 1; run <= 60; run++) {
      // Each on other slots, with more samples than are kept.
      const tasks = 20 + run;
      const attempts = [
        ...Array.from({ length: tasks }, (_, task) =>
          ran(['map', task], [0, 1, 1_001 + task], { node: `n${task % 3}` }),
        ),
        ran(['reduce', 0], [9_000, 9_005, 9_500]),
      ];
      before = learnProfile(
        { jobId: idOf(run), plan: planOf({ tasks, sourceBytes: 10_000 / tasks }), attempts },
        before,
      );
    }
    expect(before).toMatchObject({ runs: 60 });
    expect(before?.jobs).toHaveLength(limits.profileJobs);
    expect(before?.jobs.at(-1)).toBe(idOf(60));
    expect(before?.profile.workFactors).toHaveLength(limits.profileRuns);
    for (const { runs, queueMs } of before?.profile.stages ?? []) {
      expect(runs.length).toBeLessThanOrEqual(limits.profileRuns);
      expect(runs.map(({ slots }) => slots)).toEqual(
        runs.map(({ slots }) => slots).toSorted((a, b) => a - b),
      );
      expect(queueMs.length).toBeLessThanOrEqual(limits.profileSamples);
      for (const { times } of runs)
        for (const sample of [times.cold, times.first, times.later]) {
          expect(sample.length).toBeLessThanOrEqual(limits.profileSamples);
          expect(sample).toEqual(sample.toSorted((a, b) => a - b));
        }
    }
  });

  it('are followed where the job becomes slower: old samples give way', () => {
    let before = known(1);
    for (let run = 2; run <= 200; run++) before = known(run, before, {}, run <= 100 ? 1 : 4);
    const [stage] = before.profile.stages;
    const sample = stage?.runs[0]?.times.cold ?? [];
    expect(sample.filter((ms) => ms >= 4_000).length / sample.length).toBeGreaterThan(0.7);
  });
});

describe('a profile', () => {
  it('tells of a plan by its stages and input, not by its code', () => {
    const own = { fingerprint: 'a', inputBytes: 0 };
    expect(tellsOf(own, own)).toBe(true);
    expect(tellsOf(own, { ...own, inputBytes: 1 })).toBe(false);
    expect(tellsOf(own, { ...own, fingerprint: 'b' })).toBe(false);
    expect(fingerprintOf(planOf({ tasks: 7 }))).toBe(fingerprintOf(planOf()));
    expect(fingerprintOf(planOf({ size: 'medium' }))).not.toBe(fingerprintOf(planOf()));
  });
});
