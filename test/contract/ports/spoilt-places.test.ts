import { NumberValue } from '@aws-sdk/lib-dynamodb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DynamoJobStore } from '../../../src/adapters/aws/dynamo-job-store.ts';
import { DynamoRoster } from '../../../src/adapters/aws/dynamo-roster.ts';
import { DynamoSweepMark } from '../../../src/adapters/aws/dynamo-sweep-mark.ts';
import type { DynamoTable, ItemKey } from '../../../src/adapters/aws/dynamo-table.ts';
import { jobKey } from '../../../src/adapters/aws/job-item.ts';
import type { EnlistedJob, Seat } from '../../../src/ports/roster.ts';
import { at, freshJobId, jobRecord, T0, tally } from './builders.ts';
import { engines, spoil, startTables, type TableServer } from './servers.ts';

const SEAT: ItemKey = { pk: 'ROSTER', sk: 'A-SEAT#0000' };
const beyondNumbers = NumberValue.from('1e+21');

describe.each(engines)('places that cannot be read, over %s', (engine) => {
  let server: TableServer;
  let table: DynamoTable;
  beforeAll(async () => {
    server = await startTables(engine);
  });
  afterAll(async () => {
    await server.close();
  });
  const fresh = async (): Promise<DynamoTable> => (table = await server.freshTable());

  describe('of residents', () => {
    it.each<[string, Readonly<Record<string, unknown>>]>([
      ['an end that is text', { until: 'later' }],
      ['an end beyond all numbers', { until: beyondNumbers }],
      ['a resident that is a number', { resident: 7 }],
      ['a resident that is a set', { resident: new Set(['a', 'b']) }],
      ['another number', { number: 3 }],
      ['nothing that can be read', { number: [], resident: { a: 1 }, until: null }],
    ])('with %s are told, and taken by one of those who come', async (_, set) => {
      const told: string[] = [];
      const roster = new DynamoRoster(await fresh(), ({ key }) => void told.push(key));
      await roster.sit({ number: 0, resident: 'gone', until: at(10) }, undefined);
      await spoil(table, SEAT, set);
      const { seats } = await roster.view(10);
      expect(seats.map(({ number }) => number)).toEqual([0]);
      if (!('number' in set && Object.keys(set).length === 1)) expect(told).toEqual(['ROSTER/A-SEAT#0000']);
      const rivals = await Promise.all(
        Array.from({ length: 8 }, (__, rival) =>
          roster.sit({ number: 0, resident: `rival-${rival}`, until: at(20) }, seats[0]),
        ),
      );
      expect(tally(rivals)).toEqual({ seated: 1, occupied: 7 });
      const [seat] = (await roster.view(10)).seats;
      expect(seat).toEqual({
        number: 0,
        resident: expect.stringMatching(/^rival-/) as string,
        until: at(20),
      });
    });

    it('are emptied of who sits there, unless they have changed since', async () => {
      const roster = new DynamoRoster(await fresh());
      const own = { number: 0, resident: 'own', until: at(10) };
      await roster.sit(own, undefined);
      await spoil(table, SEAT, { until: 'later' });
      const [spoilt] = (await roster.view(10)).seats;
      if (spoilt?.resident === undefined) throw new Error('nobody sits there');
      const taken = Object.assign(spoilt, { resident: spoilt.resident });
      await roster.stay({ ...own, until: at(20) });
      await roster.vacate(taken);
      expect((await roster.view(10)).seats).toEqual([{ ...own, until: at(20) }]);
      await spoil(table, SEAT, { until: 'later' });
      await roster.vacate(taken);
      const [empty] = (await roster.view(10)).seats;
      expect(empty).toEqual({ number: 0, until: 0 });
      expect(await roster.sit({ number: 0, resident: 'next', until: at(30) }, empty)).toBe('seated');
    });

    it('are theirs who keep them, once they do', async () => {
      const roster = new DynamoRoster(await fresh());
      const own = { number: 0, resident: 'own', until: at(10) };
      await roster.sit(own, undefined);
      await spoil(table, SEAT, { until: 'later' });
      const [spoilt] = (await roster.view(10)).seats;
      expect(spoilt).toEqual({ number: 0, resident: 'own', until: 0 } satisfies Partial<
        Record<keyof Seat, unknown>
      >);
      expect(await roster.stay({ ...own, until: at(20) })).toBe('seated');
      expect(await roster.sit({ number: 0, resident: 'rival', until: at(30) }, spoilt)).toBe('occupied');
      expect((await roster.view(10)).seats).toEqual([{ ...own, until: at(20) }]);
    });

    it('are left out where nobody knows which they are', async () => {
      const told: string[] = [];
      const roster = new DynamoRoster(await fresh(), ({ key }) => void told.push(key));
      await table.putNew({ pk: 'ROSTER', sk: 'A-SEAT#first', until: 1 });
      await roster.sit({ number: 0, resident: 'own', until: at(10) }, undefined);
      expect((await roster.view(10)).seats).toEqual([{ number: 0, resident: 'own', until: at(10) }]);
      expect(told).toEqual(['ROSTER/A-SEAT#first']);
    });
  });

  describe('of jobs that want a scheduler', () => {
    const job = (): EnlistedJob => ({
      jobId: freshJobId(),
      createdAt: at(1),
      weight: 0.25,
      mark: 'first',
      enlistedAt: at(1),
    });
    const placeOf = ({ jobId, createdAt }: EnlistedJob): ItemKey => ({
      pk: 'ROSTER',
      sk: `JOB#${String(createdAt).padStart(15, '0')}#${jobId}`,
    });

    it.each<[string, unknown]>([
      ['a number', 7],
      ['nothing', null],
      ['a list', ['a']],
    ])('whose resident is %s are taken by one of those who come', async (_, resident) => {
      const roster = new DynamoRoster(await fresh());
      const spoilt = job();
      await roster.enlist(spoilt, 'one');
      await spoil(table, placeOf(spoilt), { resident });
      expect((await roster.view(10)).jobs).toEqual([spoilt]);
      expect(await roster.find(spoilt)).toEqual(spoilt);
      const takes = await Promise.all(
        Array.from({ length: 8 }, (__, rival) =>
          roster.take(spoilt, { from: undefined, resident: `rival-${rival}` }),
        ),
      );
      expect(tally(takes)).toEqual({ taken: 1, stale: 7 });
    });

    it.each<[string, Readonly<Record<string, unknown>>]>([
      ['mark', { mark: 7 }],
      ['weight', { weight: 'much' }],
      ['id', { jobId: '__proto__' }],
      ['time', { enlistedAt: beyondNumbers }],
    ])('whose %s is garbage are left out, and are there once they are enlisted again', async (_, set) => {
      const told: string[] = [];
      const roster = new DynamoRoster(await fresh(), ({ key }) => void told.push(key));
      const [spoilt, other] = [job(), job()];
      for (const each of [spoilt, other]) await roster.enlist(each, 'one');
      await spoil(table, placeOf(spoilt), set);
      expect((await roster.view(10)).jobs).toEqual([other]);
      expect(told).toEqual([`ROSTER/${placeOf(spoilt).sk}`]);
      await roster.enlist({ ...spoilt, mark: 'second' }, 'two');
      expect(await roster.find(spoilt)).toEqual({ ...spoilt, mark: 'second' });
    });
  });

  it.each<[string, Readonly<Record<string, unknown>>]>([
    ['a cursor that is none', { cursor: 7 }],
    ['a time that is none', { at: 'now' }],
    ['a time beyond all numbers', { at: beyondNumbers }],
    ['a time that has yet to come', { at: at(40 * 86_400) }],
    ['no time', { at: null }],
  ])('the mark of the sweep with %s is written anew', async (_, set) => {
    const mark = new DynamoSweepMark(await fresh());
    await mark.save('one', at(1));
    await spoil(table, { pk: 'SWEEP', sk: 'MARK' }, set);
    await mark.load();
    await mark.save('two', at(2));
    expect(await mark.load()).toBe('two');
  });

  it.each(['1e+21', '-1e+21', '1.5', '1e-100'])(
    'of jobs whose time of creation is %s are followed by others, however long the pages are',
    async (time) => {
      const [first, spoilt, last] = [freshJobId(), freshJobId(), freshJobId()];
      const own = await server.freshTable();
      const store = new DynamoJobStore(own);
      for (const [index, jobId] of [first, spoilt, last].entries())
        await store.create(jobRecord(jobId, { createdAt: at(index) }));
      await spoil(own, jobKey(spoilt), { createdAt: NumberValue.from(time) });
      const seen: string[] = [];
      let cursor: string | undefined;
      for (let page = 0; page < 5; page++) {
        const found = await store.list({ limit: 1, ...(cursor === undefined ? {} : { cursor }) });
        seen.push(
          ...found.jobs.map(({ jobId }) => jobId),
          ...(found.unreadable ?? []).map(({ jobId }) => jobId),
        );
        ({ cursor } = found);
        if (cursor === undefined) break;
      }
      expect(seen.toSorted()).toEqual([first, spoilt, last].toSorted());
    },
  );

  it.each<[string, Readonly<Record<string, unknown>>]>([
    ['a time beyond all numbers', { createdAt: 1e300 }],
    ['a time too small for the table', { createdAt: 1e-200 }],
    ['a time that is text', { createdAt: 'now' }],
    ['digits that no number has', { createdAt: '1.2.3' }],
    ['digits beyond all numbers', { createdAt: '1e300' }],
    ['a key that is too long', { pk: `JOB#${'x'.repeat(5_000)}` }],
    ['half a pair of surrogates', { pk: 'JOB#\ud800' }],
    ['another list', { listing: 'OTHERS' }],
    ['one thing more', { more: 1 }],
  ])("a cursor with %s is the asker's mistake", async (_, over) => {
    const jobs = new DynamoJobStore(await fresh());
    const asked = { pk: jobKey(freshJobId()).pk, sk: 'META', listing: 'JOBS', createdAt: T0, ...over };
    const cursor = Buffer.from(JSON.stringify(asked)).toString('base64url');
    await expect(jobs.list({ limit: 2, cursor })).rejects.toThrow(
      expect.objectContaining({ name: 'InvalidInput', details: { field: 'cursor' } }) as Error,
    );
  });
});
