import { expect, it } from 'vitest';
import { MemoryCapacityStore } from '../../../src/adapters/memory/memory-capacity-store.ts';
import { RuledCapacityLedger } from '../../../src/app/capacity-ledger.ts';
import { StoreUnavailableError } from '../../../src/contracts/errors.ts';
import type { JobId } from '../../../src/contracts/ids.ts';
import { durationMs, epochMs } from '../../../src/contracts/units.ts';
import type { CapacityRule, SlotBid } from '../../../src/core/capacity/ledger.ts';
import type { Changed } from '../../../src/ports/capacity-store.ts';

/** A store that takes until the next turn of the loop for a change, counts them, and may be away. */
class SlowStore extends MemoryCapacityStore {
  changes = 0;
  isAway = false;

  override async change<T>(rule: CapacityRule<T>): Promise<Changed<T>> {
    this.changes += 1;
    await new Promise((resolve) => setImmediate(resolve));
    if (this.isAway) throw new StoreUnavailableError('away', {});
    return super.change(rule);
  }
}

const jobs = Array.from({ length: 40 }, (_, index) => `job-${String(index).padStart(12, '0')}` as JobId);
const bid: SlotBid = {
  asks: 4,
  left: [
    [1, 40_000],
    [4, 10_000],
  ],
  utility: [
    [0, 1],
    [60_000, 1],
    [120_000, 0],
  ],
};
const contextOf = (index: number) => ({
  totalSlots: 100,
  now: epochMs(1_000_000),
  length: durationMs(60_000),
  live: 0,
  since: epochMs(index),
  epoch: 1,
});

it('decides bids that come while others are decided together, and each gets its own answer', async () => {
  const store = new SlowStore();
  const ledger = new RuledCapacityLedger(store);
  for (const [index, jobId] of jobs.entries())
    await ledger.resize(jobId, 0, { ...contextOf(index), guaranteed: 1 });
  store.changes = 0;
  const answers = await Promise.all(jobs.map((jobId, index) => ledger.bid(jobId, bid, contextOf(index))));
  // The first by itself, then 25, then the rest.
  expect(store.changes).toBe(3);
  expect(answers.every((answer) => typeof answer === 'number' && answer >= 1 && answer <= 4)).toBe(true);
  const { grants } = await ledger.view();
  const guaranteed = jobs.map((jobId) => grants[jobId]?.guaranteed ?? 0);
  expect(guaranteed.reduce((sum, each) => sum + each, 0)).toBeLessThanOrEqual(100);
  expect(guaranteed.slice(-14)).toEqual(answers.slice(-14));
});

it('tells all of them where the store is away, and goes on with the next', async () => {
  const store = new SlowStore();
  const ledger = new RuledCapacityLedger(store);
  store.isAway = true;
  const some = jobs.slice(0, 5);
  const told = await Promise.allSettled(some.map((jobId, index) => ledger.bid(jobId, bid, contextOf(index))));
  expect(told.map(({ status }) => status)).toEqual(some.map(() => 'rejected'));
  store.isAway = false;
  expect(await ledger.bid(some[0] ?? ('' as JobId), bid, contextOf(0))).toBe(4);
});
