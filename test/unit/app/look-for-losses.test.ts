import { beforeEach, describe, expect, it } from 'vitest';
import type { MemoryObjectStore } from '../../../src/adapters/memory/memory-object-store.ts';
import { lookForLosses } from '../../../src/app/look-for-losses.ts';
import { refute } from '../../../src/core/model/lost-outputs.ts';
import type { LossKind } from '../../../src/contracts/records.ts';
import { epochMs } from '../../../src/contracts/units.ts';
import { applyDecisions } from '../../../src/core/decide-tick.ts';
import {
  applyAttempt,
  applyReplica,
  applyResult,
  createJobState,
  openStage,
  taskAt,
} from '../../../src/core/model/job-state.ts';
import type { JobState } from '../../../src/core/model/job-view.ts';
import type { FoundLoss } from '../../../src/core/model/tick-config.ts';
import { attempt, attemptRecord, failure, resultOf } from '../../support/job-states.ts';
import { bytes, crcOfRange, jobId, missedBy, refOf, threeStages } from '../../support/three-stages.ts';

const at = epochMs;

let objects: MemoryObjectStore;
let state: JobState;
let asked: string[];
let warned: string[];

const put = (id: string, body: Uint8Array = bytes): Promise<unknown> => objects.write(refOf(id), body);
const remove = (id: string): Promise<void> => objects.remove('data', [refOf(id).key]);

async function look(): Promise<readonly FoundLoss[]> {
  const log = { info: (): void => undefined, warn: (event: string) => void warned.push(event) };
  const seen = new Proxy(objects, {
    get: (target, property: keyof MemoryObjectStore) => {
      const method = (...args: readonly unknown[]): unknown =>
        (Reflect.get(target, property) as (...all: readonly unknown[]) => unknown).apply(target, [...args]);
      return (...args: readonly unknown[]) => {
        asked.push(`${property} ${(args[0] as { key: string }).key.split('/').slice(-3).join('/')}`);
        return method(...args);
      };
    },
  });
  return lookForLosses({ objects: seen, dataBucket: 'data', log }, { jobId, state });
}

/** A reader that ran from 1 ms to 9 ms, or at another time. */
const missed = (reader: string, id: string, how: LossKind, ran?: [number, number]): void => {
  missedBy(state, reader, { id, how }, ran);
};

beforeEach(async () => {
  ({ objects, state } = await threeStages());
  asked = [];
  warned = [];
});

describe('a look at what readers did not find', () => {
  it('asks for nothing where nobody has missed anything', async () => {
    expect(await look()).toEqual([]);
    expect(asked).toEqual([]);
  });

  it.each([
    ['missing', 'missing', (): Promise<void> => remove('mid/1/0')],
    ['denied', 'missing', (): Promise<void> => remove('mid/1/0')],
    ['short', 'short', (): Promise<unknown> => put('mid/1/0', bytes.subarray(0, 6))],
    ['damaged', 'damaged', (): Promise<unknown> => put('mid/1/0', Buffer.from('0123x56789'))],
  ] as const)('finds what was %s to be %s', async (how, found, harm) => {
    await harm();
    missed('end/0/0', 'mid/1/0', how);
    expect(await look()).toEqual([{ attemptId: 'mid/1/0', how: found, by: 'end/0/0' }]);
  });

  it.each(['missing', 'short', 'damaged'] as const)(
    'finds what was said to be %s where it is there, and lets nothing be made again',
    async (how) => {
      missed('end/0/0', 'mid/1/0', how);
      expect(await look()).toEqual([]);
      expect(taskAt(state, 2, 0).failures).toBe(1);
      expect(state.suspects.size).toBe(0);
      expect(warned).toEqual(['output-is-there']);
    },
  );

  it('looks at the rest of the stage, and at what is to be read once more for what is gone', async () => {
    for (const id of ['mid/1/0', 'mid/2/0', 'map/0/0']) await remove(id);
    missed('end/0/0', 'mid/1/0', 'missing');
    expect((await look()).map(({ attemptId, by }) => [attemptId, by])).toEqual([
      ['mid/1/0', 'end/0/0'],
      ['map/0/0', undefined],
      ['mid/2/0', undefined],
    ]);
    expect(asked.filter((each) => each.startsWith('head'))).toHaveLength(6);
  });

  it('looks at no input where another copy of what is gone is left, and finds which copies are', async () => {
    applyReplica(state, resultOf('mid/1/2', 6));
    applyReplica(state, resultOf('mid/1/3', 6));
    for (const id of ['mid/1/0', 'map/0/0']) await remove(id);
    await put('mid/1/3');
    missed('end/0/0', 'mid/1/0', 'missing');
    expect((await look()).map(({ attemptId }) => attemptId)).toEqual(['mid/1/0', 'mid/1/2']);
    expect(asked.join()).not.toContain('map');
  });
});

describe('a look at a part that cannot be published', () => {
  it('finds what its task has to read again to be gone, however many tasks the last stage has', async () => {
    const shape = (name: string, tasks: number, upstream: readonly number[]) => ({
      ...{ name, tasks, upstream, sourceBytes: [] },
    });
    state = createJobState([shape('map', 2, []), shape('end', 2_500, [0])]);
    const ids = ['map/0/0', 'map/1/0', ...Array.from({ length: 2_500 }, (_, task) => `end/${task}/0`)];
    applyDecisions(
      state,
      [
        ...[0, 1].map((stage) => ({ kind: 'open-stage' as const, stage })),
        ...ids.map((id) => ({ kind: 'launch' as const, attemptId: attempt(id), reason: 'first' as const })),
      ],
      {
        now: at(1),
        openStage: (stage) => {
          openStage(state, stage, [], at(1));
        },
      },
    );
    for (const id of ids) applyResult(state, resultOf(id, 5), at(5));
    await remove('map/1/0');
    applyAttempt(state, { ...attemptRecord('end/7/0', 'done', 9), outputLostAt: at(9) }, at(9));
    expect(await look()).toEqual([
      { attemptId: 'end/7/0', how: 'missing' },
      { attemptId: 'map/1/0', how: 'missing' },
    ]);
  });
});

describe('a look at an output that readers say is where nobody answers, of which the size is told', () => {
  /** The reader is launched again, once the one before has failed or beside it, and fails again. */
  const again = (number: number, id: string, from = 10 * number): void => {
    const decision = { kind: 'launch', attemptId: attempt(`end/0/${number}`), reason: 'retry' } as const;
    if (number > 0) applyDecisions(state, [decision], { now: at(from), openStage: () => undefined });
    missed(`end/0/${number}`, id, 'unreachable', [from, from + 9]);
  };

  it('believes no reader that is alone, but finds it by no fault of its own that it has failed', async () => {
    for (const [number, id] of ['mid/0/0', 'mid/1/0', 'mid/2/0'].entries()) {
      again(number, id);
      expect(await look()).toEqual([]);
    }
    expect(taskAt(state, 2, 0).failures).toBe(0);
    expect(state.fatal).toBeUndefined();
  });

  it('believes the next attempt of the same task', async () => {
    again(0, 'mid/1/0');
    expect(await look()).toEqual([]);
    again(1, 'mid/1/0');
    expect(await look()).toEqual([{ attemptId: 'mid/1/0', how: 'unreachable', by: 'end/0/1' }]);
    expect(taskAt(state, 2, 0).failures).toBe(0);
  });

  it('believes no readers of several tasks, which may have met the same that has passed', async () => {
    for (const reader of ['mid/0/1', 'mid/1/1'])
      applyDecisions(state, [{ kind: 'launch', attemptId: attempt(reader), reason: 'clone' }], {
        now: at(9),
        openStage: () => undefined,
      });
    missed('mid/0/1', 'map/0/0', 'unreachable');
    missed('mid/1/1', 'map/0/0', 'unreachable');
    applyDecisions(state, [{ kind: 'lose-output', attemptId: attempt('mid/1/0'), how: 'unreachable' }], {
      now: at(10),
      openStage: () => undefined,
    });
    expect(await look()).toEqual([]);
  });

  it('believes no copies of one task that ran at once, and the attempt after them', async () => {
    again(0, 'mid/1/0');
    again(1, 'mid/1/0', 5);
    expect(await look()).toEqual([]);
    again(2, 'mid/1/0');
    expect(await look()).toEqual([{ attemptId: 'mid/1/0', how: 'unreachable', by: 'end/0/2' }]);
  });

  it('forgives a task four attempts, and counts each that fails so from then on', () => {
    for (const number of [0, 1, 2, 3, 4, 5]) {
      again(number, 'mid/1/0');
      refute(state, attempt('mid/1/0'));
    }
    expect(taskAt(state, 2, 0).failures).toBe(2);
  });

  it('forgives no fewer where all are known before any is looked into, as after a takeover', () => {
    const ids = ['mid/0/0', 'mid/1/0', 'mid/2/0', 'map/0/0', 'map/1/0', 'map/2/0'];
    for (const [number, id] of ids.entries()) again(number, id);
    for (const id of ids) refute(state, attempt(id));
    expect(taskAt(state, 2, 0).failures).toBe(2);
  });

  it('knows of both after a takeover, whether or not somebody has looked between them', async () => {
    const records = [0, 1].map((number) => {
      again(number, 'mid/1/0');
      return attempt(`end/0/${number}`);
    });
    expect(state.suspects.get(attempt('mid/1/0'))?.by.map(({ id }) => id)).toEqual(records);
    expect(await look()).toEqual([{ attemptId: 'mid/1/0', how: 'unreachable', by: 'end/0/0' }]);
  });

  it('strikes a reader all the same that says other things of other outputs, which are there', async () => {
    const range = { offset: 3, length: 4, crc: crcOfRange };
    const lost = (['unreachable', 'damaged'] as const).map((how, index) => ({
      ...{ attemptId: attempt(`mid/${index}/0`), how },
      ...range,
    }));
    const why = { ...failure('input-lost'), lost };
    applyAttempt(state, attemptRecord('end/0/0', 'failed', 9, { failure: why }), at(9));
    expect(await look()).toEqual([]);
    expect(taskAt(state, 2, 0).failures).toBe(1);
  });
});

describe('a look at outputs that workers keep', () => {
  const keep = (id: string): void => {
    const { stage, task } = { stage: id.startsWith('map') ? 0 : 1, task: Number(id.split('/')[1]) };
    const view = taskAt(state, stage, task);
    if (view.result !== undefined) view.result = { ...view.result, worker: '10.0.0.7:7843' };
  };

  it('believes readers, since it cannot ask workers, and takes no other for gone', async () => {
    for (const id of ['mid/0/0', 'mid/1/0', 'mid/2/0']) {
      keep(id);
      await remove(id);
    }
    missed('end/0/0', 'mid/1/0', 'unreachable');
    expect(await look()).toEqual([{ attemptId: 'mid/1/0', how: 'unreachable', by: 'end/0/0' }]);
  });

  it('looks at what has to be read once more, where that is on S3', async () => {
    keep('mid/1/0');
    for (const id of ['mid/1/0', 'map/2/0']) await remove(id);
    missed('end/0/0', 'mid/1/0', 'damaged');
    expect(await look()).toEqual([
      { attemptId: 'mid/1/0', how: 'damaged', by: 'end/0/0' },
      { attemptId: 'map/2/0', how: 'missing' },
    ]);
  });

  it('finds one that its worker has put into the data bucket', async () => {
    keep('mid/1/0');
    missed('end/0/0', 'mid/1/0', 'unreachable');
    expect(await look()).toEqual([]);
    expect(warned).toEqual(['output-is-there']);
  });
});
