import { expect, it } from 'vitest';
import { readTrace } from '../../../src/traces/read-trace.ts';
import { summariseTrace } from '../../../src/traces/trace-summary.ts';
import type { TraceJob } from '../../../src/traces/trace-job.ts';
import { fixture, folderWith } from './trace-files.ts';

it('counts what a trace holds and lacks', async () => {
  expect(await summariseTrace(readTrace('rumen', fixture('rumen')))).toEqual({
    jobs: 2,
    stages: 4,
    edges: 2,
    tasks: 5,
    attempts: 6,
    tasksWithoutWork: 2,
    tasksWithoutBytes: 2,
    jobsWithoutArrival: 0,
    smallJobs: 1,
    smallest90: { tasks: 2 / 5, bytes: 0, workMs: 0 },
  });
});

it('says what the smallest nine tenths hold', async () => {
  async function* jobs(): AsyncGenerator<TraceJob> {
    for (let size = 1; size <= 10; size++) {
      await Promise.resolve();
      const tasks = new Array<{ workMs: number }>(size * size).fill({ workMs: 100 - size });
      yield { id: size.toString(), stages: [{ name: 'only', tasks, upstream: [] }] };
    }
  }
  const summary = await summariseTrace(jobs());
  expect(summary).toMatchObject({
    tasks: 385,
    smallJobs: 0.3,
    jobsWithoutArrival: 10,
    tasksWithoutBytes: 385,
  });
  expect(summary.smallest90.tasks).toBeCloseTo(285 / 385, 12);
  // Squares times 100 less their root, up to 9 and up to 10: 28,500 − 2,025 and 38,500 − 3,025.
  expect(summary.smallest90.workMs).toBeCloseTo(26_475 / 35_475, 12);
  expect(summary.smallest90.bytes).toBeUndefined();
});

it('is all zero for an empty trace', async () => {
  const folder = await folderWith({ 't.tsv': '' });
  expect(await summariseTrace(readTrace('swim', folder))).toEqual({
    jobs: 0,
    stages: 0,
    edges: 0,
    tasks: 0,
    attempts: 0,
    tasksWithoutWork: 0,
    tasksWithoutBytes: 0,
    jobsWithoutArrival: 0,
    smallJobs: 0,
    smallest90: {},
  });
});
