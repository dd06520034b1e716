import { describe, expect, it } from 'vitest';
import { hedgedStream, type ByteStream } from '../../../src/adapters/aws/hedged-stream.ts';
import { ReadPace } from '../../../src/adapters/aws/read-pace.ts';
import { RequestHedge } from '../../../src/adapters/aws/request-hedge.ts';
import { HandClock } from '../../support/hand-clock.ts';

const isRefusal = (cause: unknown): boolean => cause === 'SlowDown';

/** Requests of which all are under way at once, the last of them refused. */
async function refusedOnce(pace: ReadPace, requests: number): Promise<void> {
  const ends: (() => void)[] = [];
  const under = Array.from({ length: requests - 1 }, () =>
    pace.request(() => new Promise<void>((resolve) => ends.push(resolve)), isRefusal),
  );
  // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- what S3 says stands for its error
  await pace.request(() => Promise.reject('SlowDown'), isRefusal).catch(() => undefined);
  for (const end of ends) end();
  await Promise.all(under);
}

describe('a read pace that was refused a request', () => {
  it('has room again ten seconds later, and no sooner, for what its window leaves', async () => {
    const clock = new HandClock();
    const pace = new ReadPace(clock);
    expect(pace.hasRoom).toBe(true);
    await refusedOnce(pace, 20);
    expect(pace.window).toBeLessThan(20);
    clock.pass(9_999);
    expect(pace.hasRoom).toBe(false);
    clock.pass(1);
    expect(pace.hasRoom).toBe(true);
    const ends: (() => void)[] = [];
    for (let request = 0; request < Math.floor(pace.window); request++)
      void pace.request(() => new Promise<void>((resolve) => ends.push(resolve)), isRefusal);
    await expect.poll(() => ends.length).toBe(Math.floor(pace.window));
    expect(pace.hasRoom).toBe(false);
    ends[0]?.();
    await expect.poll(() => pace.hasRoom).toBe(true);
    for (const end of ends) end();
  });

  it('counts ten seconds from the last refusal of many', async () => {
    const clock = new HandClock();
    const pace = new ReadPace(clock);
    await refusedOnce(pace, 20);
    clock.pass(6_000);
    await refusedOnce(pace, 2);
    clock.pass(6_000);
    expect(pace.hasRoom).toBe(false);
  });
});

describe('late reads of which none may be asked for again', () => {
  it('leave the second requests of those that may', async () => {
    const clock = new HandClock();
    const hedge = new RequestHedge(clock);
    let begun = 0;
    const streamOf = (next: ByteStream['next']): ByteStream => ({
      next,
      accept: () => undefined,
      stop: () => undefined,
    });
    const ended: ByteStream['next'] = () => Promise.resolve({ done: true, value: undefined });
    const read = async (mayBegin: boolean): Promise<void> => {
      let end = (): void => undefined;
      const first = streamOf(
        () =>
          new Promise(
            (resolve) =>
              (end = () => {
                resolve({ done: true, value: undefined });
              }),
          ),
      );
      const stream = hedgedStream(first, {
        hedge,
        hedgesBefore: 0,
        mayBegin: () => mayBegin,
        beginAnother: () => {
          begun++;
          return streamOf(ended);
        },
        onHedge: () => undefined,
      });
      const step = stream.next();
      clock.pass(1_000);
      // The look at the clock is made before the first stream ends.
      await new Promise(setImmediate);
      end();
      expect((await step).done).toBe(true);
    };
    for (let late = 0; late < 10; late++) await read(false);
    expect(begun).toBe(0);
    for (let late = 0; late < 4; late++) await read(true);
    expect(begun).toBe(4);
  });
});
