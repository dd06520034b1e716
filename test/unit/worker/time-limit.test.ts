import { describe, expect, it } from 'vitest';
import { attemptIdOf } from '../../../src/contracts/ids.ts';
import { durationMs, epochMs, later } from '../../../src/contracts/units.ts';
import { timeLimitOf } from '../../../src/core/model/time-limit.ts';
import { graceOf, startTimeLimit } from '../../../src/worker/time-limit.ts';
import { latin1 } from '../../support/worker-fixtures.ts';
import { WorkerOfTest } from '../../support/worker-stage.ts';

const at = epochMs(1_000);
const first = attemptIdOf('work', 0, 0);

describe('the time that an attempt keeps to stop in order', () => {
  it.each([
    [900_000, 20_000, 5_000],
    [200_000, 20_000, 5_000],
    [60_000, 6_000, 3_000],
    [3_000, 300, 150],
    [0, 0, 0],
  ])('of %d ms is %d, of which %d are for its operator', (remaining, spare, grace) => {
    expect(timeLimitOf(later(at, durationMs(remaining)), at)).toMatchObject({ spare, grace });
  });

  it('is none where its environment lasts as long as it needs', () => {
    expect(timeLimitOf(undefined, at)).toBeUndefined();
  });
});

describe('an environment that is woken when its time is nearly up', () => {
  // 900 s, of which 20 are spare.
  it.each([
    [880_000, 'OutOfTime'],
    [889_000, 'OutOfTime'],
    [891_000, 'PlaceTaken'],
    [1_200_000, 'PlaceTaken'],
  ])('after %d ms is told: %s', async (wokenMs, name) => {
    let now = at;
    const clock = {
      now: () => now,
      sleep: () => {
        now = later(at, durationMs(wokenMs));
        return Promise.resolve();
      },
    };
    const told = await new Promise<Error>((resolve) => {
      startTimeLimit(clock, timeLimitOf(later(at, durationMs(900_000)), at), resolve);
    });
    expect(told.name).toBe(name);
  });
});

describe('the grace of user code that is ordered to stop', () => {
  it.each([
    [5_000, 10_000, 1_000],
    [5_000, 2_000, 200],
    [150, 10_000, 150],
  ])('is, of %d ms and with reports every %d ms, %d', (usual, reportMs, ordered) => {
    expect(graceOf(durationMs(usual), reportMs)).toEqual({ usual, ordered });
  });
});

describe('an attempt whose environment is about to end', () => {
  it('stops itself as out of time with 20 s to spare, says so, and leaves nothing', async () => {
    const worker = new WorkerOfTest();
    const begun = Promise.withResolvers<undefined>();
    const ended = worker.run(
      {
        output: 'unsorted',
        run: async ({ output, signal }) => {
          await output.write(latin1('k\tv\n'));
          begun.resolve(undefined);
          await new Promise((resolve) => {
            signal.addEventListener('abort', resolve);
          });
        },
      },
      0,
      { endsAt: later(worker.clock.now(), durationMs(900_000)), invocation: 'request-1' },
    );
    await begun.promise;
    await worker.clock.advance(879_000);
    expect(await worker.attempt(first)).toMatchObject({ state: 'running', invocation: 'request-1' });
    await worker.clock.advance(2_000);
    expect(await ended).toBe('failed');
    expect(await worker.attempt(first)).toMatchObject({
      state: 'failed',
      failure: { cause: 'timeout', message: "it stopped itself 20 s before its environment's time was up" },
    });
    expect((await worker.leftovers()).data).toEqual([]);
  });

  it('does not wait for an operator that does not stop', async () => {
    const worker = new WorkerOfTest();
    const begun = Promise.withResolvers<undefined>();
    const ended = worker.run(
      {
        run: () => {
          begun.resolve(undefined);
          return new Promise(() => undefined);
        },
      },
      0,
      { endsAt: later(worker.clock.now(), durationMs(30_000)) },
    );
    await begun.promise;
    // 27 s of work, 1.5 s of grace, and as much to clean up.
    for (let passed = 0; passed < 29_000; passed += 500) await worker.clock.advance(500);
    expect(await ended).toBe('failed');
    expect((await worker.attempt(first))?.failure?.cause).toBe('timeout');
  });

  it('is out of time by itself, and cancelled where it was told so before', async () => {
    const worker = new WorkerOfTest();
    const begun = Promise.withResolvers<undefined>();
    const ended = worker.run(
      {
        run: ({ signal }) =>
          new Promise((resolve) => {
            signal.addEventListener('abort', () => {
              resolve();
            });
            begun.resolve(undefined);
          }),
      },
      0,
      { endsAt: later(worker.clock.now(), durationMs(900_000)) },
    );
    await begun.promise;
    await worker.attempts.orderCancel(worker.space, first);
    await worker.clock.advance(5_000);
    expect(await ended).toBe('cancelled');
  });

  it('is done where it is done in time', async () => {
    const worker = new WorkerOfTest();
    const extra = { endsAt: later(worker.clock.now(), durationMs(900_000)) };
    expect(await worker.run({ run: () => Promise.resolve() }, 0, extra)).toBe('done');
  });
});
