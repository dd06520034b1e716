import type { JobId } from '../../../src/contracts/ids.ts';
import { jobSpecSchema } from '../../../src/contracts/job-spec.ts';
import { noAttempts, type JobRecord, type StageSummary } from '../../../src/contracts/records.ts';
import { epochMs } from '../../../src/contracts/units.ts';

/** A stage of 4 tasks of which none has begun, but for what a test says. */
export const stageSummary = (changes: Partial<StageSummary> = {}): StageSummary => ({
  name: 'tokenize',
  operator: 'tokenize',
  tasks: 4,
  done: 0,
  running: 0,
  failed: 0,
  bytesIn: 0,
  bytesOut: 0,
  recordsIn: 0,
  recordsOut: 0,
  workerMs: 0,
  progress: 0,
  ...changes,
});

/** A job submitted at 1,000,000 ms, but for what a test says. */
export const jobRecord = (changes: Partial<JobRecord> = {}): JobRecord => ({
  jobId: 'wordcount-0123456789ab' as JobId,
  name: 'wordcount',
  spec: jobSpecSchema.parse({
    name: 'wordcount',
    stages: [{ name: 'tokenize', operator: 'tokenize', inputs: [{ s3: ['s3://data/in/'] }] }],
  }),
  specDigest: '0'.repeat(64),
  state: 'submitted',
  createdAt: epochMs(1_000_000),
  output: 's3://data/output/wordcount-0123456789ab/',
  stages: [],
  attempts: noAttempts,
  counters: {},
  workerMs: 0,
  dollars: 0,
  parts: [],
  ...changes,
});
