import { describe, expect, it } from 'vitest';
import { ascending, quantile } from '../../../src/lib/quantiles.ts';
import { createRng } from '../../../src/lib/rng.ts';
import { drawTimes, jockeyJob } from '../../../src/traces/generators/jockey-jobs.ts';

// Jockey, Table 2: stages, stages behind barriers, tasks, median and 90th percentile of task times in seconds.
const table = [
  ['A', 23, 6, 681, 16.3, 61.5],
  ['B', 14, 0, 1605, 4, 54.1],
  ['C', 16, 3, 5751, 2.6, 5.7],
  ['D', 24, 3, 3897, 6.1, 25.1],
  ['E', 11, 1, 2033, 8, 130],
  ['F', 26, 1, 6139, 3.6, 17.4],
  ['G', 110, 15, 8496, 3, 7.7],
] as const;

describe.each(table)('job %s', (name, stages, barriers, tasks, median, p90) => {
  const jobs = ['a', 'b', 'c'].map((seed) => jockeyJob(name, createRng(seed)));

  it('has the stages, barriers and tasks of the paper', () => {
    for (const job of jobs) {
      expect(job).toHaveLength(stages);
      expect(job.filter(({ inputs }) => inputs.some(({ isBarrier }) => isBarrier))).toHaveLength(barriers);
      expect(job.reduce((sum, stage) => sum + stage.tasks, 0)).toBe(tasks);
      expect(job.every((stage) => stage.tasks >= 1)).toBe(true);
    }
  });

  it('reads stages before its own alone', () => {
    for (const job of jobs)
      for (const [index, { inputs }] of job.entries())
        for (const { stage } of inputs) expect(stage).toBeLessThan(index);
  });

  it('has about the task times of the paper', () => {
    const rng = createRng('times');
    const all = ascending(jobs.flatMap((job) => job.flatMap((stage) => drawTimes(stage, rng))));
    expect(Math.abs((quantile(all, 0.5) ?? 0) / 1_000 / median - 1)).toBeLessThan(0.2);
    expect(Math.abs((quantile(all, 0.9) ?? 0) / 1_000 / p90 - 1)).toBeLessThan(0.3);
  });
});
