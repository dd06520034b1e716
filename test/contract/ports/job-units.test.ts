import { beforeAll, describe, expect, it } from 'vitest';
import { DynamoJobStore } from '../../../src/adapters/aws/dynamo-job-store.ts';
import { DynamoTable } from '../../../src/adapters/aws/dynamo-table.ts';
import { jobSpecSchema } from '../../../src/contracts/job-spec.ts';
import { limits } from '../../../src/contracts/limits.ts';
import type { JobRecord, StageSummary } from '../../../src/contracts/records.ts';
import { noCosts, noRequests, type RequestTally } from '../../../src/contracts/requests.ts';
import { InProcessDynamo } from '../../support/in-process-dynamo.ts';
import { at, freshJobId, jobRecord } from './builders.ts';

let counted: RequestTally[] = [];
const dynamo = new InProcessDynamo((tally) => {
  counted.push(tally);
});
const newStore = (): DynamoJobStore =>
  new DynamoJobStore(new DynamoTable(dynamo.documents, dynamo.tableName));

/** Write units of what is done. */
async function unitsOf(work: () => Promise<unknown>): Promise<number> {
  counted = [];
  await work();
  return counted.reduce((sum, { writeUnits = 0 }) => sum + writeUnits, 0);
}

const stage = (place: number): StageSummary => ({
  name: `stage-of-some-name-${String(place)}`,
  operator: 'range-partition',
  tasks: 10_000,
  done: 9_000 + place,
  running: 900 + place,
  failed: 17 * place,
  bytesIn: 123_456_789_012 + place * 7_919,
  bytesOut: 98_765_432_109 + place * 104_729,
  recordsIn: 1_234_567_890 + place * 1_299_709,
  recordsOut: 987_654_321 + place * 15_485_863,
  startedAt: at(1_000 * place),
  endedAt: at(1_700 * place + 13),
  workerMs: 540_000_000 + place * 32_452_843,
  progress: 0.123456789 + place / 100,
});

const summary = (stages: number, done: number) => ({
  stages: Array.from({ length: stages }, (_, place) => stage(place)),
  attempts: {
    launched: done,
    backups: 3,
    clones: 0,
    restarts: 1,
    cancelled: 4,
    lost: 1,
    declined: 0,
    recomputed: 2,
  },
  counters: { skippedRecords: done },
  workerMs: done * 60_000,
  dollars: done / 1_000,
  requests: { ...noRequests, lambda: done },
  costs: { ...noCosts, compute: done / 1_000 },
  coordination: { writeUnits: done, readUnits: 17.5, calls: 3 * done, put: 4, lambda: done, states: 6 },
});

/** Keys that nothing can pack. */
const noise = (place: number): string =>
  (Math.imul(place + 1, 0x9e3779b1) >>> 0).toString(36) +
  (Math.imul(place + 7, 0x85ebca6b) >>> 0).toString(36);

const longSpec = jobSpecSchema.parse({
  name: 'long',
  stages: [
    {
      name: 'map',
      operator: 'tokenize',
      inputs: [{ s3: Array.from({ length: 900 }, (_, place) => `s3://bucket/${noise(place).repeat(12)}/`) }],
    },
  ],
});

beforeAll(() => dynamo.createTable());

describe('the record of a job', () => {
  it.each([
    ['of one stage', 1, 2],
    ['of twenty stages', 20, 4],
  ])('%s costs few units to bring up to date, whatever its spec holds', async (_, stages, most) => {
    const store = newStore();
    const { jobId } = jobRecord(freshJobId());
    await store.create(jobRecord(jobId, { state: 'running', spec: longSpec }));
    for (let done = 1; done <= 3; done++) {
      const units = await unitsOf(() => store.update(jobId, ['running'], summary(stages, done)));
      // Twice where an index holds all of it.
      expect(units).toBeLessThanOrEqual(most * 2);
      expect(units).toBeGreaterThan(0);
    }
    expect(await newStore().load(jobId)).toMatchObject({ spec: longSpec, ...summary(stages, 3) });
  });

  it('costs no more to end where it has thousands of counters of any name', async () => {
    const store = newStore();
    const { jobId } = jobRecord(freshJobId());
    await store.create(jobRecord(jobId, { state: 'running' }));
    const counters = Object.fromEntries(
      Array.from({ length: limits.countersPerJob }, (_, place) => [
        noise(place).repeat(7).slice(0, 100),
        place,
      ]),
    );
    const once = await unitsOf(() => store.update(jobId, ['running'], { counters }));
    expect(once).toBeLessThan(80);
    expect(await unitsOf(() => store.update(jobId, ['running'], summary(1, 1)))).toBeLessThanOrEqual(4);
    await store.update(jobId, ['running'], { counters });
    expect(await unitsOf(() => store.end(jobId, { state: 'failed' }))).toBeLessThanOrEqual(4);
    expect((await newStore().load(jobId))?.counters).toEqual(counters);
  });

  it('is read whole again: long fields by one more look, and none where they are remembered', async () => {
    const store = newStore();
    const { jobId } = jobRecord(freshJobId());
    const job: JobRecord = jobRecord(jobId, {
      spec: longSpec,
      error: { name: 'X', message: noise(1).repeat(200) },
    });
    expect(await store.create(job)).toEqual({ kind: 'created' });
    const other = newStore();
    counted = [];
    expect(await other.load(jobId)).toEqual(job);
    expect(counted.length).toBe(2);
    counted = [];
    expect(await other.load(jobId)).toEqual(job);
    expect(counted.length).toBe(1);
    expect((await other.list({ limit: 10 })).jobs.find((each) => each.jobId === jobId)).toEqual(job);
    const rival = await newStore().create({ ...job, specDigest: 'another' });
    expect(rival).toEqual({ kind: 'exists', job });
  });
});
