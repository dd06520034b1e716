import { describe, expect, it, vi } from 'vitest';
import { DynamoDbUnavailableError, type Engine } from '../../../src/local/dynamodb/engine.ts';
import { RenewedEngine } from '../../../src/local/dynamodb/renewed-engine.ts';

/** Engines that answer with their own number, and calls to `Slow` only when they are let. */
class Engines {
  readonly events: string[] = [];
  readonly waiting: (() => void)[] = [];
  readonly exits: (() => void)[] = [];
  started = 0;
  failsToStart = false;

  start = (): Promise<Engine> => {
    if (this.failsToStart) return Promise.reject(new DynamoDbUnavailableError('no'));
    const number = ++this.started;
    this.events.push(`start ${String(number)}`);
    let exit: () => void = () => undefined;
    const exited = new Promise<void>((resolve) => {
      exit = resolve;
    });
    this.exits.push(exit);
    return Promise.resolve({
      pid: number,
      exited,
      perform: async (operation) => {
        if (operation === 'Slow') await new Promise<void>((resolve) => this.waiting.push(resolve));
        return { status: 200, body: String(number) };
      },
      close: () => {
        this.events.push(`close ${String(number)}`);
        exit();
        return Promise.resolve();
      },
    });
  };
}

const nothing = Buffer.from('{}');
const isSettled = async (promise: Promise<unknown>): Promise<boolean> =>
  Promise.race([promise.then(() => true), new Promise<false>((resolve) => setImmediate(resolve, false))]);

describe('an engine whose process is replaced after so many calls', () => {
  it('answers each call, whichever process is there, and tells of no end', async () => {
    const engines = new Engines();
    const engine = await RenewedEngine.start(engines.start, { calls: 3 });
    const answers: string[] = [];
    for (let call = 0; call < 8; call++) answers.push((await engine.perform('Get', nothing)).body);
    expect(answers.join('')).toBe('11122233');
    expect(engine.pid).toBe(3);
    expect(engines.events).toEqual(['start 1', 'close 1', 'start 2', 'close 2', 'start 3']);
    expect(await isSettled(engine.exited)).toBe(false);
    await engine.close();
    expect(await isSettled(engine.exited)).toBe(true);
  });

  it('lets calls end that are open, and has those that come meanwhile wait', async () => {
    const engines = new Engines();
    const engine = await RenewedEngine.start(engines.start, { calls: 1 });
    const slow = engine.perform('Slow', nothing);
    expect((await engine.perform('Get', nothing)).body).toBe('1');
    const late = engine.perform('Get', nothing);
    expect(await isSettled(late)).toBe(false);
    expect(engines.events).toEqual(['start 1']);
    for (const go of engines.waiting) go();
    expect([(await slow).body, (await late).body]).toEqual(['1', '2']);
  });

  it('puts it off where a call does not end', async () => {
    const engines = new Engines();
    const engine = await RenewedEngine.start(engines.start, { calls: 1, patienceMs: 1 });
    const slow = engine.perform('Slow', nothing);
    expect((await engine.perform('Get', nothing)).body).toBe('1');
    expect((await engine.perform('Get', nothing)).body).toBe('1');
    for (const go of engines.waiting) go();
    expect((await slow).body).toBe('1');
    expect((await engine.perform('Get', nothing)).body).toBe('2');
  });

  it('starts another where one has ended by itself', async () => {
    const engines = new Engines();
    const engine = await RenewedEngine.start(engines.start, { calls: 10, pauseMs: 1 });
    for (const answer of ['2', '3', '4', '5', '6', '7']) {
      engines.exits.at(-1)?.();
      await isSettled(engine.exited);
      expect((await engine.perform('Get', nothing)).body).toBe(answer);
    }
    expect(await isSettled(engine.exited)).toBe(false);
    await engine.close();
    expect(engines.started).toBe(7);
  });

  it('does so too where one ends while it waits for a call that does not end', async () => {
    const engines = new Engines();
    const engine = await RenewedEngine.start(engines.start, { calls: 1, patienceMs: 1, pauseMs: 1 });
    const slow = engine.perform('Slow', nothing);
    await engine.perform('Get', nothing);
    engines.exits[0]?.();
    expect((await engine.perform('Get', nothing)).body).toBe('2');
    for (const go of engines.waiting) go();
    await slow;
  });

  it('tells of the end once none starts, or several have ended without an answer', async () => {
    const engines = new Engines();
    const engine = await RenewedEngine.start(engines.start, { calls: 1, pauseMs: 1 });
    engines.failsToStart = true;
    await engine.perform('Get', nothing);
    await engine.exited;

    engines.failsToStart = false;
    const other = await RenewedEngine.start(engines.start, { calls: 10, pauseMs: 1 });
    const before = engines.started;
    for (let end = 0; end < 5; end++) {
      engines.exits.at(-1)?.();
      await vi.waitFor(async () => {
        expect(engines.started > before + end || (await isSettled(other.exited))).toBe(true);
      });
    }
    await other.exited;
    expect(engines.started).toBe(before + 4);
    // What comes later is answered by the process that is gone: it does not wait for another.
    expect((await other.perform('Get', nothing)).body).toBe(String(before + 4));
  });

  it('does not wait to start another once it is to end', async () => {
    const engines = new Engines();
    const engine = await RenewedEngine.start(engines.start, { calls: 10, pauseMs: 3_600_000 });
    engines.exits[0]?.();
    await isSettled(engine.exited);
    await engine.close();
    expect(engines.events).toEqual(['start 1', 'close 1']);
  });

  it('starts no process any more once it is to end', async () => {
    const engines = new Engines();
    const engine = await RenewedEngine.start(engines.start, { calls: 1 });
    const slow = engine.perform('Slow', nothing);
    await engine.perform('Get', nothing);
    const closed = engine.close();
    for (const go of engines.waiting) go();
    await Promise.all([slow, closed]);
    expect(engines.events).toEqual(['start 1', 'close 1']);
  });
});
