import { describe, expect, it } from 'vitest';
import type { JobId } from '../../../src/contracts/ids.ts';
import { createRng, type Rng } from '../../../src/lib/rng.ts';
import type { CapacityLedger, CapacityView } from '../../../src/app/capacity-ledger.ts';
import { at, freshJobId, seconds } from './builders.ts';
import { watched } from '../../support/watching.ts';

const total = 200;
/** β = 10 %, τ = 80 %. */
const context = (nowS: number) => ({
  totalSlots: total,
  now: at(nowS),
  length: seconds(60),
  budgetSlots: 20,
  ceilingSlots: 160,
});
/** All or nothing: one unit. */
const whole = (charge: number, besideSlots = 0, phase = 'map') => ({
  phase,
  unitSlots: charge,
  leastUnits: 1,
  mostUnits: 1,
  besideSlots,
});

/** The sums are those of the grants, and within the ceilings. */
function expectSound({ usedSlots, cloneSlots, grants }: CapacityView): void {
  const held = Object.values(grants);
  expect(usedSlots).toBe(held.reduce((sum, { slots }) => sum + slots, 0));
  const charged = held.flatMap(({ clones }) => Object.values(clones ?? {}));
  expect(cloneSlots).toBe(charged.reduce((sum, slots) => sum + slots, 0));
  expect(usedSlots).toBeLessThanOrEqual(total);
  expect(cloneSlots).toBeLessThanOrEqual(20);
}

/** What every capacity ledger must do with clones. `make` gives an empty one. */
export function describeCloneAdmission(
  name: string,
  make: () => CapacityLedger | Promise<CapacityLedger>,
): void {
  describe(`${name} as the ledger of clones`, () => {
    it('admits a phase with its slots in one step, and shows the charge', async () => {
      const ledger = await make();
      const a = freshJobId();
      expect(await ledger.admitClones(a, whole(12, 3), context(0))).toEqual({
        units: 1,
        usedSlots: 0,
        cloneSlots: 0,
      });
      expect(await ledger.view()).toEqual({
        totalSlots: 200,
        usedSlots: 15,
        cloneSlots: 12,
        grants: { [a]: { slots: 15, clones: { map: 12 } } },
      });
    });

    it('admits up to the budget and up to the ceiling of use, and refuses one slot more, changing nothing', async () => {
      const ledger = await make();
      const [a, b, c] = [freshJobId(), freshJobId(), freshJobId()];
      await ledger.admitClones(a, whole(12), context(0));
      const before = await ledger.view();
      expect(await ledger.admitClones(b, whole(9), context(0))).toEqual({
        units: 0,
        reason: 'clone-budget',
        usedSlots: 12,
        cloneSlots: 12,
      });
      expect(await ledger.view()).toEqual(before);
      await ledger.resize(c, 145, context(0));
      expect(await ledger.admitClones(b, whole(4), context(0))).toEqual({
        units: 0,
        reason: 'utilization',
        usedSlots: 157,
        cloneSlots: 12,
      });
      expect((await ledger.admitClones(b, whole(3), context(0))).units).toBe(1);
      expect(await ledger.view()).toMatchObject({ usedSlots: 160, cloneSlots: 15 });
    });

    it('admits what fits where parts are of use', async () => {
      const ledger = await make();
      const request = { phase: 'map', unitSlots: 3, leastUnits: 2, mostUnits: 30, besideSlots: 10 };
      expect((await ledger.admitClones(freshJobId(), request, context(0))).units).toBe(6);
      expect(await ledger.view()).toMatchObject({ usedSlots: 28, cloneSlots: 18 });
      expect(await ledger.admitClones(freshJobId(), request, context(0))).toMatchObject({
        units: 0,
        reason: 'clone-budget',
      });
    });

    it('answers alike when a phase asks again, and charges it once', async () => {
      const ledger = await make();
      const a = freshJobId();
      const first = await ledger.admitClones(a, whole(12), context(0));
      expect(await ledger.admitClones(a, whole(12), context(5))).toEqual(first);
      expect(await ledger.view()).toMatchObject({ usedSlots: 12, cloneSlots: 12 });
      expect((await ledger.admitClones(a, whole(8, 12, 'reduce'), context(6))).units).toBe(1);
      expect(await ledger.view()).toMatchObject({
        usedSlots: 20,
        cloneSlots: 20,
        grants: { [a]: { clones: { map: 12, reduce: 8 } } },
      });
    });

    it.each(['constructor', 'toString', 'hasOwnProperty'])(
      'takes a phase named %s for one like any other',
      async (phase) => {
        const ledger = await make();
        const [a, b] = [freshJobId(), freshJobId()];
        await ledger.releaseClones(a, phase, 0);
        expect(await ledger.admitClones(a, { ...whole(12, 0, phase), jobTasks: 50 }, context(0))).toEqual({
          units: 1,
          usedSlots: 0,
          cloneSlots: 0,
        });
        await ledger.releaseClones(a, phase, 9);
        const held = await ledger.view();
        expect(held).toMatchObject({ usedSlots: 12, cloneSlots: 9 });
        expect(Object.entries(held.grants[a]?.clones ?? {})).toEqual([[phase, 9]]);
        const small = { ...whole(15, 0, phase), jobTasks: 2 };
        expect((await ledger.admitClones(b, small, context(1))).victims).toMatchObject([{ phase, slots: 9 }]);
        expect(Object.keys(await ledger.preemptions(a))).toEqual([phase]);
        expect(Object.entries(await ledger.preemptions(b))).toEqual([]);
        await ledger.releaseClones(a, phase, 0);
        expect(Object.entries(await ledger.preemptions(a))).toEqual([]);
        await ledger.release(a);
        await ledger.release(b);
        expect(await ledger.view()).toEqual({ totalSlots: 200, usedSlots: 0, cloneSlots: 0, grants: {} });
      },
    );

    it('charges nothing again for clones that have ended since', async () => {
      const ledger = await make();
      const a = freshJobId();
      await ledger.admitClones(a, whole(12), context(0));
      await ledger.releaseClones(a, 'map', 6);
      const before = await ledger.view();
      expect((await ledger.admitClones(a, whole(12), context(5))).units).toBe(0);
      expect((await ledger.admitClones(a, whole(3), context(5))).units).toBe(2);
      expect(await ledger.view()).toEqual(before);
    });

    it('lowers a charge as clones end, never raises it, and keeps it through renewals', async () => {
      const ledger = await make();
      const a = freshJobId();
      await ledger.releaseClones(a, 'map', 0);
      await ledger.admitClones(a, whole(12), context(0));
      for (const keep of [7, 12, 7, 9]) await ledger.releaseClones(a, 'map', keep);
      await ledger.releaseClones(a, 'other', 0);
      expect(await ledger.resize(a, 9, context(10))).toBe(9);
      expect(await ledger.view()).toMatchObject({
        usedSlots: 9,
        cloneSlots: 7,
        grants: { [a]: { clones: { map: 7 } } },
      });
      await ledger.releaseClones(a, 'map', 0);
      await ledger.releaseClones(a, 'map', 0);
      expect(await ledger.view()).toEqual({
        totalSlots: 200,
        usedSlots: 9,
        cloneSlots: 0,
        grants: { [a]: { slots: 9 } },
      });
    });

    it('gives clones back with the grant: on release, and when its job is struck out', async () => {
      const ledger = await make();
      const [a, b, c, d] = [freshJobId(), freshJobId(), freshJobId(), freshJobId()];
      await ledger.admitClones(a, whole(5), context(0));
      await ledger.admitClones(b, whole(6), context(0));
      await ledger.admitClones(c, whole(7), context(0));
      await ledger.release(a);
      await ledger.release(a);
      expect(await ledger.view()).toMatchObject({ usedSlots: 13, cloneSlots: 13 });
      for (const nowS of [15, 30, 45, 60, 75])
        expect((await ledger.admitClones(d, whole(14), context(nowS))).units).toBe(0);
      expect(await ledger.admitClones(d, whole(14), context(75.001))).toEqual({
        units: 1,
        usedSlots: 0,
        cloneSlots: 0,
      });
      expect(await ledger.view()).toMatchObject({
        usedSlots: 14,
        cloneSlots: 14,
        grants: { [d]: { clones: { map: 14 } } },
      });
    });

    it('keeps a charge while its job has no room and holds no slots, until its clones have ended', async () => {
      const ledger = await make();
      const [a, b] = [freshJobId(), freshJobId()];
      const idle = (nowS: number) => ({ ...context(nowS), live: 0 });
      await ledger.admitClones(a, whole(12), idle(0));
      expect(await ledger.resize(a, 0, idle(0))).toBe(0);
      expect(await ledger.resize(a, 0, idle(1))).toBe(0);
      expect(await ledger.admitClones(b, whole(9), context(1))).toMatchObject({
        ...{ units: 0, reason: 'clone-budget' },
      });
      expect((await ledger.view()).grants).toEqual({ [a]: { slots: 0, clones: { map: 12 } } });
      expect(await ledger.resize(a, 12, idle(2))).toBe(12);
      await ledger.resize(a, 0, idle(3));
      await ledger.releaseClones(a, 'map', 0);
      expect(await ledger.resize(a, 0, idle(4))).toBe(0);
      expect(await ledger.view()).toEqual({ totalSlots: 200, usedSlots: 0, cloneSlots: 0, grants: {} });
      expect((await ledger.admitClones(b, whole(9), context(5))).units).toBe(1);
    });

    it('takes no word of a scheduler that was replaced', async () => {
      const ledger = await make();
      const a = freshJobId();
      const of = (epoch: number, nowS: number, live: number) => ({ ...context(nowS), epoch, live });
      await ledger.resize(a, 40, of(1, 0, 0));
      await ledger.forget(a);
      expect(await ledger.resize(a, 90, of(2, 1, 90))).toBe(90);
      const held = { totalSlots: 200, usedSlots: 90, cloneSlots: 0, grants: { [a]: { slots: 90 } } };
      expect(await ledger.view()).toEqual(held);
      // It has nothing to run, or clones to begin with, as far as it knows.
      await ledger.forget(a);
      expect(await ledger.resize(a, 0, of(1, 2, 0))).toBe(0);
      expect(await ledger.admitClones(a, whole(4), of(1, 2, 0))).toMatchObject({ units: 0 });
      expect(await ledger.view()).toEqual(held);
      expect((await ledger.admitClones(a, whole(4, 86), of(2, 3, 90))).units).toBe(1);
      const cloned = { usedSlots: 90, cloneSlots: 4, grants: { [a]: { slots: 90, clones: { map: 4 } } } };
      await ledger.releaseClones(a, 'map', 0, { epoch: 1 });
      expect(await ledger.view()).toMatchObject(cloned);
      await ledger.releaseClones(a, 'map', 0, { epoch: 2 });
      expect(await ledger.view()).toEqual(held);
    });

    it('neither overspends nor leaks, whatever fifty schedulers do at once and wherever they die', async () => {
      const ledger = await make();
      const jobs = Array.from({ length: 50 }, () => freshJobId());
      const admitted = await watched(
        async () => {
          expectSound(await ledger.view());
        },
        () =>
          Promise.all(
            jobs.map((jobId, index) => runScheduler(ledger, jobId, createRng(`scheduler ${index}`))),
          ),
      );
      expect(admitted.filter(Boolean).length).toBeGreaterThan(0);
      // Those that died have said nothing: time alone takes their clones back.
      const late = freshJobId();
      for (let nowS = 15; nowS < 200; nowS += 15)
        await ledger.admitClones(late, whole(10_000), context(nowS));
      expect((await ledger.admitClones(late, whole(20), context(500))).units).toBe(1);
      await ledger.release(late);
      expect(await ledger.view()).toEqual({ totalSlots: 200, usedSlots: 0, cloneSlots: 0, grants: {} });
    });
  });
}

/** A scheduler's dealings for one job, which end wherever it dies. Answers whether it had clones admitted. */
async function runScheduler(ledger: CapacityLedger, jobId: JobId, rng: Rng): Promise<boolean> {
  let admitted = false;
  const dies = (): boolean => rng.next() < 0.1;
  for (const phase of ['map', 'reduce']) {
    const charge = 2 + Math.floor(rng.next() * 4);
    const { units } = await ledger.admitClones(jobId, whole(charge, 0, phase), context(1));
    if (units > 0) admitted = true;
    if (dies()) return admitted;
    if (units === 0) await ledger.resize(jobId, 2, context(2));
    for (let keep = charge - 1; keep >= 0; keep--) {
      await ledger.releaseClones(jobId, phase, keep);
      if (dies()) return admitted;
      if (rng.next() < 0.3) await ledger.resize(jobId, keep + 1, context(3));
    }
  }
  await ledger.release(jobId);
  return admitted;
}
