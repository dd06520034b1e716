import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MemoryAttemptStore } from '../../../src/adapters/memory/memory-attempt-store.ts';
import { MemoryClock } from '../../../src/adapters/memory/memory-clock.ts';
import { LaunchQueue, type QueuedLaunch } from '../../../src/app/launch-queue.ts';
import type { AttemptId, JobId } from '../../../src/contracts/ids.ts';
import type { Worker } from '../../../src/contracts/job-spec.ts';
import { durationMs } from '../../../src/contracts/units.ts';
import type { LaunchOutcome, LaunchRequest } from '../../../src/ports/launcher.ts';

const space = { jobId: 'words-0123456789ab' as JobId, shards: 1 };
const idOf = (task: number): AttemptId => `map/${String(task)}/0` as AttemptId;

/** A queue, its host, and what the host was asked for. */
class Bench {
  readonly clock = new MemoryClock();
  readonly attempts = new MemoryAttemptStore();
  readonly asked: { readonly id: AttemptId; readonly at: number }[] = [];
  readonly batches: number[] = [];
  mayBegin = true;
  mostAtOnce = 0;
  /** How long a call takes for each launch in it. */
  launchMs = 0;
  answer: (id: AttemptId) => Omit<LaunchOutcome, 'attemptId'> = () => ({ outcome: 'accepted' });
  readonly queue: LaunchQueue;
  private underWay = 0;

  constructor() {
    const { clock, attempts } = this;
    this.queue = new LaunchQueue(
      {
        ...{ clock, attempts, mayBegin: () => this.mayBegin },
        launcher: {
          // As the product's: RunTask takes 20 a second after a burst of 100.
          terms: (kind) => ({
            waits: kind === 'lambda',
            rate: kind === 'lambda' ? { perS: 1_000, burst: 1_000 } : { perS: 20, burst: 100 },
          }),
          launch: (requests) => this.launch(requests),
          stop: () => Promise.resolve(undefined),
        },
      },
      space,
    );
  }

  add(task: number, kind: Worker['kind'], more: Partial<QueuedLaunch> = {}): void {
    const payload = { ...space, attemptId: idOf(task), stageKey: 'k', inputs: [], heartbeatMs: 1_000 };
    const request = (): LaunchRequest => ({ payload, kind, size: 'small' });
    this.queue.add(idOf(task), { kind, request, isWanted: () => true, ...more });
  }

  async recorded(): Promise<readonly AttemptId[]> {
    return (await this.attempts.all(space)).attempts.map(({ attemptId }) => attemptId);
  }

  private async launch(requests: readonly LaunchRequest[]): Promise<readonly LaunchOutcome[]> {
    this.batches.push(requests.length);
    this.underWay += 1;
    this.mostAtOnce = Math.max(this.mostAtOnce, this.underWay);
    const outcomes: LaunchOutcome[] = [];
    for (const { payload } of requests) {
      if (this.launchMs > 0) await this.clock.sleep(durationMs(this.launchMs));
      this.asked.push({ id: payload.attemptId, at: this.clock.now() });
      outcomes.push({ attemptId: payload.attemptId, ...this.answer(payload.attemptId) });
    }
    this.underWay -= 1;
    return outcomes;
  }
}

const upTo = (count: number): number[] => Array.from({ length: count }, (_, index) => index);

describe('a launch queue', () => {
  it('is not done while a launch was refused that was not made since, also once that is known', async () => {
    const bench = new Bench();
    bench.answer = (id) => ({ outcome: id === idOf(1) ? 'throttled' : 'accepted' });
    bench.add(0, 'lambda');
    bench.add(1, 'lambda');
    bench.queue.pump();
    await bench.queue.settled();
    expect(bench.queue.isDone).toBe(false);
    expect(bench.queue.take()).toHaveLength(2);
    // Whoever enters now finds its record, and nothing that tells it from a launch that was made.
    expect(bench.queue.isDone).toBe(false);
    bench.answer = () => ({ outcome: 'accepted' });
    bench.add(1, 'lambda');
    await bench.clock.advance(10_000); // A pause after a refusal.
    bench.queue.pump();
    await bench.queue.settled();
    expect(bench.queue.isDone).toBe(true);
  });

  it('makes launches in order, forty of Lambda in a call and ten of Fargate, two calls of a kind at once', async () => {
    const bench = new Bench();
    bench.launchMs = 10;
    for (const task of upTo(200)) bench.add(task, task < 100 ? 'lambda' : 'fargate');
    bench.queue.pump();
    await bench.clock.advance(60_000);
    const made = bench.asked.map(({ id }) => id);
    expect(new Set(made).size).toBe(200);
    expect(Math.max(...bench.batches)).toBe(40);
    expect(bench.mostAtOnce).toBeLessThanOrEqual(4);
    expect(bench.queue.take()).toHaveLength(200);
    expect(bench.queue.take()).toEqual([]);
    expect(bench.queue.size).toBe(0);
  });

  it('lets nobody wait: 400 RunTasks of 100 ms are made beside ticks, at the rate that the service takes', async () => {
    const bench = new Bench();
    bench.launchMs = 100;
    for (const task of upTo(400)) bench.add(task, 'fargate');
    const began = bench.clock.now();
    bench.queue.pump(); // Answers at once: no time passes but by `advance`.
    expect(bench.clock.now()).toBe(began);
    const news = [];
    for (let tick = 1; bench.asked.length < 400 && tick < 120; tick++) {
      await bench.clock.advance(1_000);
      const taken = bench.queue.take();
      // Each is stamped with when its call was made, and not with when it was decided on.
      for (const { at } of taken) expect(at).toBeGreaterThanOrEqual(began);
      news.push(...taken);
      bench.queue.pump();
      // After a burst of 100, twenty a second: so many may have been asked for by now.
      expect(bench.asked.length).toBeLessThanOrEqual(100 + 20 * tick);
    }
    await bench.clock.advance(5_000);
    expect(new Set([...news, ...bench.queue.take()].map(({ attemptId }) => attemptId)).size).toBe(400);
    const stamps = new Set(news.map(({ at }) => at));
    expect(stamps.size).toBeGreaterThan(10);
  });

  it('drops what is not wanted any more when it is its turn, without a record', async () => {
    const bench = new Bench();
    const cancelled = new Set<number>();
    for (const task of upTo(300)) bench.add(task, 'fargate', { isWanted: () => !cancelled.has(task) });
    bench.queue.pump();
    for (const task of upTo(300).slice(200)) cancelled.add(task);
    for (let second = 0; second < 60; second++) {
      await bench.clock.advance(1_000);
      bench.queue.pump();
    }
    expect(bench.asked.length).toBe(200);
    expect(await bench.recorded()).toHaveLength(200);
    expect(bench.queue.size).toBe(0);
  });

  it('begins nothing once its scheduler may not, and goes on where it may again', async () => {
    const bench = new Bench();
    bench.mayBegin = false;
    for (const task of upTo(10)) bench.add(task, 'lambda');
    bench.queue.pump();
    await bench.clock.advance(60_000);
    expect(bench.asked).toEqual([]);
    expect(await bench.recorded()).toEqual([]);
    bench.mayBegin = true;
    bench.queue.pump();
    await bench.clock.advance(1_000);
    expect(bench.asked).toHaveLength(10);
  });

  it('launches nothing after it slept over the records of its launches, until it may again', async () => {
    const bench = new Bench();
    const create = bench.attempts.create.bind(bench.attempts);
    const thawed = Promise.withResolvers<undefined>();
    bench.attempts.create = async (...args) => {
      const outcome = await create(...args);
      await thawed.promise;
      return outcome;
    };
    for (const task of upTo(3)) bench.add(task, 'lambda');
    bench.queue.pump();
    await bench.clock.advance(60_000);
    bench.mayBegin = false; // Its lease has run out: another has taken the job over, and makes what was decided on.
    thawed.resolve(undefined);
    await bench.clock.advance(60_000);
    expect(bench.asked).toEqual([]);
    expect(bench.queue.take()).toEqual([]);
    expect(bench.queue.size).toBe(3);
    // Nobody has taken it over, and its lease is renewed: then nothing is forgotten.
    bench.mayBegin = true;
    bench.queue.pump();
    await bench.clock.advance(1_000);
    expect(bench.asked.map(({ id }) => id)).toEqual([idOf(0), idOf(1), idOf(2)]);
  });

  it('slows down where the service refuses, and never stops', async () => {
    const bench = new Bench();
    bench.answer = () => ({ outcome: 'throttled', message: 'Rate exceeded' });
    let throttled = 0;
    for (const second of upTo(600)) {
      for (const task of upTo(5)) bench.add(5 * second + task, 'fargate');
      bench.queue.pump();
      await bench.clock.advance(1_000);
      const news = bench.queue.take();
      throttled += news.filter(({ takenBack }) => takenBack === undefined).length;
      // What is behind a refusal waits nowhere: it would hold slots that others can use.
      expect(bench.queue.size).toBeLessThanOrEqual(5);
    }
    expect(bench.queue.roomOf('fargate')).toBeLessThanOrEqual(1);
    // A burst before the first answer; then at least one in two seconds, and hardly more.
    expect(throttled).toBeGreaterThanOrEqual(290);
    expect(throttled).toBeLessThan(420);
  });

  it('goes on as fast where there is no answer, which says nothing of how much the host takes', async () => {
    const bench = new Bench();
    bench.answer = () => ({ outcome: 'throttled', isUnanswered: true });
    for (const task of upTo(100)) bench.add(task, 'fargate');
    bench.queue.pump();
    await bench.clock.advance(1_000);
    expect(bench.asked).toHaveLength(100);
    expect(bench.queue.take().filter(({ takenBack }) => takenBack !== undefined)).toEqual([]);
  });

  it('takes back what is behind a refusal of Fargate, but for what another scheduler may have made, and nothing of Lambda', async () => {
    const bench = new Bench();
    bench.launchMs = 10;
    bench.answer = () => ({ outcome: 'throttled' });
    for (const task of upTo(40))
      bench.add(task, 'fargate', { isWanted: () => task !== 30, mayBeMade: () => task === 31 });
    for (const task of upTo(200).slice(100)) bench.add(task, 'lambda');
    bench.queue.pump();
    await bench.clock.advance(2_000);
    const asked = bench.asked.map(({ id }) => id);
    const taken = bench.queue.take().filter(({ takenBack }) => takenBack !== undefined);
    // Two calls of ten were under way at once.
    expect(taken.map(({ attemptId }) => attemptId)).toEqual(
      [...upTo(30).slice(20), ...upTo(40).slice(32)].map(idOf),
    );
    expect(asked).not.toContain(idOf(20));
    expect(asked).toContain(idOf(31));
    expect(bench.queue.roomOf('lambda')).toBe(Infinity);
  });

  it('throws what a launch threw from the next look, and begins nothing more', async () => {
    const bench = new Bench();
    bench.answer = () => {
      throw new Error('our bug');
    };
    bench.add(0, 'lambda');
    bench.queue.pump();
    await bench.clock.advance(10);
    bench.add(1, 'lambda');
    bench.queue.pump();
    await bench.clock.advance(10);
    expect(() => bench.queue.take()).toThrow('our bug');
    expect(bench.asked).toHaveLength(1);
  });

  it('closes once nothing is under way, and begins nothing after', async () => {
    const bench = new Bench();
    bench.launchMs = 1_000;
    for (const task of upTo(100)) bench.add(task, 'lambda');
    bench.queue.pump();
    await bench.clock.advance(10);
    const state = { isClosed: false };
    void bench.queue.close().then(() => (state.isClosed = true));
    await bench.clock.advance(39_000);
    expect(state.isClosed).toBe(false);
    await bench.clock.advance(2_000);
    expect(state.isClosed).toBe(true);
    expect(bench.asked).toHaveLength(80); // The two calls that were under way.
  });

  it('makes each launch once, however often it is added and whatever is asked of it meanwhile', async () => {
    const arbAction = fc.oneof(
      fc.record({ kind: fc.constant('add' as const), task: fc.integer({ min: 0, max: 40 }) }),
      fc.record({ kind: fc.constant('pump' as const), ms: fc.constantFrom(0, 5, 100, 3_000) }),
      fc.record({ kind: fc.constant('sleep' as const), ms: fc.constantFrom(1, 50, 20_000) }),
      fc.record({ kind: fc.constant('allow' as const), mayBegin: fc.boolean() }),
    );
    await fc.assert(
      fc.asyncProperty(
        fc.array(arbAction, { maxLength: 60 }),
        fc.constantFrom(0, 7, 300),
        async (actions, ms) => {
          const bench = new Bench();
          bench.launchMs = ms;
          const added = new Set<number>();
          for (const action of actions) {
            if (action.kind === 'add' && !added.has(action.task)) {
              added.add(action.task);
              bench.add(action.task, action.task % 2 === 0 ? 'lambda' : 'fargate');
              bench.add(action.task, action.task % 2 === 0 ? 'lambda' : 'fargate');
            } else if (action.kind === 'pump') bench.queue.pump();
            else if (action.kind === 'sleep') await bench.clock.advance(action.ms);
            else if (action.kind === 'allow') bench.mayBegin = action.mayBegin;
          }
          bench.mayBegin = true;
          bench.queue.pump();
          await bench.clock.advance(60_000);
          bench.queue.pump();
          await bench.clock.advance(60_000);
          expect(bench.asked.map(({ id }) => id).toSorted()).toEqual([...added].map(idOf).toSorted());
          expect((await bench.recorded()).length).toBe(added.size);
        },
      ),
      { numRuns: 60 },
    );
  });
});
