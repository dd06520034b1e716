import { expect, it } from 'vitest';
import { MemoryAttemptStore } from '../../src/adapters/memory/memory-attempt-store.ts';
import { attemptIdOf, type JobId, taskIdOf } from '../../src/contracts/ids.ts';
import type { Progress } from '../../src/contracts/progress.ts';
import type { TaskResult } from '../../src/contracts/records.ts';
import { epochMs } from '../../src/contracts/units.ts';
import { createRng } from '../../src/lib/rng.ts';
import { EventQueue } from '../../src/sim/event-queue.ts';
import { NodePool } from '../../src/sim/node-pool.ts';
import { ObservedStore } from '../../src/sim/observed-store.ts';
import { VirtualClock } from '../../src/sim/virtual-clock.ts';
import { scenarioOf } from './scenarios.ts';

const space = { jobId: 'job-000000000000' as JobId, shards: 1 };
const first = attemptIdOf('map', 0, 0);
const second = attemptIdOf('map', 0, 1);
const place = { node: 'node-0', zone: 'zone-a' };
const now = epochMs(1);
const progress: Progress = {
  bytesRead: 0,
  bytesTotal: 0,
  recordsIn: 0,
  recordsOut: 0,
  phase: 'init',
  phaseMs: { init: 0, read: 0, compute: 0, write: 0 },
  peakMemoryBytes: 0,
};
const resultOf = (attemptId: typeof first): TaskResult => ({
  taskId: taskIdOf('map', 0),
  attemptId,
  committedAt: now,
  bytesIn: 0,
  bytesOut: 0,
  recordsIn: 0,
  recordsOut: 0,
  counters: {},
});

const observed = (inner: MemoryAttemptStore): ObservedStore =>
  new ObservedStore(inner, {
    onStopOrdered: () => Promise.resolve(),
    onCommitted: () => undefined,
    onKept: () => undefined,
  });

it('breaks the run where two attempts of a task win', async () => {
  class TwoWinners extends MemoryAttemptStore {
    override commit(): Promise<'won' | 'kept' | 'lost'> {
      return Promise.resolve('won');
    }
  }
  const store = observed(new TwoWinners());
  await store.commit(space, resultOf(first));
  await expect(store.commit(space, resultOf(second))).rejects.toThrow(/two results/);
});

it('breaks the run where an attempt is claimed twice', async () => {
  class ClaimsAll extends MemoryAttemptStore {
    override claim(): Promise<'claimed' | 'refused'> {
      return Promise.resolve('claimed');
    }
  }
  const store = observed(new ClaimsAll());
  await store.create(space, first, now);
  await store.claim(space, first, place, now);
  await expect(store.claim(space, first, place, now)).rejects.toThrow(/illegal step/);
});

it('breaks the run where the store has changed an attempt that nobody changed', async () => {
  const inner = new MemoryAttemptStore();
  const store = observed(inner);
  await store.create(space, first, now);
  await store.claim(space, first, place, now);
  await inner.end(space, first, { state: 'failed', progress }, now);
  await expect(store.audit(space)).rejects.toThrow(/changed unseen/);
});

it('accepts a whole life of two attempts', async () => {
  const store = observed(new MemoryAttemptStore());
  for (const attemptId of [first, second]) {
    await store.create(space, attemptId, now);
    expect(await store.claim(space, attemptId, place, now)).toBe('claimed');
    expect(await store.report(space, attemptId, progress, now)).toBe('continue');
  }
  expect(await store.commit(space, resultOf(second))).toBe('won');
  expect(await store.commit(space, resultOf(first))).toBe('lost');
  await store.end(space, second, { state: 'done', progress }, now);
  await store.markLost(space, first, now);
  await store.audit(space);
});

const luck = createRng('places');

it('breaks the run where a slot is given back twice', () => {
  const pool = new NodePool(
    scenarioOf({
      cluster: { nodes: [{ count: 1, slots: 2 }] },
      jobs: [{ policy: 'none', stages: [{ name: 'map', tasks: 1, workMs: 1 }] }],
    }).cluster,
    createRng('test'),
  );
  const slot = pool.take({ luck }, 0);
  expect(slot?.node.name).toBe('node-0');
  expect([...pool.freeSlotsByNode]).toEqual([['node-0', 1]]);
  expect(pool.take({ luck, avoid: new Set(['node-0']) }, 0)).toBeUndefined();
  if (slot === undefined) return;
  pool.release(slot.node, Infinity);
  expect(() => {
    pool.release(slot.node, Infinity);
  }).toThrow(/given back twice/);
});

it('tells the free slots of nodes that are up, by the names that they have now', () => {
  const pool = new NodePool(
    scenarioOf({
      cluster: { nodes: [{ count: 2, slots: 2, elastic: true }], placement: 'warmest' },
      jobs: [{ policy: 'none', stages: [{ name: 'map', tasks: 1, workMs: 1 }] }],
    }).cluster,
    createRng('test'),
  );
  const free = (): unknown => Object.fromEntries(pool.freeSlotsByNode);
  expect(free()).toEqual({ 'node-0': 2, 'node-1': 2 });
  const first = pool.take({ luck }, 0)?.node;
  expect(free()).toEqual({ 'node-0-1': 1, 'node-1': 2 });
  pool.take({ luck }, 0);
  expect(free()).toEqual({ 'node-1': 2 });
  if (first === undefined) return;
  pool.release(first, 1_000);
  expect(free()).toEqual({ 'node-0-1': 1, 'node-1': 2 });
  pool.setUp(first, false);
  expect(free()).toEqual({ 'node-1': 2 });
  pool.setUp(first, true);
  expect(free()).toEqual({ 'node-0-1': 1, 'node-1': 2 });
});

it('gives events back by time, and those of one time as they were planned', () => {
  const queue = new EventQueue();
  const plan = (at: number, subject: string) =>
    queue.schedule(epochMs(at), { kind: 'test', subject, run: () => undefined });
  const taken: string[] = [];
  plan(5, 'c');
  plan(1, 'a');
  const gone = plan(2, 'never');
  plan(5, 'd');
  plan(1, 'b');
  gone.cancelled = true;
  for (let event = queue.pop(); event !== undefined; event = queue.pop()) taken.push(event.subject);
  expect(taken).toEqual(['a', 'b', 'c', 'd']);
  expect(() => plan(4, 'late')).toThrow(/in the past/);
});

it('never turns the clock back', () => {
  const clock = new VirtualClock(new EventQueue());
  clock.advanceTo(epochMs(10));
  expect(clock.now()).toBe(10);
  expect(() => {
    clock.advanceTo(epochMs(9));
  }).toThrow(/backwards/);
});
