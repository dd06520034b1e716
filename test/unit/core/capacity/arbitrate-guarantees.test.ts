import { describe, expect, it } from 'vitest';
import type { JobId } from '../../../../src/contracts/ids.ts';
import { epochMs } from '../../../../src/contracts/units.ts';
import { arbitrateBids, type BidAsking } from '../../../../src/core/capacity/arbitrate-guarantees.ts';
import { admitGuarantee, guaranteeOf } from '../../../../src/core/capacity/guarantees.ts';
import {
  type Holding,
  type Ledger,
  moved,
  noBid,
  type SlotBid,
} from '../../../../src/core/capacity/ledger.ts';
import { shareSlots, stated } from '../../../../src/core/capacity/share-slots.ts';
import { createRng } from '../../../../src/lib/rng.ts';

const idOf = (name: string): JobId => `${name}-000000000000` as JobId;
const holding = (fields: Partial<Holding>): Holding => ({
  ...{ wanted: 9, weight: 1, since: epochMs(0), beat: 1, epoch: 1, slots: 0 },
  ...{ held: fields.slots ?? 0, ...fields },
});
const ledgerOf = (jobs: Readonly<Record<string, Partial<Holding>>>): Ledger => ({
  totalSlots: 100,
  holdings: new Map(Object.entries(jobs).map(([name, fields]) => [idOf(name), holding(fields)])),
});
const minute = 60_000;
/** Of so many minutes on one slot, as short on more as there are; each minute after the first ten costs `perMinute`. */
const late = (asks: number, perMinute: number, slotMinutes = 1_000): SlotBid => ({
  asks,
  left: [1, 10, 40, 100].map((slots) => [slots, (slotMinutes * minute) / slots]),
  utility: [
    [0, 0],
    [10 * minute, 0],
    [20 * minute, -10 * perMinute],
  ],
});
const bidOf = (name: string, bid: SlotBid, needed?: number) => ({
  ...{ jobId: idOf(name), epoch: 1, bid, totalSlots: 100, needed },
});
/** One bid by itself. */
function arbitrateGuarantees(ledger: Ledger, asking: BidAsking) {
  const { answer, ...move } = arbitrateBids(ledger, [asking]);
  return { ...move, answer: answer[0] };
}
const guarantees = (ledger: Ledger): Record<string, number> =>
  Object.fromEntries([...ledger.holdings].map(([id, each]) => [id.slice(0, 1), guaranteeOf(each)]));

describe('bids for slots of jobs with deadlines', () => {
  it('are met in full where there is room', () => {
    const ledger = ledgerOf({ a: {}, b: { guaranteed: 50, bid: late(50, 1) } });
    const move = arbitrateGuarantees(ledger, bidOf('a', late(50, 1)));
    expect(move.answer).toBe(50);
    expect(guarantees(moved(ledger, move))).toEqual({ a: 50, b: 50 });
  });

  it('move slots to the job to which they bring more', () => {
    const ledger = ledgerOf({ a: {}, b: { guaranteed: 80, slots: 80, bid: late(80, 1) } });
    const after = moved(ledger, arbitrateGuarantees(ledger, bidOf('a', late(60, 50))));
    expect(guarantees(after)).toEqual({ a: 60, b: 40 });
    // What runs of the other goes on: its grant is as before, until slots are shared out.
    expect(after.holdings.get(idOf('b'))).toMatchObject({ slots: 80, held: 80 });
    const shared = moved(after, shareSlots(after, { totalSlots: 100, mostChanges: 9 }));
    expect(shared.holdings.get(idOf('b'))).toMatchObject({ slots: 9, held: 80 });
  });

  it('leave what a spec has asked for, and a slot for each job without any', () => {
    const ledger = ledgerOf({ a: {}, b: { guaranteed: 30 }, c: {}, d: {} });
    const move = arbitrateGuarantees(ledger, bidOf('a', late(100, 1)));
    expect(guarantees(moved(ledger, move))).toEqual({ a: 68, b: 30, c: 0, d: 0 });
  });

  it('of a new job are refused where too little is left beside what others may need', () => {
    const ledger = ledgerOf({ a: {}, b: { guaranteed: 10, bid: late(60, 1) }, c: { guaranteed: 5 } });
    expect(arbitrateGuarantees(ledger, bidOf('a', late(50, 9), 36))).toMatchObject({ answer: 'refused' });
    expect(arbitrateGuarantees(ledger, bidOf('a', late(50, 9), 36)).changes.size).toBe(0);
    expect(arbitrateGuarantees(ledger, bidOf('a', late(35, 9), 35)).answer).toBe(35);
    // One that has bid before, and died before it could tell so, was taken on.
    const known = ledgerOf({ a: { bid: late(50, 1) }, b: { guaranteed: 90 } });
    expect(arbitrateGuarantees(known, bidOf('a', late(50, 1), 50)).answer).toBe(10);
  });

  it("that are taken back are nobody's, and leave what the spec has asked for", () => {
    const ledger = ledgerOf({
      a: { guaranteed: 60, bid: late(60, 1) },
      b: { guaranteed: 39, bid: late(80, 1) },
    });
    const after = moved(ledger, arbitrateGuarantees(ledger, bidOf('a', noBid)));
    expect(after.holdings.get(idOf('a'))).toMatchObject({ guaranteed: 60, bid: noBid });
    const own = after.holdings.get(idOf('a'));
    const words = { wanted: 9, weight: 1, since: epochMs(0), beat: 2, epoch: 1, live: 9, guaranteed: 5 };
    const said = new Map([...after.holdings, [idOf('a'), stated(own, words)]]);
    const others = moved(
      { ...after, holdings: said },
      arbitrateGuarantees({ ...after, holdings: said }, bidOf('b', late(80, 1), 80)),
    );
    expect(guarantees(others)).toEqual({ a: 5, b: 80 });
  });

  it('that come together are divided once, each with its own answer', () => {
    const ledger = ledgerOf({ a: {}, b: {}, c: {}, d: { epoch: 2 }, e: { guaranteed: 5, bid: late(5, 1) } });
    const asked = [
      bidOf('a', late(60, 50)),
      bidOf('b', late(60, 1), 30),
      // Others ask for 60, 60 and 5: nothing is left for it.
      bidOf('c', late(9, 1), 9),
      bidOf('d', late(9, 1)),
      bidOf('e', noBid),
    ];
    const move = arbitrateBids(ledger, asked);
    // 5 are guaranteed to the last, and one each is left to those that have none: 93 are divided.
    expect(move.answer).toEqual([60, 33, 'refused', 0, 5]);
    expect(guarantees(moved(ledger, move))).toEqual({ a: 60, b: 33, c: 0, d: 0, e: 5 });
    expect(move.changes.get(idOf('e'))?.bid).toEqual(noBid);
  });

  it('change the guarantees of fifty jobs at a time, and promise no more than there is', () => {
    const names = Array.from({ length: 90 }, (_, index) => `job${index}`);
    // The later a job, the more each minute costs; what there is goes to the first, which asks for it anew.
    let ledger = ledgerOf(
      Object.fromEntries(
        names.map((name, index) => [name, { guaranteed: index < 45 ? 2 : 0, bid: late(4, 1 + index) }]),
      ),
    );
    const sums: number[] = [];
    for (let round = 0; round < 4; round++) {
      const move = arbitrateGuarantees(ledger, bidOf('job89', late(4, 200 + round)));
      expect(move.changes.size).toBeLessThanOrEqual(50);
      ledger = moved(ledger, move);
      expect(move.answer).toBe(guaranteeOf(ledger.holdings.get(idOf('job89')) ?? {}));
      sums.push([...ledger.holdings.values()].reduce((sum, each) => sum + guaranteeOf(each), 0));
    }
    expect(Math.max(...sums)).toBeLessThanOrEqual(100);
    // By then each has one slot, and all are given away.
    expect(sums.at(-1)).toBe(100);
    expect(Math.min(...[...ledger.holdings.values()].map(guaranteeOf))).toBe(1);
  });

  it('of a scheduler that was replaced, or a job that is not there, come to nothing', () => {
    const ledger = ledgerOf({ a: { epoch: 2 } });
    expect(arbitrateGuarantees(ledger, bidOf('a', late(9, 1)))).toMatchObject({ answer: 0 });
    expect(arbitrateGuarantees(ledger, bidOf('z', late(9, 1))).changes.size).toBe(0);
  });

  it.each(Array.from({ length: 40 }, (_, seed) => seed))(
    'never promise more than there is, whoever comes, dies or asks for less (seed %i)',
    (seed) => {
      const rng = createRng(`bids/${seed}`);
      const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g'];
      let ledger: Ledger = { totalSlots: 40, holdings: new Map() };
      const pick = (most: number): number => Math.floor(rng.next() * most);
      for (let step = 0; step < 200; step++) {
        const jobId = idOf(names[pick(names.length)] ?? 'a');
        const before = ledger.holdings.get(jobId);
        const holdings = new Map(ledger.holdings);
        const what = rng.next();
        if (what < 0.08) holdings.delete(jobId);
        else if (what < 0.4)
          holdings.set(
            jobId,
            stated(before, {
              ...{ wanted: pick(30), weight: 1 + pick(3), since: epochMs(0), beat: step, epoch: 1 },
              ...{ live: pick(1 + (before?.held ?? 0)), guaranteed: pick(30) },
            }),
          );
        ledger = { ...ledger, holdings };
        const asking = { jobId, epoch: 1, totalSlots: 40 };
        if (what > 0.8) ledger = moved(ledger, shareSlots(ledger, { totalSlots: 40, mostChanges: 9 }));
        else if (what > 0.7) ledger = moved(ledger, admitGuarantee(ledger, { ...asking, wanted: pick(30) }));
        else if (what > 0.4) {
          const bid = rng.next() < 0.2 ? noBid : late(1 + pick(40), rng.next() * 9);
          const needed = rng.next() < 0.3 ? pick(40) : undefined;
          ledger = moved(ledger, arbitrateGuarantees(ledger, { ...asking, bid, needed }));
        }
        let promised = 0;
        for (const each of ledger.holdings.values()) promised += guaranteeOf(each);
        expect(promised).toBeLessThanOrEqual(40);
      }
    },
  );
});
