import { expect, it } from 'vitest';
import { shareBeyondLambda } from '../../../src/experiments/trace-scenario.ts';
import type { TraceJob } from '../../../src/traces/trace-job.ts';

const job = (...worksMs: readonly number[]): TraceJob => ({
  id: worksMs.join('-'),
  stages: [{ name: 'map', upstream: [], tasks: worksMs.map((workMs) => ({ workMs })) }],
});

// Of 40 minutes of work 20 are in the one task for which an invocation has no time: it ends after 15, 20 s of which are spare.
it.each([
  ['half', [job(880_000, 320_000), job(1_200_000)], 0.5],
  ['none', [job(880_000, 1)], 0],
  ['all', [job(880_001)], 1],
  ['nothing of nothing', [], 0],
] as const)('tells the share of work in tasks of more than 880 s: %s', (_, jobs, share) => {
  expect(shareBeyondLambda(jobs, 'hawk')).toBe(share);
});
