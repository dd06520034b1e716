import { describe, expect, it } from 'vitest';
import { fixture, jobsOf } from './trace-files.ts';

describe('swim', () => {
  it('derives maps and reduces from bytes, none of which is lost', async () => {
    expect(await jobsOf('swim', fixture('swim.tsv'))).toEqual([
      {
        id: 'tiny',
        submittedAtMs: 10_000,
        stages: [{ name: 'map', tasks: [{ inputBytes: 0, outputBytes: 0 }], upstream: [] }],
      },
      {
        id: 'shuffling',
        submittedAtMs: 25_000,
        stages: [
          {
            name: 'map',
            tasks: [
              { inputBytes: 134_217_728, outputBytes: 200_000_001 },
              { inputBytes: 134_217_728, outputBytes: 200_000_000 },
              { inputBytes: 31_564_544, outputBytes: 200_000_000 },
            ],
            upstream: [],
          },
          {
            name: 'reduce',
            tasks: [
              { inputBytes: 200_000_001, outputBytes: 30 },
              { inputBytes: 200_000_000, outputBytes: 30 },
              { inputBytes: 200_000_000, outputBytes: 30 },
            ],
            upstream: [0],
          },
        ],
      },
      {
        id: 'map-only',
        submittedAtMs: 26_000,
        stages: [{ name: 'map', tasks: [{ inputBytes: 134_217_728, outputBytes: 7 }], upstream: [] }],
      },
    ]);
  });

  it('takes other block sizes', async () => {
    const jobs = await jobsOf('swim', fixture('swim.tsv'), {
      swim: { mapBytes: 64 * 1024 ** 2, reduceBytes: 1024 ** 3 },
    });
    expect(jobs.map((job) => job.stages.map((stage) => stage.tasks.length))).toEqual([[1], [5, 1], [2]]);
  });
});

it('reads the racks of a shuffle, and what each receives', async () => {
  expect(await jobsOf('coflow', fixture('coflow.txt'))).toEqual([
    {
      id: '7',
      submittedAtMs: 1500,
      stages: [
        {
          name: 'map',
          tasks: [
            { zone: 'R0', outputBytes: 3_145_728 },
            { zone: 'R3', outputBytes: 3_145_728 },
          ],
          upstream: [],
        },
        { name: 'reduce', tasks: [{ zone: 'R3', inputBytes: 6_291_456 }], upstream: [0] },
      ],
    },
    {
      id: '8',
      submittedAtMs: 2250,
      stages: [
        { name: 'map', tasks: [{ zone: 'R2', outputBytes: 1_572_864 }], upstream: [] },
        {
          name: 'reduce',
          tasks: [
            { zone: 'R0', inputBytes: 1_572_864 },
            { zone: 'R1', inputBytes: 0 },
          ],
          upstream: [0],
        },
      ],
    },
  ]);
});

describe('tpch', () => {
  it('puts stages behind their parents, with the tasks of the run asked for', async () => {
    expect(await jobsOf('tpch', fixture('tpch_tasks.jsonl'), { tpch: { executors: 2 } })).toEqual([
      {
        id: 'q3-2g',
        stages: [
          { name: 'stage-1', tasks: [{ workMs: 30, slotPast: 'first' }], upstream: [] },
          { name: 'stage-2', tasks: [{ workMs: 5, slotPast: 'first' }], upstream: [] },
          {
            name: 'stage-0',
            tasks: [
              { workMs: 40, slotPast: 'first' },
              { workMs: 50, slotPast: 'first' },
            ],
            upstream: [0, 1],
          },
        ],
      },
    ]);
  });

  it('takes the largest run within the count where the query was too small for it', async () => {
    const [job] = await jobsOf('tpch', fixture('tpch_tasks.jsonl'));
    expect(job?.stages.map((stage) => stage.tasks)).toEqual([
      [{ workMs: 31, slotPast: 'first' }],
      [{ workMs: 6, slotPast: 'first' }],
      [
        { workMs: 10, slotPast: 'cold' },
        { workMs: 20, slotPast: 'later' },
      ],
    ]);
  });

  it('refuses a count that was never run', async () => {
    await expect(jobsOf('tpch', fixture('tpch_tasks.jsonl'), { tpch: { executors: 7 } })).rejects.toThrow(
      'no TPC-H run with 7 executors; expected 2, 5, 10, 20, 40, 50, 60, 80, 100',
    );
  });
});

it('reads the DAGs of Alibaba 2018, with half a second for "under one"', async () => {
  expect(await jobsOf('alibaba', fixture('alibaba2018.jsonl'))).toEqual([
    {
      id: 'j_1',
      stages: [
        { name: 'stage-2', tasks: [{ workMs: 12_000 }, { workMs: 12_000 }], upstream: [] },
        { name: 'stage-0', tasks: [{ workMs: 7000 }, { workMs: 7000 }, { workMs: 7000 }], upstream: [0] },
        { name: 'stage-1', tasks: [{ workMs: 500 }], upstream: [1] },
      ],
    },
    { id: 'job-1', stages: [{ name: 'stage-0', tasks: [{ workMs: 1000 }], upstream: [] }] },
  ]);
});

it('reads the table of Alibaba 2017, with no work for stages that did not end well', async () => {
  expect(await jobsOf('alibaba2017', fixture('batch_task.csv'))).toEqual([
    {
      id: '3',
      submittedAtMs: 60_000,
      stages: [
        { name: 'task-4', tasks: [{ workMs: 15_000 }, { workMs: 15_000 }], upstream: [] },
        { name: 'task-5', tasks: [{ workMs: 0 }], upstream: [] },
        { name: 'task-6', tasks: [{}], upstream: [] },
      ],
    },
    {
      id: '9',
      submittedAtMs: 65_000,
      stages: [
        { name: 'task-1', tasks: [{}], upstream: [] },
        { name: 'task-2', tasks: [{}, {}, {}, {}], upstream: [] },
      ],
    },
  ]);
});

it('reads arrivals and durations of Hawk traces', async () => {
  expect(await jobsOf('hawk', fixture('hawk.tr'))).toEqual([
    {
      id: 'job-1',
      submittedAtMs: 100_500,
      stages: [{ name: 'tasks', tasks: [{ workMs: 2500 }, { workMs: 3500 }], upstream: [] }],
    },
    {
      id: 'job-2',
      submittedAtMs: 99_000,
      stages: [{ name: 'tasks', tasks: [{ workMs: 250 }], upstream: [] }],
    },
  ]);
});

describe('rumen', () => {
  it('keeps every attempt, and counts the work of a reduce from the last map', async () => {
    const [job] = await jobsOf('rumen', fixture('rumen'));
    expect(job).toEqual({
      id: '5',
      submittedAtMs: 0,
      stages: [
        {
          name: 'map',
          upstream: [],
          tasks: [
            {
              workMs: 1000,
              inputBytes: 500,
              outputBytes: 50,
              inputPlaces: [
                { zone: 'R1', node: 'a' },
                { zone: 'R2', node: 'b' },
              ],
              attempts: [{ outcome: 'succeeded', startedAtMs: 100, durationMs: 1000, zone: 'R1', node: 'a' }],
            },
            {
              workMs: 1000,
              inputBytes: 400,
              outputBytes: 40,
              attempts: [
                { outcome: 'killed', startedAtMs: 100, durationMs: 4000, zone: 'R3', node: 'c' },
                { outcome: 'succeeded', startedAtMs: 2000, durationMs: 1000, zone: 'R2', node: 'b' },
              ],
            },
          ],
        },
        {
          name: 'reduce',
          upstream: [0],
          tasks: [
            {
              workMs: 2200,
              inputBytes: 90,
              outputBytes: 9,
              attempts: [
                {
                  outcome: 'succeeded',
                  startedAtMs: 1200,
                  durationMs: 4000,
                  shuffleMs: 1900,
                  sortMs: 50,
                  zone: 'R2',
                  node: 'b',
                },
              ],
            },
          ],
        },
      ],
    });
  });

  it('leaves out times that are missing, or that two clocks make negative', async () => {
    const [, failed] = await jobsOf('rumen', fixture('rumen/set_attempts.csv'));
    expect(failed?.stages.flatMap((stage) => stage.tasks)).toEqual([
      {
        inputPlaces: [{ zone: 'R1', node: 'a' }],
        attempts: [{ outcome: 'failed', startedAtMs: 600, zone: 'R1', node: 'a' }],
      },
      { attempts: [{ outcome: 'killed', zone: 'R1', node: 'a' }] },
    ]);
  });
});

it('reads Spark logs by stage, parents first, without stages that never ran', async () => {
  const attempt = (startedAtMs: number, durationMs: number, node: string) => [
    { outcome: 'succeeded', startedAtMs, durationMs, node },
  ];
  expect(await jobsOf('spark', fixture('spark'))).toEqual([
    {
      id: 'run_1',
      stages: [
        {
          name: 'stage-5',
          upstream: [],
          tasks: [
            { workMs: 100, inputBytes: 1000, outputBytes: 10, attempts: attempt(0, 110, 'executor-0') },
            { workMs: 120, outputBytes: 30, attempts: attempt(5, 125, 'executor-0') },
          ],
        },
        {
          name: 'stage-6',
          upstream: [],
          tasks: [{ workMs: 200, outputBytes: 20, attempts: attempt(0, 210, 'executor-1') }],
        },
        {
          name: 'stage-4',
          upstream: [0, 1],
          tasks: [{ workMs: 240, inputBytes: 60, attempts: attempt(250, 250, 'executor-1') }],
        },
      ],
    },
  ]);
});
