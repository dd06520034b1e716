import { NumberValue } from '@aws-sdk/lib-dynamodb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { attemptKey, replicaKey, resultKey } from '../../../src/adapters/aws/attempt-item.ts';
import { claimsKey } from '../../../src/adapters/aws/claims-item.ts';
import { DynamoAssignmentStatistics } from '../../../src/adapters/aws/dynamo-assignment-statistics.ts';
import { DynamoAttemptStore } from '../../../src/adapters/aws/dynamo-attempt-store.ts';
import { DynamoCapacityStore } from '../../../src/adapters/aws/dynamo-capacity-store.ts';
import { RuledCapacityLedger } from '../../../src/app/capacity-ledger.ts';
import { DynamoDecisionLog } from '../../../src/adapters/aws/dynamo-decision-log.ts';
import { DynamoJobStore } from '../../../src/adapters/aws/dynamo-job-store.ts';
import { DynamoLeaseStore } from '../../../src/adapters/aws/dynamo-lease-store.ts';
import { DynamoStragglerStatistics } from '../../../src/adapters/aws/dynamo-straggler-statistics.ts';
import type { DynamoTable } from '../../../src/adapters/aws/dynamo-table.ts';
import { jobKey } from '../../../src/adapters/aws/job-item.ts';
import { taskOf } from '../../../src/contracts/ids.ts';
import { hourOf } from '../../../src/contracts/units.ts';
import { attempt, at, collect, freshJobId, jobRecord, progress, resultOf, seconds, T0 } from './builders.ts';
import { engines, spoil, startTables, type TableServer } from './servers.ts';

describe.each(engines)('records that cannot be read, over %s', (engine) => {
  let server: TableServer;
  let table: DynamoTable;
  beforeAll(async () => {
    server = await startTables(engine);
    table = await server.freshTable();
  });
  afterAll(async () => {
    await server.close();
  });

  describe('of attempts and results', () => {
    it('are named, and leave the others to be read', async () => {
      const store = new DynamoAttemptStore(table);
      const space = { jobId: freshJobId(), shards: 2 };
      for (const index of [0, 1, 2, 3, 4]) await store.create(space, attempt(index), at(0));
      for (const index of [1, 2, 3])
        await store.claim(space, attempt(index), { node: 'n', zone: 'z' }, at(1));
      for (const index of [0, 1]) await store.commit(space, resultOf(attempt(index), T0));
      await store.commit(space, resultOf(attempt(1, 1), T0), 'replica');
      await spoil(table, attemptKey(space, attempt(1)), { progress: { ...progress(1), bytesRead: null } });
      await spoil(table, attemptKey(space, attempt(2)), { state: 'asleep' });
      await spoil(table, attemptKey(space, attempt(3)), { attemptId: 'map/9/9' });
      await spoil(table, resultKey(space, taskOf(attempt(0))), { counters: '{"lines":null}' });
      await spoil(table, replicaKey(space, resultOf(attempt(1, 1), T0)), {
        partitions: new Uint8Array([4, 1, 2]),
      });
      const stray = { pk: attemptKey(space, attempt(4)).pk, sk: 'X#stray' };
      await table.putNew({ ...stray, changedAt: T0 });

      const { attempts, results, replicas, unreadable = [] } = await store.all(space);
      expect(attempts.map(({ attemptId }) => attemptId).toSorted()).toEqual(['map/0/0', 'map/4/0']);
      expect(results.map(({ taskId }) => taskId)).toEqual(['map/1']);
      expect(replicas).toEqual([]);
      const found = unreadable.toSorted((a, b) =>
        a.key.replace(/^.*\//, a.kind) < b.key.replace(/^.*\//, b.kind) ? -1 : 1,
      );
      expect(
        found.map(({ kind, attemptId, taskId, mayWork }) => [kind, attemptId ?? taskId, mayWork]).toSorted(),
      ).toEqual(
        [
          ['attempt', 'map/1/0', true],
          ['attempt', 'map/2/0', false],
          ['attempt', 'map/3/0', true],
          ['replica', 'map/1/1', false],
          ['result', 'map/0', false],
          ['unknown', undefined, false],
        ].toSorted(),
      );
      for (const { key, why } of unreadable) {
        expect(key).toMatch(new RegExp(`^J#${space.jobId}#[01]/[ATRX]#`));
        expect(why.length).toBeGreaterThan(5);
        expect(why.length).toBeLessThanOrEqual(300);
      }
      expect(unreadable.find(({ attemptId }) => attemptId === 'map/1/0')?.why).toContain(
        'progress.bytesRead',
      );
    });

    it.each<[string, Readonly<Record<string, unknown>>, string | undefined]>([
      ['its progress', { progress: 7 }, 'upload-1'],
      ['when it began its upload', { upload: { since: 'x', uploadId: 'upload-1' } }, 'upload-1'],
      ['its upload', { upload: 'upload-1' }, undefined],
      ['which upload it began', { upload: { since: 1, uploadId: 7 } }, undefined],
    ])('tell the upload that an attempt has noted, where one can read it: not %s', async (_, set, told) => {
      const store = new DynamoAttemptStore(table);
      const space = { jobId: freshJobId(), shards: 1 };
      await store.create(space, attempt(0), at(0));
      await store.claim(space, attempt(0), { node: 'n', zone: 'z' }, at(1));
      await store.noteUpload(space, attempt(0), { since: at(2), uploadId: 'upload-1' }, at(2));
      await spoil(table, attemptKey(space, attempt(0)), set);
      const { unreadable = [] } = await store.all(space);
      expect(unreadable.map(({ attemptId, uploadId }) => [attemptId, uploadId])).toEqual([['map/0/0', told]]);
    });

    it('are not written: a result with a counter that is no number is refused', async () => {
      const store = new DynamoAttemptStore(table);
      const space = { jobId: freshJobId(), shards: 1 };
      for (const value of [NaN, Infinity, undefined]) {
        const counters = { lines: value as number };
        await expect(store.commit(space, { ...resultOf(attempt(0), T0), counters })).rejects.toThrow(
          /finite/,
        );
      }
      const awkward = Object.fromEntries([
        ['__proto__', 1],
        ['constructor', 2],
      ]);
      expect(await store.commit(space, { ...resultOf(attempt(0), T0), counters: awkward })).toBe('won');
      const [result] = (await store.all(space)).results;
      expect(Object.entries(result?.counters ?? {})).toEqual([
        ['__proto__', 1],
        ['constructor', 2],
      ]);
    });
  });

  describe('of jobs', () => {
    const garbage = {
      stages: 'no',
      counters: '{"lines":null}',
      attempts: new Uint8Array([1, 2, 3]),
      parts: 7,
      workerMs: 'x',
    };

    it('are given without what the job has come to, and can be ended', async () => {
      const jobs = new DynamoJobStore(table);
      const jobId = freshJobId();
      await jobs.create(jobRecord(jobId, { state: 'running', shards: 2, startedAt: at(1) }));
      await spoil(table, jobKey(jobId), garbage);
      const job = await jobs.load(jobId);
      expect(job).toMatchObject({
        state: 'running',
        stages: [],
        counters: {},
        parts: [],
        workerMs: 0,
        shards: 2,
      });
      expect(job?.unreadable?.toSorted()).toEqual(['attempts', 'counters', 'parts', 'stages', 'workerMs']);
      expect(await jobs.end(jobId, { state: 'failed', endedAt: at(2) })).toBe('updated');
      expect(await jobs.end(jobId, { state: 'cancelled' })).toBe('stale');
      expect(await jobs.load(jobId)).toMatchObject({ state: 'failed', endedAt: at(2) });
    });

    it('are named where they cannot be given, and can be ended all the same', async () => {
      const jobs = new DynamoJobStore(table);
      const jobId = freshJobId();
      await jobs.create(jobRecord(jobId));
      await spoil(table, jobKey(jobId), {
        ...garbage,
        spec: 'not packed',
        state: { no: 1 },
        shards: 'many',
        startedAt: 'then',
      });
      await expect(jobs.load(jobId)).rejects.toThrow(
        expect.objectContaining({
          name: 'UnreadableRecord',
          message: expect.stringContaining(`JOB#${jobId}/META`) as unknown,
        }) as Error,
      );
      expect(await jobs.salvage(jobId)).toEqual({
        jobId,
        state: 'running',
        output: 's3://books/out/',
        shards: 1_000,
        startedAt: 0,
      });
      expect(await jobs.end(jobId, { state: 'failed' })).toBe('updated');
      expect(await jobs.salvage(jobId)).toMatchObject({ state: 'failed' });
      expect(await jobs.salvage(freshJobId())).toBeUndefined();
    });

    it.each<[string, unknown]>([
      ['startedAt', new Uint8Array()],
      ['cancelRequestedAt', 'yesterday'],
      ['shards', 'many'],
      ['planNonce', 7],
      ['publishingAt', null],
      ['seenAt', []],
      ['missingSince', 'long'],
      ['clearedAt', {}],
    ])('leave the end of a job to be told where its %s is what cannot be read', async (name, value) => {
      const jobs = new DynamoJobStore(table);
      const jobId = freshJobId();
      await jobs.create(jobRecord(jobId, { state: 'running', shards: 2, startedAt: at(1) }));
      await spoil(table, jobKey(jobId), { [name]: value });
      expect(await jobs.end(jobId, { state: 'failed', endedAt: at(2) })).toBe('updated');
      const job = await jobs.load(jobId);
      expect(job).toMatchObject({ jobId, state: 'failed', endedAt: at(2), unreadable: [name] });
      expect(job).not.toHaveProperty(name);
    });

    it('are listed by name beside the others', async () => {
      const own = await server.freshTable();
      const jobs = new DynamoJobStore(own);
      const [good, bad] = [freshJobId(), freshJobId()];
      await jobs.create(jobRecord(good));
      await jobs.create(jobRecord(bad, { createdAt: at(1) }));
      await spoil(own, jobKey(bad), { spec: 'no' });
      const { jobs: listed, unreadable } = await jobs.list({ limit: 10 });
      expect(listed.map(({ jobId }) => jobId)).toEqual([good]);
      expect(unreadable).toEqual([
        { jobId: bad, message: expect.stringContaining(`JOB#${bad}/META`) as unknown },
      ]);
    });
  });

  describe('of the decision log', () => {
    it.each<[string, Readonly<Record<string, unknown>>]>([
      ['decisions that are no JSON', { decisions: '{' }],
      ['decisions that are no list', { decisions: '{}' }],
      ['a format of later', { format: 2 }],
      ['no epoch', { epoch: 'first' }],
      ['another version', { version: 7 }],
    ])('with %s are named', async (_, set) => {
      const log = new DynamoDecisionLog(table);
      const jobId = freshJobId();
      const entry = { version: 1, epoch: 1, at: at(0), decisions: [] };
      await log.append(jobId, entry);
      const key = { pk: `LOG#${jobId}`, sk: '0000000001' };
      await spoil(table, key, set);
      const error = expect.objectContaining({
        name: 'UnreadableRecord',
        message: expect.stringContaining(`LOG#${jobId}/0000000001`) as unknown,
      }) as Error;
      await expect(collect(log.read(jobId))).rejects.toThrow(error);
      await expect(log.append(jobId, entry)).rejects.toThrow(error);
    });
  });

  it.each<[string, unknown]>([
    ['text', 'Not A Job!'],
    ['a number', 7],
    ['nothing', null],
    ['a list', ['a-job']],
  ])('a token that stands for %s is told, and taken by one of those who ask', async (_, garbage) => {
    const told: string[] = [];
    const jobs = new DynamoJobStore(table, ({ key }) => told.push(key));
    const token = freshJobId();
    const key = { pk: `TOKEN#${token}`, sk: 'META' };
    await jobs.claimToken(token, { jobId: freshJobId(), now: at(0) });
    await spoil(table, key, { jobId: garbage });
    const rivals = [freshJobId(), freshJobId(), freshJobId()];
    const answers = await Promise.all(
      rivals.map((jobId) => jobs.claimToken(token, { jobId, now: at(1) }).catch(() => undefined)),
    );
    const [winner, ...others] = new Set(answers.filter((answer) => answer !== undefined));
    expect(rivals).toContain(winner);
    expect(others).toEqual([]);
    expect(await jobs.claimToken(token, { jobId: freshJobId(), now: at(2) })).toBe(winner);
    expect(told).toContain(`TOKEN#${token}/META`);
  });

  it.each<[string, Readonly<Record<string, unknown>>]>([
    ['an epoch that is no number', { epoch: 'first', until: 0 }],
    ['an end that is no time', { until: 'later', owner: 'other' }],
  ])('a lease with %s is named', async (_, set) => {
    const leases = new DynamoLeaseStore(table);
    const jobId = freshJobId();
    await leases.acquire(jobId, 'other', at(0), seconds(10));
    await spoil(table, { pk: `JOB#${jobId}`, sk: 'LEASE' }, set);
    await expect(leases.acquire(jobId, 'own', at(1), seconds(10))).rejects.toThrow(
      expect.objectContaining({
        name: 'UnreadableRecord',
        message: expect.stringContaining(`JOB#${jobId}/LEASE`) as unknown,
      }) as Error,
    );
  });

  describe('of claims on outputs', () => {
    const claimOf = (prefix: string) => ({
      jobId: freshJobId(),
      prefix,
      claimedAt: at(1),
      isPlanned: false,
    });

    it.each<[string, (good: object) => Readonly<Record<string, unknown>>, number]>([
      ['one of them', (good) => ({ claims: JSON.stringify([{ jobId: 7 }, null, good, []]) }), 1],
      [
        'age and standing of one',
        (good) => ({ claims: JSON.stringify([{ ...good, claimedAt: 'x', isPlanned: 1 }]) }),
        1,
      ],
      ['all', () => ({ claims: 'garbage' }), 0],
      ['what is no text', () => ({ claims: { a: 1 } }), 0],
      ['their version', (good) => ({ claims: JSON.stringify([good]), version: 'first' }), 1],
      ['a version before the first', (good) => ({ claims: JSON.stringify([good]), version: -1 }), 1],
      ['everything', () => ({ claims: null, version: null }), 0],
    ])('are told and left out where %s cannot be read, and others claim on', async (_, garbage, kept) => {
      const told: string[] = [];
      const store = new DynamoJobStore(table, ({ key }) => void told.push(key));
      const bucket = `results-${freshJobId()}`;
      const [good, later] = [claimOf('a/'), claimOf('b/')];
      await store.saveClaims(bucket, [good], 0);
      await spoil(table, claimsKey(bucket), garbage(good));
      const { claims, version } = await store.loadClaims(bucket);
      expect(claims.map(({ jobId }) => jobId)).toEqual(kept === 1 ? [good.jobId] : []);
      const answers = await Promise.all(
        [1, 2, 3].map(() => store.saveClaims(bucket, [...claims, later], version)),
      );
      expect(answers.filter((answer) => answer === 'saved')).toEqual(['saved']);
      told.splice(0);
      const mended = await store.loadClaims(bucket);
      expect(mended.claims.map(({ jobId }) => jobId)).toEqual([...claims, later].map(({ jobId }) => jobId));
      expect(told).toEqual([]);
      expect(await store.saveClaims(bucket, [], version)).toBe('stale');
      expect(await store.saveClaims(bucket, [], mended.version)).toBe('saved');
    });
  });

  it('statistics are told, and left out', async () => {
    const told: string[] = [];
    const report = ({ key }: { key: string }): void => void told.push(key);
    const stragglers = new DynamoStragglerStatistics(table, report);
    const assignments = new DynamoAssignmentStatistics(table, report);
    const hour = hourOf(T0);
    await table.putNew({ pk: 'STATISTICS', sk: `STRAGGLERS#${hour - 1}`, attempts: 'many', stragglers: 1 });
    await stragglers.add({ attempts: 5, stragglers: 2 }, T0);
    await table.putNew({ pk: 'STATISTICS', sk: `ASSIGNMENTS#3#${hour - 1}`, reads: [{ sizeBytes: 'x' }] });
    await assignments.add(3, { reads: [], gapsMs: [7], computeMs: [] }, T0);
    expect(await stragglers.recent(T0)).toEqual({ attempts: 5, stragglers: 2 });
    expect(await assignments.recent(3, T0)).toEqual({ reads: [], gapsMs: [7], computeMs: [] });
    expect(told).toEqual([`STATISTICS/STRAGGLERS#${hour - 1}`, `STATISTICS/ASSIGNMENTS#3#${hour - 1}`]);
  });

  describe('of the capacity ledger', () => {
    const context = (nowS: number) => ({ totalSlots: 100, now: at(nowS), length: seconds(60) });
    const HEAD = { pk: 'LEDGER', sk: 'CAPACITY' };

    it.each<[string, Readonly<Record<string, unknown>>]>([
      ['its slots', { slots: 'many' }],
      ['a number beyond all others', { held: NumberValue.from('-1e+21') }],
      ['its clones', { cloning: '{"clones":7}' }],
      ['clones that are no JSON', { cloning: '{' }],
      ['its round', { round: null }],
      ['what it wants', { wanted: new Uint8Array() }],
    ])('of one job (%s) are struck out, and harm no other', async (_, set) => {
      const own = await server.freshTable();
      const told: string[] = [];
      const store = new DynamoCapacityStore(own, undefined, ({ key }) => void told.push(key));
      const ledger = new RuledCapacityLedger(store);
      const [a, b] = [freshJobId(), freshJobId()];
      await ledger.resize(a, 30, context(0));
      await ledger.resize(b, 20, context(0));
      await spoil(own, { pk: 'LEDGER', sk: `JOB#${a}` }, set);
      expect(await ledger.resize(b, 25, context(1))).toBe(25);
      expect(await ledger.view()).toEqual({
        totalSlots: 100,
        usedSlots: 25,
        cloneSlots: 0,
        grants: { [b]: { slots: 25 } },
      });
      expect(told).toEqual([`LEDGER/JOB#${a}`]);
      expect(await ledger.resize(a, 90, context(2))).toBe(75);
      await ledger.release(a);
      await ledger.release(b);
      expect((await ledger.view()).usedSlots).toBe(0);
    });

    it.each<[string, Readonly<Record<string, unknown>>]>([
      ['its version', { version: 'x' }],
      ['its version, a number beyond all others', { version: NumberValue.from('-1e+21') }],
      ['what it changes', { changes: '[{]' }],
      ['everything', { version: [], totalSlots: null, writeId: 7, changes: {} }],
    ])('of all jobs are begun anew where %s is garbage, and no grant is lost', async (_, set) => {
      const own = await server.freshTable();
      const ledger = new RuledCapacityLedger(new DynamoCapacityStore(own));
      const [a, b] = [freshJobId(), freshJobId()];
      await ledger.resize(a, 30, context(0));
      await spoil(own, HEAD, set);
      expect(await ledger.resize(b, 100, context(1))).toBe(70);
      await ledger.release(a);
      expect(await ledger.resize(b, 100, context(2))).toBe(100);
    });
  });
});
