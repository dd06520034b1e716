import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DynamoAttemptStore } from '../../../src/adapters/aws/dynamo-attempt-store.ts';
import { DynamoCapacityStore } from '../../../src/adapters/aws/dynamo-capacity-store.ts';
import { RuledCapacityLedger } from '../../../src/app/capacity-ledger.ts';
import { DynamoDecisionLog } from '../../../src/adapters/aws/dynamo-decision-log.ts';
import { DynamoJobStore } from '../../../src/adapters/aws/dynamo-job-store.ts';
import { DynamoLeaseStore } from '../../../src/adapters/aws/dynamo-lease-store.ts';
import type { DynamoTable } from '../../../src/adapters/aws/dynamo-table.ts';
import { S3ObjectStore } from '../../../src/adapters/aws/s3-object-store.ts';
import { at, attempt, freshJobId, jobRecord, progress, resultOf, seconds } from './builders.ts';
import { type LossyProxy, startLossyProxy } from './lossy-proxy.ts';
import { startObjects, startTables, type TableServer } from './servers.ts';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

describe('a write whose answer is lost on the way, over DynamoDB', () => {
  let proxy: LossyProxy;
  let server: TableServer;
  let table: DynamoTable;
  beforeAll(async () => {
    const hasDynoxide = process.platform === 'linux' && process.arch === 'x64';
    server = await startTables(hasDynoxide ? 'dynoxide' : 'dynalite', async (endpoint) => {
      proxy = await startLossyProxy(endpoint);
      return proxy.endpoint;
    });
    table = await server.freshTable();
  });
  afterAll(async () => {
    await server.close();
    await proxy.close();
  });

  /** What the call answers although the first answer to it was lost. */
  async function withLoss<T>(call: () => Promise<T>): Promise<T> {
    const before = proxy.lost();
    proxy.loseNext(1);
    const answer = await call();
    expect(proxy.lost()).toBe(before + 1);
    return answer;
  }

  it('creates and updates a job as if nothing had happened', async () => {
    const store = new DynamoJobStore(table);
    const job = jobRecord(freshJobId());
    expect(await withLoss(() => store.create(job))).toEqual({ kind: 'created' });
    expect(await withLoss(() => store.update(job.jobId, ['submitted'], { state: 'running' }))).toBe(
      'updated',
    );
    expect(await store.update(job.jobId, ['submitted'], { state: 'running' })).toBe('stale');
    expect(await withLoss(() => store.claimToken('token', { jobId: job.jobId, now: at(0) }))).toBe(job.jobId);
    expect(await store.claimToken('token', { jobId: freshJobId(), now: at(1) })).toBe(job.jobId);
  });

  it('claims an attempt and commits a result or a replica as if nothing had happened', async () => {
    const store = new DynamoAttemptStore(table);
    const space = { jobId: freshJobId(), shards: 2 };
    await store.create(space, attempt(0), at(0));
    const place = { node: 'n', zone: 'z' };
    expect(await withLoss(() => store.claim(space, attempt(0), place, at(1)))).toBe('claimed');
    expect(await store.claim(space, attempt(0), place, at(1))).toBe('refused');
    expect(await withLoss(() => store.commit(space, resultOf(attempt(0), at(2))))).toBe('won');
    expect(await store.commit(space, resultOf(attempt(0, 1), at(2)))).toBe('lost');
    expect(await withLoss(() => store.commit(space, resultOf(attempt(0, 1), at(2)), 'replica'))).toBe('kept');
    expect((await store.all(space)).replicas).toEqual([resultOf(attempt(0, 1), at(2))]);
  });

  it('ends an attempt that hands on its work as if nothing had happened', async () => {
    const store = new DynamoAttemptStore(table);
    const space = { jobId: freshJobId(), shards: 2 };
    const end = {
      state: 'failed',
      progress: progress(7),
      failure: { cause: 'interrupted', message: 'Spot' },
      saved: { dataBytes: 70, noteBytes: 9, noteCrc: 5, bytesDone: 600, bytesTotal: 1_000 },
    } as const;
    await store.create(space, attempt(0), at(0));
    await store.claim(space, attempt(0), { node: 'n', zone: 'z' }, at(1));
    expect(await withLoss(() => store.end(space, attempt(0), end, at(2)))).toBe('ended');
  });

  it('appends one decision, and keeps a lease whose epoch is the latest', async () => {
    const log = new DynamoDecisionLog(table);
    const leases = new DynamoLeaseStore(table);
    const jobId = freshJobId();
    const entry = { version: 1, epoch: 1, at: at(0), decisions: ['x'] };
    expect(await withLoss(() => log.append(jobId, entry))).toBe('appended');
    const lease = await withLoss(() => leases.acquire(jobId, 'a', at(0), seconds(10)));
    if (lease.kind === 'held') throw new Error('the lease was not given');
    expect(await withLoss(() => leases.renew(jobId, 'a', lease.epoch, at(20)))).toBe('renewed');
  });

  it('grants and gives back slots once', async () => {
    const ledger = new RuledCapacityLedger(new DynamoCapacityStore(table));
    const jobId = freshJobId();
    const context = { totalSlots: 10, now: at(0), length: seconds(60) };
    await ledger.resize(freshJobId(), 1, context);
    proxy.loseNext(2);
    expect(await ledger.resize(jobId, 6, context)).toBe(6);
    expect((await ledger.view()).usedSlots).toBe(7);
    proxy.loseNext(2);
    await ledger.release(jobId);
    expect((await ledger.view()).usedSlots).toBe(1);
  });

  it('admits and gives back clones once', async () => {
    const ledger = new RuledCapacityLedger(new DynamoCapacityStore(await server.freshTable()));
    const jobId = freshJobId();
    const context = { totalSlots: 100, now: at(0), length: seconds(60), budgetSlots: 10, ceilingSlots: 80 };
    const request = { phase: 'map', unitSlots: 6, leastUnits: 1, mostUnits: 1, besideSlots: 0 };
    await ledger.resize(freshJobId(), 1, context);
    proxy.loseNext(2);
    expect(await ledger.admitClones(jobId, request, context)).toEqual({
      units: 1,
      usedSlots: 1,
      cloneSlots: 0,
    });
    expect(await ledger.view()).toMatchObject({ usedSlots: 7, cloneSlots: 6 });
    proxy.loseNext(2);
    await ledger.releaseClones(jobId, 'map', 2);
    expect(await ledger.view()).toMatchObject({ usedSlots: 7, cloneSlots: 2 });
  });
});

describe('a write whose answer is lost on the way, over S3', () => {
  it('writes an absent object once, and knows that it did', async () => {
    let proxy: LossyProxy | undefined;
    const server = await startObjects(async (endpoint) => {
      proxy = await startLossyProxy(endpoint);
      return proxy.endpoint;
    });
    const store = new S3ObjectStore(server.client);
    const place = { bucket: 'books', key: 'a' };
    proxy?.loseNext(1);
    expect(await store.write(place, bytes('one'), { ifAbsent: true, metadata: { by: 'me' } })).toBe(
      'written',
    );
    expect(proxy?.lost()).toBe(1);
    expect(await store.write(place, bytes('two'), { ifAbsent: true })).toBe('exists');
    expect((await store.head(place))?.metadata).toEqual({ by: 'me' });
    await server.close();
    await proxy?.close();
  });
});
