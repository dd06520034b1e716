import { expect, it } from 'vitest';
import { attemptIdOf, type JobId } from '../../src/contracts/ids.ts';
import { copyCountsOf, metricsOf, reductionsOf, slotTimeOf } from '../../src/sim/metrics.ts';
import type { ScenarioInput } from '../../src/sim/scenario.ts';
import { runOne } from './scenarios.ts';
import type { AttemptOutcome, JobOutcome, SimulationResult } from '../../src/sim/outcome.ts';

function attempt(
  task: number,
  number: number,
  [from, to]: readonly [number, number],
  more: Partial<AttemptOutcome> = {},
): AttemptOutcome {
  return {
    attemptId: attemptIdOf('map', task, number),
    stage: 0,
    task,
    number,
    reason: number === 0 ? 'first' : 'backup',
    node: 'node-0',
    zone: 0,
    takenAtMs: from,
    claimedAtMs: from,
    leftAtMs: to,
    ending: 'won',
    ...more,
  };
}

function job(index: number, more: Partial<JobOutcome> = {}): JobOutcome {
  return {
    jobId: `job-${index}` as JobId,
    index,
    name: 'job',
    policy: 'late',
    state: 'succeeded',
    error: undefined,
    tasks: 2,
    arrivedAtMs: 0,
    startedAtMs: 0,
    completedAtMs: 10_000,
    deadlineMs: undefined,
    asked: [],
    stages: [],
    attempts: [],
    lostOutputs: [],
    copiedOutputs: [],
    launches: { made: 0, unclaimed: 0 },
    invocations: 0,
    dollars: 0,
    ...more,
  };
}

const result = (jobs: JobOutcome[]): SimulationResult => ({
  scenario: 'test',
  seed: '1',
  totalSlots: 4,
  jobs,
  events: 0,
  seenLosses: new Map(),
  coldStarts: 0,
  endedAtMs: 0,
  trace: [],
});

const withCopies = job(0, {
  stages: [
    {
      name: 'map',
      tasks: 2,
      upstream: [],
      clones: undefined,
      openedAtMs: 0,
      doneAtMs: 9_000,
      taskMs: [3_000, 9_000],
    },
  ],
  attempts: [
    attempt(0, 0, [0, 3_000]),
    attempt(1, 0, [0, 9_000], { ending: 'cancelled' }),
    attempt(1, 1, [2_000, 9_000], { ending: 'cancelled' }),
    attempt(1, 2, [5_000, 9_000]),
  ],
});

it('counts slot time, waste and copies', () => {
  expect(slotTimeOf(withCopies)).toEqual({ usedMs: 23_000, wastedMs: 16_000 });
  // The first of two tasks was done at 3 s: the copy of 2 s came before half of the work.
  expect(copyCountsOf(withCopies)).toEqual({ started: 2, won: 1, early: 1 });
  expect(metricsOf(result([withCopies]))).toMatchObject({
    slotSeconds: 23,
    wastedSlotSeconds: 16,
    copies: { started: 2, won: 1 },
    slowestToMedian: { p50: 1.5, p95: 1.5 },
  });
});

it('measures jobs from arrival to last commit, by number of tasks too', () => {
  const jobs = [1, 2, 3, 4].map((n) =>
    job(n, { arrivedAtMs: 1_000, completedAtMs: 1_000 + n * 10_000, tasks: n < 3 ? 10 : 11 * n }),
  );
  expect(metricsOf(result([...jobs, job(5, { state: 'failed', tasks: 600 })]))).toMatchObject({
    policy: 'late',
    seed: '1',
    jobs: 5,
    failed: 1,
    completionS: { mean: 25, p50: 25, p90: 37, p95: 38.5, p99: 39.7 },
    bins: [
      { tasks: '1-10', jobs: 2, meanS: 15, p50S: 15, p95S: 19.5 },
      { tasks: '11-50', jobs: 2, meanS: 35, p50S: 35, p95S: 39.5 },
    ],
  });
});

it('counts deadlines of jobs that have one; a failed job misses its own', () => {
  const jobs = [
    job(1),
    job(2, { deadlineMs: 10_000 }),
    job(3, { deadlineMs: 9_999 }),
    job(4, { deadlineMs: 99_999, state: 'failed' }),
  ];
  expect(metricsOf(result(jobs)).deadlines).toEqual({ met: 1, missed: 2 });
});

it('compares the jobs of two runs one by one, without those that failed', () => {
  const base = result([
    job(0, { completedAtMs: 10_000 }),
    job(1, { completedAtMs: 10_000 }),
    job(2, { completedAtMs: 1 }),
  ]);
  const other = result([
    job(0, { completedAtMs: 5_000 }),
    job(1, { completedAtMs: 12_000 }),
    job(2, { state: 'failed' }),
  ]);
  // Halved, and a fifth longer.
  expect(reductionsOf(base, other).completion).toEqual({
    mean: 0.15,
    p25: -0.025,
    p50: 0.15,
    p75: 0.325,
    p90: 0.43,
  });
});

it.each([
  ['one that comes only after its end', [{ atMs: 480_000, deadlineMs: 240_000 }], 600_000],
  ['one that comes before it', [{ atMs: 60_000, deadlineMs: 240_000 }], 240_000],
  [
    'the last by time, and not by place',
    [
      { atMs: 90_000, deadlineMs: 900_000 },
      { atMs: 30_000, deadlineMs: 1_200_000 },
    ],
    900_000,
  ],
] as const)('a job is judged by the deadline that it had at its end: %s', async (_, changes, expected) => {
  const scenario: ScenarioInput = {
    cluster: { nodes: [{ count: 2 }] },
    jobs: [
      {
        ...{ policy: 'none', deadlineMs: 600_000, deadlineChanges: [...changes] },
        stages: [{ name: 'map', tasks: 2, workMs: 300_000 }],
      },
    ],
  };
  const { completedAtMs, arrivedAtMs, deadlineMs } = await runOne(scenario);
  expect(completedAtMs - arrivedAtMs).toBeGreaterThan(290_000);
  expect(completedAtMs - arrivedAtMs).toBeLessThan(400_000);
  expect(deadlineMs).toBe(expected);
});
