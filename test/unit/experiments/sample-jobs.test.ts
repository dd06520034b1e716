import { expect, it } from 'vitest';
import { sampleJobs } from '../../../src/experiments/policies-on-lambda.ts';
import { createRng } from '../../../src/lib/rng.ts';
import type { TraceJob } from '../../../src/traces/trace-job.ts';

const job = (id: string, tasks: number): TraceJob => ({
  id,
  stages: [{ name: 'map', upstream: [], tasks: Array.from({ length: tasks }, () => ({ workMs: 1_000 })) }],
});
const jobs = Array.from({ length: 50 }, (_, place) => job(`job-${place}`, 1 + (place % 10)));

it('takes whole jobs up to so many tasks, in their order, and says what is too large', () => {
  const sample = sampleJobs([...jobs, job('huge', 76)], 100, createRng('x'));
  expect(sample).toMatchObject({ tooLarge: 1, all: 51 });
  const tasks = sample.jobs.reduce((sum, { stages }) => sum + (stages[0]?.tasks.length ?? 0), 0);
  expect(sample.tasks).toBe(tasks);
  expect(tasks).toBeGreaterThan(90);
  expect(tasks).toBeLessThanOrEqual(100);
  const places = sample.jobs.map(({ id }) => Number(id.slice(4)));
  expect(places).toEqual([...places].sort((a, b) => a - b));
});

it('is the same for the same seed, and another for another', () => {
  const names = (seed: string) => sampleJobs(jobs, 100, createRng(seed)).jobs.map(({ id }) => id);
  expect(names('x')).toEqual(names('x'));
  expect(names('x')).not.toEqual(names('y'));
});

it('takes all of a small trace', () => {
  expect(sampleJobs([job('a', 3), job('b', 4)], 100, createRng('x'))).toMatchObject({
    tasks: 7,
    tooLarge: 0,
  });
});
