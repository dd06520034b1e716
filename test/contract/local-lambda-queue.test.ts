import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { queuePauseMs } from '../../src/local/lambda/queue-pause.ts';
import { decode, GATED, useLocalLambda } from './local-lambda-support.ts';

const { stack, fixture, start, invoke, logged, until } = useLocalLambda();

const gate = (name: string): string => join(stack.root, `gate-${name}`);
const open = (name: string): void => {
  writeFileSync(gate(name), '');
};
const send = (id: string, functionName = 'work'): Promise<unknown> =>
  invoke(functionName, { id, gate: gate(id) }, { InvocationType: 'Event' });
const started = (): string[] => stack.lines.flatMap(({ line }) => /started (\w+)/.exec(line)?.[1] ?? []);

describe('the queue of asynchronous events, as Lambda keeps it', () => {
  it('pauses from a second, twice as long each time, to five minutes', () => {
    expect([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 100].map(queuePauseMs)).toEqual([
      1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000, 256_000, 300_000, 300_000,
    ]);
  });

  it('tries an event that found no room again after its pause, each time a longer one, and not when room appears', async () => {
    const pauses: number[] = [];
    await start([fixture('work', GATED)], {
      maxConcurrency: 1,
      // Real pauses, a hundredth as long.
      throttledPauseMs: (times) => {
        pauses.push(queuePauseMs(times));
        return queuePauseMs(times) / 100;
      },
    });
    await send('first');
    await logged('started first');
    await send('second');
    await until(() => pauses.length === 0 || started().length === 1);
    // It is throttled again and again, while the first one holds the only environment.
    while (pauses.length < 4) await new Promise((resolve) => setTimeout(resolve, 5));
    expect(pauses.slice(0, 4)).toEqual([1_000, 2_000, 4_000, 8_000]);
    open('first');
    await logged('started second');
    open('second');
    expect(started()).toEqual(['first', 'second']);
    expect(stack.dropped).toEqual([]);
  });

  it('leaves what pauses where it is while room appears, and serves who comes then', async () => {
    await start([fixture('work', GATED)], { maxConcurrency: 1, throttledPauseMs: () => 600_000 });
    await send('first');
    await logged('started first');
    await send('waits');
    open('first');
    // The answer of a function leaves room for whoever comes next: a synchronous call does not wait for the queue.
    for (;;) {
      try {
        open('direct');
        await invoke('work', { id: 'direct', gate: gate('direct') });
        break;
      } catch (cause) {
        if (!(cause instanceof Error) || cause.name !== 'TooManyRequestsException') throw cause;
      }
    }
    expect(started()).toEqual(['first', 'direct']);
  });

  it('drops an event that grows too old while it pauses, and tells whoever is to be told', async () => {
    const told = `exports.handler = async ({ requestContext }) => console.log('told ' + requestContext.condition);`;
    await start(
      [fixture('work', GATED, { maxEventAgeMs: 3_000, onFailure: 'told' }), fixture('told', told)],
      {
        maxConcurrency: 2,
        throttledPauseMs: () => 100_000,
      },
    );
    await send('first');
    await send('second');
    await logged('started ', 2);
    await send('third');
    await until(() => stack.dropped.length > 0);
    expect(stack.dropped).toMatchObject([{ functionName: 'work', reason: 'too-old' }]);
    open('first');
    open('second');
    expect(started().toSorted()).toEqual(['first', 'second']);
  });

  it('holds a function to the concurrency that is reserved for it, whatever room there is besides', async () => {
    const other = `exports.handler = async () => 'here';`;
    await start([fixture('work', GATED, { reservedConcurrency: 2 }), fixture('api', other)], {
      maxConcurrency: 20,
      throttledPauseMs: () => 50,
    });
    for (const id of ['a', 'b', 'c']) await send(id);
    await logged('started ', 2);
    expect(decode(await invoke('api'))).toBe('here');
    expect(started()).toHaveLength(2);
    for (const id of ['a', 'b', 'c']) open(id);
    await logged('started ', 3);
  });
});
