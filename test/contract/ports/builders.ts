import { type AttemptId, attemptIdOf, type JobId, taskOf } from '../../../src/contracts/ids.ts';
import { jobSpecSchema } from '../../../src/contracts/job-spec.ts';
import type { Progress } from '../../../src/contracts/progress.ts';
import { type JobRecord, noAttempts, type TaskResult } from '../../../src/contracts/records.ts';
import { durationMs, type EpochMs, epochMs } from '../../../src/contracts/units.ts';
import type { LaunchRequest } from '../../../src/ports/launcher.ts';

/** A fixed start of time, far from zero. */
export const T0 = epochMs(1_760_000_000_000);
/** `T0` and `seconds` more. */
export const at = (seconds: number): EpochMs => epochMs(T0 + seconds * 1_000);
/** A length of time of `count` seconds. */
export const seconds = (count: number) => durationMs(count * 1_000);

let serial = 0;
/** A job id that no other call gives. */
export const freshJobId = (): JobId => `job-${(++serial).toString(16).padStart(12, '0')}` as JobId;

/** A submitted job with a small valid spec. */
export const jobRecord = (jobId: JobId, fields: Partial<JobRecord> = {}): JobRecord => ({
  jobId,
  name: 'count',
  spec: jobSpecSchema.parse({
    name: 'count',
    stages: [{ name: 'map', operator: 'tokenize', inputs: [{ s3: ['s3://books/in/'] }] }],
    deadline: '10m',
  }),
  specDigest: 'ab'.repeat(32),
  state: 'submitted',
  createdAt: T0,
  output: 's3://books/out/',
  stages: [],
  attempts: noAttempts,
  counters: {},
  workerMs: 0,
  dollars: 0,
  parts: [],
  ...fields,
});

/** The attempt `number` of task `index` of the stage `map`. */
export const attempt = (index: number, number = 0): AttemptId => attemptIdOf('map', index, number);

/** A launch of an attempt on Fargate. */
export const fargateLaunch = (jobId: JobId, index: number): LaunchRequest => ({
  kind: 'fargate',
  size: 'large',
  payload: {
    jobId,
    attemptId: attempt(index),
    shards: 4,
    stageKey: 'k',
    inputs: [],
    heartbeatMs: 1_000,
  },
});

/** Progress of an attempt that has read `bytesRead` of 1,000 bytes. */
export const progress = (bytesRead: number): Progress => ({
  bytesRead,
  bytesTotal: 1_000,
  recordsIn: 10,
  recordsOut: 20,
  phase: 'compute',
  phaseMs: { init: 1, read: 2, compute: 3, write: 0 },
  peakMemoryBytes: 50_000_000,
});

/** What an attempt commits. */
export const resultOf = (
  attemptId: AttemptId,
  committedAt: EpochMs,
  fields: Partial<TaskResult> = {},
): TaskResult => ({
  taskId: taskOf(attemptId),
  attemptId,
  committedAt,
  bytesIn: 1_000,
  bytesOut: 300,
  recordsIn: 10,
  recordsOut: 20,
  counters: {},
  ...fields,
});

/** All values of a stream. */
export async function collect<T>(stream: AsyncIterable<T>): Promise<T[]> {
  const values: T[] = [];
  for await (const value of stream) values.push(value);
  return values;
}

/** How often each value occurs. */
export function tally(values: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const value of values) counts[value] = (counts[value] ?? 0) + 1;
  return counts;
}
