import { beforeEach, describe, expect, it } from 'vitest';
import { MemoryObjectStore } from '../../../src/adapters/memory/memory-object-store.ts';
import { lookForLosses } from '../../../src/app/look-for-losses.ts';
import type { Session } from '../../../src/app/scheduler-session.ts';
import {
  ConflictError,
  NotFoundError,
  StoreRefusedError,
  StoreUnavailableError,
} from '../../../src/contracts/errors.ts';
import { attemptDataKey } from '../../../src/contracts/keys.ts';
import type { LossKind } from '../../../src/contracts/records.ts';
import { taskAt } from '../../../src/core/model/job-state.ts';
import type { JobState } from '../../../src/core/model/job-view.ts';
import type { FoundLoss } from '../../../src/core/model/tick-config.ts';
import { attempt } from '../../support/job-states.ts';
import { bytes, jobId, missedBy, refOf, threeStages } from '../../support/three-stages.ts';

let state: JobState;

beforeEach(async () => {
  ({ state } = await threeStages());
});

const missed = (reader: string, id: string, how: LossKind): void => {
  missedBy(state, reader, { id, how });
};

describe('a look at outputs in zones', () => {
  const zonalBuckets = ['data--use1-az1--x-s3', 'data--use1-az2--x-s3'];
  const plan = { stages: [{ description: { zonalBuckets } }] } as unknown as Session['plan'];
  const log = { info: (): void => undefined, warn: (): void => undefined };

  /** Objects of which those of one bucket are asked for in vain. */
  class LostZone extends MemoryObjectStore {
    asked: string[] = [];

    override head(ref: { bucket: string; key: string }) {
      this.asked.push(ref.bucket);
      if (ref.bucket === zonalBuckets[0]) return Promise.reject(new StoreUnavailableError('no answer'));
      return super.head(ref);
    }
  }

  it('finds all that a zone holds to be lost which does not answer, and asks it once', async () => {
    const zoned = new LostZone();
    const place = (index: number): string => `use1-az${String(1 + (index % 2))}`;
    for (const index of [0, 1, 2]) {
      const task = taskAt(state, 1, index);
      if (task.result !== undefined) task.result = { ...task.result, zone: place(index) };
      const key = attemptDataKey(jobId, attempt(`mid/${String(index)}/0`));
      await zoned.write({ bucket: zonalBuckets[index % 2] ?? '', key }, bytes);
    }
    for (const index of [0, 1, 2]) await zoned.write(refOf(`map/${String(index)}/0`), bytes);
    missed('end/0/0', 'mid/0/0', 'unreachable');
    const found = await lookForLosses({ objects: zoned, dataBucket: 'data', log }, { jobId, state, plan });
    expect(found).toEqual([
      { attemptId: 'mid/0/0', how: 'unreachable', by: 'end/0/0' },
      { attemptId: 'mid/2/0', how: 'unreachable' },
    ]);
    expect(zoned.asked.filter((bucket) => bucket === zonalBuckets[0])).toHaveLength(1);
  });

  /** All outputs of `mid` lie in the first zone; a head for one of these is answered by what is thrown for it. */
  async function inZone(thrown: Readonly<Record<string, Error>>): Promise<MemoryObjectStore> {
    const zoned = new MemoryObjectStore();
    const bucket = zonalBuckets[0] ?? '';
    for (const index of [0, 1, 2]) {
      const task = taskAt(state, 1, index);
      if (task.result !== undefined) task.result = { ...task.result, zone: 'use1-az1' };
      await zoned.write({ ...refOf(`mid/${String(index)}/0`), bucket }, bytes);
      await zoned.write(refOf(`map/${String(index)}/0`), bytes);
    }
    const whole = zoned.head.bind(zoned);
    zoned.head = (ref) => {
      const cause = thrown[ref.key.split('/').slice(-3).join('/')];
      if (cause === undefined) return whole(ref);
      return Promise.reject(cause);
    };
    return zoned;
  }
  const lookIn = (zoned: MemoryObjectStore): Promise<readonly FoundLoss[]> =>
    lookForLosses({ objects: zoned, dataBucket: 'data', log }, { jobId, state, plan });

  it('takes nothing for lost for what the zone of a loss has not answered, if it answers for others', async () => {
    const zoned = await inZone({ 'mid/1/0': new StoreUnavailableError('no answer') });
    await zoned.remove(zonalBuckets[0] ?? '', [refOf('mid/0/0').key]);
    missed('end/0/0', 'mid/0/0', 'missing');
    expect(await lookIn(zoned)).toEqual([{ attemptId: 'mid/0/0', how: 'missing', by: 'end/0/0' }]);
  });

  it('takes but the one for lost that was missed, where the zone fails over it alone', async () => {
    const zoned = await inZone({
      'mid/0/0': new StoreUnavailableError('head in S3 failed', { status: 500 }),
    });
    missed('end/0/0', 'mid/0/0', 'unreachable');
    expect(await lookIn(zoned)).toEqual([{ attemptId: 'mid/0/0', how: 'unreachable', by: 'end/0/0' }]);
  });

  it('takes all for lost that a zone holds which fails over two of its objects and answers for none', async () => {
    const failing = new StoreUnavailableError('head in S3 failed', { status: 503 });
    const zoned = await inZone({ 'mid/0/0': failing, 'mid/1/0': failing, 'mid/2/0': failing });
    missed('end/0/0', 'mid/0/0', 'unreachable');
    expect((await lookIn(zoned)).map(({ attemptId, how }) => [attemptId, how])).toEqual([
      ['mid/0/0', 'unreachable'],
      ['mid/1/0', 'unreachable'],
      ['mid/2/0', 'unreachable'],
    ]);
  });

  it('takes for there what S3 refuses to tell of: its reader has failed of what S3 has told it', async () => {
    const refusal = new StoreRefusedError('head was refused by S3 for s3://b/k: InvalidRequest: why');
    const zoned = await inZone({ 'mid/0/0': refusal, 'mid/1/0': refusal, 'mid/2/0': refusal });
    missed('end/0/0', 'mid/0/0', 'missing');
    expect(await lookIn(zoned)).toEqual([]);
    expect(taskAt(state, 2, 0).failures).toBe(1);
  });

  it('looks at each of a zone that tells the size of one and does not give it', async () => {
    const zoned = await inZone({});
    zoned.read = () => ({
      [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(new StoreUnavailableError('no answer')) }),
    });
    missed('end/0/0', 'mid/0/0', 'damaged');
    expect(await lookIn(zoned)).toEqual([{ attemptId: 'mid/0/0', how: 'unreachable', by: 'end/0/0' }]);
  });

  /** One object by its size alone: whoever reads it is told this. */
  async function told(cause: Error, zone?: string): Promise<readonly FoundLoss[]> {
    const unread = new MemoryObjectStore();
    const task = taskAt(state, 1, 0);
    if (task.result !== undefined && zone !== undefined) task.result = { ...task.result, zone };
    const bucket = zone === undefined ? 'data' : (zonalBuckets[0] ?? '');
    await unread.write({ ...refOf('mid/0/0'), bucket }, bytes);
    unread.read = () => ({ [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(cause) }) });
    for (const id of ['mid/1/0', 'mid/2/0', 'map/0/0', 'map/1/0', 'map/2/0'])
      await unread.write(refOf(id), bytes);
    return lookForLosses({ objects: unread, dataBucket: 'data', log }, { jobId, state, plan });
  }

  it.each(['damaged', 'short'] as const)(
    'takes what is said to be %s for lost with its zone where that tells its size and does not give it',
    async (how) => {
      missed('end/0/0', 'mid/0/0', how);
      const found = await told(new StoreUnavailableError('no answer'), 'use1-az1');
      expect(found).toEqual([{ attemptId: 'mid/0/0', how: 'unreachable', by: 'end/0/0' }]);
    },
  );

  it.each([
    ['is written anew as it is read', new ConflictError('changed')],
    ['is gone as it is read', new NotFoundError('gone')],
    ['cannot be read', new StoreUnavailableError('no answer')],
  ])('believes whoever has read it that what %s in the data bucket is damaged', async (_, cause) => {
    missed('end/0/0', 'mid/0/0', 'damaged');
    expect(await told(cause)).toEqual([{ attemptId: 'mid/0/0', how: 'damaged', by: 'end/0/0' }]);
  });

  it('fails where the data bucket does not answer: that is no loss', async () => {
    const away = new MemoryObjectStore();
    away.head = () => Promise.reject(new StoreUnavailableError('no answer'));
    missed('end/0/0', 'mid/0/0', 'missing');
    const looking = lookForLosses({ objects: away, dataBucket: 'data', log }, { jobId, state, plan });
    await expect(looking).rejects.toThrow(StoreUnavailableError);
  });
});
