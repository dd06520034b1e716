import { expect, it } from 'vitest';
import type { AttemptId } from '../../../../src/contracts/ids.ts';
import { jobSpecSchema } from '../../../../src/contracts/job-spec.ts';
import type { StageSummary } from '../../../../src/contracts/records.ts';
import { epochMs } from '../../../../src/contracts/units.ts';
import { lastWorkerTime } from '../../../../src/core/model/last-worker-time.ts';

const spec = jobSpecSchema.parse({
  name: 'words',
  stages: [
    { name: 'map', operator: 'tokenize', inputs: [{ s3: ['s3://data/in/'] }] },
    {
      ...{ name: 'sum', operator: 'merge-lines', inputs: [{ stage: 'map', pattern: 'all-to-all' }] },
      worker: { kind: 'fargate', size: 'medium' },
    },
  ],
});

const stage = (name: string, workerMs: number): StageSummary => ({
  ...{ name, operator: 'code', tasks: 1, done: 1, running: 0, failed: 0, progress: 1, workerMs },
  ...{ bytesIn: 0, bytesOut: 0, recordsIn: 0, recordsOut: 0 },
});

const attempt = (attemptId: string, claimed: number, times: { ended?: number; reported?: number }) => ({
  attemptId: attemptId as AttemptId,
  launchedAt: epochMs(1_000),
  claimedAt: epochMs(claimed),
  ...(times.ended === undefined ? {} : { endedAt: epochMs(times.ended) }),
  ...(times.reported === undefined ? {} : { reportedAt: epochMs(times.reported) }),
});

const job = { spec, stages: [stage('map', 9_000), stage('sum', 30_000)], workerMs: 39_000 };

it('adds to each stage what its attempts have told beyond its record, at the price of its worker', () => {
  const last = lastWorkerTime(job, 0.5, [
    attempt('map/0/0', 1_000, { ended: 5_000, reported: 5_000 }),
    attempt('sum/0/0', 1_000, { ended: 31_000, reported: 31_000 }),
    // Works on still: an hour until its last report.
    attempt('sum/0/1', 1_000, { reported: 3_601_000 }),
  ]);
  expect(last.stages.map(({ name, workerMs }) => [name, workerMs])).toEqual([
    ['map', 9_000],
    ['sum', 3_630_000],
  ]);
  expect(last.workerMs).toBe(3_639_000);
  // An hour of 1 vCPU, 2 GB and a public address.
  expect(last.compute).toBeCloseTo(0.5 + 0.03238 + 2 * 0.00356 + 0.005, 9);
});

it('believes no worker whose clock is behind when somebody else has ended its attempt', () => {
  const behind = attempt('map/0/0', -59_000, { ended: 21_000, reported: -58_000 });
  expect(lastWorkerTime(job, 0, [behind]).workerMs).toBe(50_000);
});

it('keeps what is known where attempts tell less, or nothing', () => {
  const unclaimed = { attemptId: 'map/0/0' as AttemptId, launchedAt: epochMs(1_000) };
  expect(lastWorkerTime(job, 0.5, [unclaimed])).toEqual({
    stages: job.stages,
    workerMs: 39_000,
    compute: 0.5,
  });
});
