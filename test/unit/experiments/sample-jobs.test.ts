import { expect, it } from 'vitest';
import { sampleJobs } from '../../../src/experiments/policies-on-lambda.ts';
import { createRng } from '../../../src/lib/rng.ts';
import type { TraceJob } from '../../../src/traces/trace-job.ts';

const job = (id: string, tasks: number): TraceJob => ({
  id,
  stages: [{ name: 'map', upstream: [], tasks: Array.from({ length: tasks }, () => ({ workMs: 1_000 })) }],
});
const jobs = Array.from({ length: 50 }, (_, place) => job(`job-${place}`, 1 + (place % 10)));

it('takes whole jobs up to the one that reaches so many tasks, in their order, and says what is too large', () => {
  const sample = sampleJobs([...jobs, job('huge', 76)], 100, createRng('x'));
  expect(sample).toMatchObject({ tooLarge: 1, all: 51 });
  const tasks = sample.jobs.reduce((sum, { stages }) => sum + (stages[0]?.tasks.length ?? 0), 0);
  expect(sample.tasks).toBe(tasks);
  expect(tasks).toBeGreaterThanOrEqual(100);
  // The last was drawn with less than that.
  expect(tasks).toBeLessThan(110);
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

it('is of jobs as large as those of the trace in the mean', () => {
  // Nine jobs in ten of 2 tasks and one of 62: 8 in the mean. A sample of 100 tasks has room for one large job or two.
  const mixed = Array.from({ length: 2_000 }, (_, place) => job(`job-${place}`, place % 10 === 0 ? 62 : 2));
  let [tasks, count] = [0, 0];
  for (let seed = 0; seed < 1_000; seed += 1) {
    const sample = sampleJobs(mixed, 100, createRng(`mean/${seed}`));
    tasks += sample.tasks;
    count += sample.jobs.length;
  }
  // 16,000 jobs or so of standard deviation 18: 0.14 of a task, three times that allowed.
  expect(Math.abs(tasks / count - 8)).toBeLessThan(0.45);
});
