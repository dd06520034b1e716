import { describe, expect, it } from 'vitest';
import type { CapacityLedger } from '../../../src/app/capacity-ledger.ts';
import { at, freshJobId, seconds } from './builders.ts';

const TOTAL = 100;
const context = (nowS: number, totalSlots = TOTAL) => ({ totalSlots, now: at(nowS), length: seconds(60) });

/** What every capacity ledger must do. `make` gives an empty one. */
export function describeCapacityLedger(
  name: string,
  make: () => CapacityLedger | Promise<CapacityLedger>,
): void {
  describe(`${name} as a capacity ledger`, () => {
    it('is empty at first', async () => {
      const ledger = await make();
      expect(await ledger.view()).toEqual({ totalSlots: 0, usedSlots: 0, cloneSlots: 0, grants: {} });
    });

    it('grants what is free, then no more, and shows who holds what', async () => {
      const ledger = await make();
      const [a, b, c] = [freshJobId(), freshJobId(), freshJobId()];
      expect(await ledger.resize(a, 70, context(0))).toBe(70);
      expect(await ledger.resize(b, 70, context(1))).toBe(30);
      expect(await ledger.resize(c, 1, context(2))).toBe(0);
      expect(await ledger.view()).toEqual({
        totalSlots: 100,
        usedSlots: 100,
        cloneSlots: 0,
        grants: { [a]: { slots: 70 }, [b]: { slots: 30 } },
      });
    });

    it('shrinks and grows a grant', async () => {
      const ledger = await make();
      const a = freshJobId();
      await ledger.resize(a, 70, context(0));
      expect(await ledger.resize(a, 20, context(10))).toBe(20);
      expect(await ledger.resize(a, 100, context(20))).toBe(100);
      expect(await ledger.resize(a, 100, context(30))).toBe(100);
      expect((await ledger.view()).grants[a]).toEqual({ slots: 100 });
    });

    it('strikes out who has said nothing for a minute under its eyes, and not a moment earlier', async () => {
      const ledger = await make();
      const [a, b] = [freshJobId(), freshJobId()];
      await ledger.resize(a, 90, context(0));
      for (const nowS of [15, 30, 45, 60]) expect(await ledger.resize(b, 50, context(nowS))).toBe(10);
      expect(await ledger.resize(b, 50, context(60.001))).toBe(50);
      expect(Object.keys((await ledger.view()).grants)).toEqual([b]);
    });

    it('takes no gap between two looks for silence, as after a freeze or where a clock was set', async () => {
      const ledger = await make();
      const [a, b] = [freshJobId(), freshJobId()];
      await ledger.resize(a, 90, context(0));
      for (const nowS of [10, 3_600, 7_200, -3_600])
        expect(await ledger.resize(b, 50, context(nowS))).toBe(10);
      expect((await ledger.view()).grants[a]).toEqual({ slots: 90 });
    });

    it('keeps the grant of a job that comes back late and that nobody has struck out', async () => {
      const ledger = await make();
      const a = freshJobId();
      await ledger.resize(a, 90, context(0));
      expect(await ledger.resize(a, 90, context(500))).toBe(90);
      expect((await ledger.view()).usedSlots).toBe(90);
    });

    it('strikes out many that are silent, if need be over several calls', async () => {
      const ledger = await make();
      for (let index = 0; index < 45; index++) await ledger.resize(freshJobId(), 1, context(0));
      const a = freshJobId();
      for (const nowS of [15, 30, 45, 60, 75, 76]) await ledger.resize(a, 100, context(nowS));
      expect(await ledger.resize(a, 100, context(77))).toBe(100);
    });

    it('takes nothing away from a job when the total shrinks below what is used', async () => {
      const ledger = await make();
      const [a, b] = [freshJobId(), freshJobId()];
      await ledger.resize(a, 60, context(0));
      await ledger.resize(b, 30, context(0));
      expect(await ledger.resize(a, 60, context(1, 50))).toBe(60);
      expect(await ledger.resize(a, 80, context(1, 50))).toBe(60);
      expect(await ledger.resize(a, 55, context(1, 50))).toBe(55);
      expect(await ledger.view()).toMatchObject({ totalSlots: 50, usedSlots: 85 });
    });

    it('gives everything back on release, once', async () => {
      const ledger = await make();
      const [a, b] = [freshJobId(), freshJobId()];
      await ledger.release(a);
      await ledger.resize(a, 60, context(0));
      await ledger.resize(b, 40, context(0));
      await ledger.release(a);
      await ledger.release(a);
      expect(await ledger.view()).toMatchObject({ usedSlots: 40, grants: { [b]: { slots: 40 } } });
      expect(await ledger.resize(b, 0, context(1))).toBe(0);
      expect(await ledger.view()).toEqual({ totalSlots: 100, usedSlots: 0, cloneSlots: 0, grants: {} });
    });

    it('never spends more than there is, whatever fifty schedulers do at once', async () => {
      const ledger = await make();
      const old = Array.from({ length: 10 }, () => freshJobId());
      await Promise.all(old.map((jobId) => ledger.resize(jobId, 9, context(0))));
      const jobs = Array.from({ length: 50 }, () => freshJobId());
      const watch = { isOn: true, mostSlots: 0 };
      const watching = (async () => {
        for (let looks = 0; watch.isOn && looks < 10_000; looks++) {
          const { usedSlots, grants } = await ledger.view();
          const held = Object.values(grants).reduce((sum, { slots }) => sum + slots, 0);
          expect(held).toBe(usedSlots);
          watch.mostSlots = Math.max(watch.mostSlots, held);
          await new Promise(setImmediate);
        }
      })();
      const granted = await Promise.all(
        jobs.map(async (jobId, index) => {
          await ledger.resize(jobId, 1 + (index % 7), context(0));
          if (index % 5 === 0) await ledger.release(jobId);
          return [jobId, await ledger.resize(jobId, 3, context(1))] as const;
        }),
      );
      watch.isOn = false;
      await watching;
      const { usedSlots, grants } = await ledger.view();
      expect(watch.mostSlots).toBeLessThanOrEqual(TOTAL);
      expect(usedSlots).toBeLessThanOrEqual(TOTAL);
      for (const [jobId, slots] of granted) expect(grants[jobId]?.slots ?? 0).toBe(slots);
      // Fifty jobs of up to three slots want 150: whatever the order, nearly all hundred are taken in the end.
      expect(usedSlots).toBeGreaterThan(TOTAL / 2);
    });
  });
}
