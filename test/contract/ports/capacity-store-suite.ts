import { describe, expect, it } from 'vitest';
import {
  type Holding,
  type Ledger,
  type Move,
  noBid,
  type SlotBid,
} from '../../../src/core/capacity/ledger.ts';
import type { JobId } from '../../../src/contracts/ids.ts';
import type { CapacityStore } from '../../../src/ports/capacity-store.ts';
import { at, freshJobId } from './builders.ts';

const said = (fields: Partial<Holding> = {}): Holding => ({
  wanted: 9,
  weight: 1,
  since: at(0),
  beat: 1,
  epoch: 1,
  slots: 0,
  held: 0,
  ...fields,
});

/** Sets a job's slots to as many more as that. */
const adding =
  (jobId: JobId, slots: number) =>
  ({ holdings, totalSlots }: Ledger): Move<number> => {
    const own = holdings.get(jobId);
    if (own === undefined) return { answer: 0, totalSlots, changes: new Map() };
    const after = { ...own, slots: own.slots + slots, held: own.slots + slots };
    return { answer: after.slots, totalSlots: 100, changes: new Map([[jobId, after]]) };
  };

/** What every store of the ledger of slots must do. `make` gives one of an empty ledger for each process. */
export function describeCapacityStore(
  name: string,
  make: () => (() => CapacityStore) | Promise<() => CapacityStore>,
): void {
  describe(`${name} as the store of the ledger of slots`, () => {
    it('takes down what a job says, and what rules change, and gives it back', async () => {
      const store = (await make())();
      const a = freshJobId();
      expect(await store.own(a)).toBeUndefined();
      expect(await store.tell(a, undefined, said())).toBe('told');
      expect(await store.change(adding(a, 4))).toMatchObject({ answer: 4 });
      expect(await store.own(a)).toEqual(said({ slots: 4, held: 4 }));
      expect(await store.load()).toEqual({
        totalSlots: 100,
        holdings: new Map([[a, said({ slots: 4, held: 4 })]]),
      });
    });

    it('takes nothing that was said on what is so no more, and the same thing twice', async () => {
      const store = (await make())();
      const a = freshJobId();
      await store.tell(a, undefined, said());
      expect(await store.tell(a, undefined, said())).toBe('told');
      expect(await store.tell(a, undefined, said({ beat: 7 }))).toBe('stale');
      await store.change(adding(a, 4));
      expect(await store.tell(a, said(), said({ beat: 2 }))).toBe('stale');
      expect(await store.tell(a, said({ slots: 4, held: 5 }), said({ beat: 2 }))).toBe('stale');
      expect(await store.tell(a, said({ slots: 4, held: 4, beat: 3 }), said({ beat: 2 }))).toBe('stale');
      expect(await store.tell(a, said({ slots: 4, held: 4 }), said({ beat: 2, slots: 3, held: 4 }))).toBe(
        'told',
      );
      expect(await store.own(a)).toMatchObject({ beat: 2, slots: 3, held: 4 });
    });

    it('keeps backups that were admitted, and a guarantee, and takes no word that has not seen them', async () => {
      const store = (await make())();
      const [a, b] = [freshJobId(), freshJobId()];
      const admitting = ({ holdings, totalSlots }: Ledger): Move<undefined> => {
        const changes = new Map([...holdings].map(([id, own]) => [id, { ...own, backups: 3 }] as const));
        return { answer: undefined, totalSlots, changes };
      };
      await store.tell(a, undefined, said({ guaranteed: 7, tokens: 5_000_000_000 }));
      await store.tell(b, undefined, said({ backups: 1 }));
      await store.change(admitting);
      expect(await store.own(a)).toEqual(said({ guaranteed: 7, tokens: 5_000_000_000, backups: 3 }));
      expect(await store.own(b)).toEqual(said({ backups: 3 }));
      expect(await store.tell(a, said(), said({ beat: 2 }))).toBe('stale');
      expect(await store.tell(b, said({ backups: 1 }), said({ backups: 1, beat: 2 }))).toBe('stale');
      expect(await store.tell(b, said({ backups: 3 }), said({ backups: 0, beat: 2 }))).toBe('told');
      await store.change(admitting);
      const all = [...(await store.load()).holdings.values()].map(({ backups }) => backups);
      expect(all).toEqual([3, 3]);
    });

    it('keeps a bid until the job bids anew or takes it back, whatever it says and others change', async () => {
      const open = await make();
      const [store, other] = [open(), open()];
      const [a, b] = [freshJobId(), freshJobId()];
      const bidding =
        (bid: SlotBid) =>
        ({ holdings, totalSlots }: Ledger): Move<undefined> => {
          const own = holdings.get(a) ?? said();
          return { answer: undefined, totalSlots, changes: new Map([[a, { ...own, guaranteed: 3, bid }]]) };
        };
      const bid: SlotBid = {
        asks: 3,
        left: [
          [1, 90_000.5],
          [3, 30_000],
        ],
        utility: [
          [-1_000, 1],
          [60_000, -100.5],
        ],
      };
      const another = { ...bid, asks: 5 };
      await store.tell(a, undefined, said());
      await store.tell(b, undefined, said());
      await store.change(bidding(bid));
      expect(await other.own(a)).toEqual(said({ guaranteed: 3, bid }));
      await other.change(adding(b, 2));
      await other.change(adding(a, 4));
      const held = said({ guaranteed: 3, bid, slots: 4, held: 4 });
      expect(await store.tell(a, held, { ...held, beat: 2 })).toBe('told');
      expect((await other.load()).holdings.get(a)).toEqual({ ...held, beat: 2 });
      await store.change(bidding(another));
      expect((await other.own(a))?.bid).toEqual(another);
      await store.change(bidding(noBid));
      expect((await other.own(a))?.bid).toEqual(noBid);
      await other.change(adding(a, 1));
      expect((await store.load()).holdings.get(a)).toMatchObject({ slots: 5, bid: noBid });
    });

    it('strikes out who has said nothing since, and nobody else', async () => {
      const store = (await make())();
      const [a, b] = [freshJobId(), freshJobId()];
      await store.tell(a, undefined, said());
      await store.tell(b, undefined, said());
      await store.tell(a, said(), said({ beat: 2 }));
      expect(await store.strike(a, said())).toBe('stale');
      expect(await store.strike(b, said())).toBe('struck');
      expect(await store.tell(b, said(), said({ beat: 2 }))).toBe('stale');
      expect(await store.strike(b, said())).toBe('stale');
      expect([...(await store.load()).holdings.keys()]).toEqual([a]);
      await store.remove(a);
      await store.remove(a);
      expect((await store.load()).holdings.size).toBe(0);
    });

    it('lets each of many changes, of many processes, see those before it', async () => {
      const open = await make();
      const processes = [open(), open(), open()];
      const a = freshJobId();
      await processes[0]?.tell(a, undefined, said());
      const answers = await Promise.all(
        Array.from(
          { length: 30 },
          (_, index) => processes[index % 3]?.change(adding(a, 1)) ?? Promise.resolve('busy' as const),
        ),
      );
      const slots = answers.map((changed) => (changed === 'busy' ? 0 : changed.answer));
      expect(slots.toSorted((x, y) => x - y)).toEqual(Array.from({ length: 30 }, (_, index) => index + 1));
      expect(await processes[1]?.own(a)).toMatchObject({ slots: 30 });
    });
  });
}
