import { describe, expect, it } from 'vitest';
import type { JobId } from '../../../src/contracts/ids.ts';
import type { CloneRequest } from '../../../src/core/capacity/clone-admission.ts';
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
/** A whole phase with two copies of each task, of a job of `jobTasks` tasks. */
const sized = (charge: number, jobTasks: number, more: Partial<CloneRequest> = {}): CloneRequest => ({
  phase: 'map',
  unitSlots: charge,
  addedUnitSlots: charge / 2,
  leastUnits: 1,
  mostUnits: 1,
  besideSlots: 0,
  jobTasks,
  ...more,
});

/** Somebody who gets nothing looks at the ledger now and then. */
async function watchUntil(ledger: CapacityLedger, lastS: number, firstS = 15): Promise<void> {
  const watcher = freshJobId();
  for (let nowS = firstS; nowS <= lastS; nowS += 15)
    await ledger.admitClones(watcher, sized(10_000, 100_000), context(nowS));
  await ledger.release(watcher);
}

/** The sums are those of the grants, and within the ceilings. */
function expectSound({ usedSlots, cloneSlots, grants }: CapacityView): void {
  const held = Object.values(grants);
  expect(usedSlots).toBe(held.reduce((sum, { slots }) => sum + slots, 0));
  const charged = held.flatMap(({ clones }) => Object.values(clones ?? {}));
  expect(cloneSlots).toBe(charged.reduce((sum, slots) => sum + slots, 0));
  expect(usedSlots).toBeLessThanOrEqual(total);
  expect(cloneSlots).toBeLessThanOrEqual(20);
  for (const { clones = {}, preempted = {} } of held) {
    expect(Object.keys(clones).filter((phase) => phase in preempted)).toEqual([]);
  }
}

/** What every capacity ledger must do with clones that make room for others. `make` gives an empty one. */
export function describeClonePreemption(
  name: string,
  make: () => CapacityLedger | Promise<CapacityLedger>,
): void {
  describe(`${name} as the ledger of clones that make room`, () => {
    it('takes the clones of a larger job away and grants those of a smaller one, in one step', async () => {
      const ledger = await make();
      const [large, small] = [freshJobId(), freshJobId()];
      await ledger.admitClones(large, sized(14, 100, { besideSlots: 5 }), context(0));
      expect(await ledger.preemptions(large)).toEqual({});
      expect(await ledger.admitClones(small, sized(8, 4, { besideSlots: 1 }), context(10))).toEqual({
        units: 1,
        usedSlots: 19,
        cloneSlots: 14,
        victims: [{ jobId: large, phase: 'map', slots: 14, freedSlots: 7, jobTasks: 100 }],
      });
      // The slots of the victim are its own until it gives them back.
      expect(await ledger.view()).toEqual({
        totalSlots: 200,
        usedSlots: 28,
        cloneSlots: 8,
        grants: {
          [large]: {
            slots: 19,
            preempted: { map: { by: small, byTasks: 4, slots: 14 } },
          },
          [small]: {
            slots: 9,
            clones: { map: 8 },
            jobTasks: 4,
            addedSlots: { map: 4 },
          },
        },
      });
      expect(await ledger.preemptions(large)).toEqual({ map: { by: small, byTasks: 4, slots: 14 } });
      expect(await ledger.preemptions(small)).toEqual({});
    });

    it('takes from the largest first, and from nobody who is as small', async () => {
      const ledger = await make();
      const [large, middle, small] = [freshJobId(), freshJobId(), freshJobId()];
      await ledger.admitClones(middle, sized(6, 20), context(0));
      await ledger.admitClones(large, sized(12, 100), context(0));
      expect((await ledger.admitClones(small, sized(6, 10), context(1))).victims).toMatchObject([
        { jobId: large },
      ]);
      expect(await ledger.view()).toMatchObject({ cloneSlots: 12, usedSlots: 24 });
      const before = await ledger.view();
      expect(await ledger.admitClones(freshJobId(), sized(16, 10), context(2))).toMatchObject({
        units: 0,
        reason: 'clone-budget',
      });
      expect(await ledger.admitClones(freshJobId(), sized(14, 20), context(2))).toMatchObject({ units: 0 });
      expect(await ledger.view()).toEqual(before);
    });

    it('neither takes from nor for a job without a size', async () => {
      const ledger = await make();
      const { jobTasks, ...unsized } = sized(12, 100);
      expect(jobTasks).toBe(100);
      await ledger.admitClones(freshJobId(), unsized, context(0));
      expect(await ledger.admitClones(freshJobId(), sized(10, 1), context(0))).toMatchObject({ units: 0 });
      await ledger.admitClones(freshJobId(), sized(8, 100), context(0));
      expect(await ledger.admitClones(freshJobId(), unsized, context(0))).toMatchObject({ units: 0 });
      expect(await ledger.view()).toMatchObject({ cloneSlots: 20 });
    });

    it('takes several phases of one job, and marks each', async () => {
      const ledger = await make();
      const [large, small] = [freshJobId(), freshJobId()];
      await ledger.admitClones(large, sized(6, 100), context(0));
      await ledger.admitClones(large, sized(12, 100, { phase: 'other', besideSlots: 6 }), context(0));
      expect((await ledger.admitClones(small, sized(20, 4), context(1))).units).toBe(1);
      const view = await ledger.view();
      expectSound(view);
      expect(view).toMatchObject({ usedSlots: 38, cloneSlots: 20 });
      expect(await ledger.preemptions(large)).toEqual({
        map: { by: small, byTasks: 4, slots: 6 },
        other: { by: small, byTasks: 4, slots: 12 },
      });
    });

    it('keeps a mark through late reports and renewals, until its scheduler says that the clones stop', async () => {
      const ledger = await make();
      const [large, small] = [freshJobId(), freshJobId()];
      await ledger.admitClones(large, sized(20, 100), context(0));
      await ledger.admitClones(small, sized(20, 4), context(1));
      // What the victim's scheduler does before it looks: it knows nothing yet.
      await ledger.releaseClones(large, 'map', 17, { addedSlots: 8 });
      expect(await ledger.resize(large, 15, context(30))).toBe(15);
      expect(Object.keys(await ledger.preemptions(large))).toEqual(['map']);
      expect(await ledger.view()).toMatchObject({ usedSlots: 35, cloneSlots: 20 });
      await ledger.releaseClones(large, 'map', 0, { addedSlots: 0 });
      await ledger.releaseClones(large, 'map', 0, { addedSlots: 0 });
      expect(await ledger.preemptions(large)).toEqual({});
      expect((await ledger.view()).grants[large]).toEqual({ slots: 15 });
    });

    it('judges use without what victims give back, which falls as their clones end', async () => {
      const ledger = await make();
      const [large, busy, small] = [freshJobId(), freshJobId(), freshJobId()];
      await ledger.admitClones(large, sized(12, 100), context(0));
      await ledger.resize(busy, 144, context(0));
      // U = 156; six of them are copies beside one of each task: 156 − 6 + 10 = τ·C.
      expect(await ledger.admitClones(small, sized(12, 4), context(0))).toMatchObject({ units: 0 });
      await ledger.releaseClones(large, 'map', 11, { addedSlots: 5 });
      expect(await ledger.admitClones(small, sized(10, 4), context(0))).toMatchObject({
        units: 0,
        reason: 'clone-budget',
      });
      await ledger.resize(busy, 143, context(0));
      expect(await ledger.admitClones(small, sized(10, 4), context(0))).toMatchObject({
        units: 1,
        usedSlots: 155,
        victims: [{ slots: 11, freedSlots: 5 }],
      });
      expect(await ledger.view()).toMatchObject({ usedSlots: 165, cloneSlots: 10 });
    });

    it('answers a phase that asks again alike, and takes nothing more', async () => {
      const ledger = await make();
      const [large, other, small] = [freshJobId(), freshJobId(), freshJobId()];
      await ledger.admitClones(large, sized(10, 100), context(0));
      await ledger.admitClones(other, sized(10, 90), context(0));
      await ledger.admitClones(small, sized(8, 4), context(1));
      const before = await ledger.view();
      expect(await ledger.admitClones(small, sized(8, 4), context(2))).toEqual({
        units: 1,
        usedSlots: 20,
        cloneSlots: 10,
      });
      expect(await ledger.view()).toEqual(before);
    });

    it('admits a phase anew that lost its clones before its scheduler could say that it had them', async () => {
      const ledger = await make();
      const [large, small] = [freshJobId(), freshJobId()];
      await ledger.admitClones(large, sized(14, 100), context(0));
      await ledger.admitClones(small, sized(8, 4), context(1));
      expect(await ledger.admitClones(large, sized(14, 100), context(2))).toMatchObject({ units: 0 });
      expect(Object.keys(await ledger.preemptions(large))).toEqual(['map']);
      await ledger.release(small);
      expect((await ledger.admitClones(large, sized(14, 100), context(3))).units).toBe(1);
      expect(await ledger.preemptions(large)).toEqual({});
      expect(await ledger.view()).toMatchObject({ usedSlots: 14, cloneSlots: 14 });
    });

    it('forgets marks with the grant, and what was taken ends with the grant of who took it', async () => {
      const ledger = await make();
      const [large, small, late] = [freshJobId(), freshJobId(), freshJobId()];
      await ledger.admitClones(large, sized(20, 100), context(0));
      await ledger.admitClones(small, sized(20, 4), context(10));
      await watchUntil(ledger, 60);
      await ledger.resize(late, 1, context(60.001));
      expect(await ledger.preemptions(large)).toEqual({});
      expect(await ledger.view()).toMatchObject({ usedSlots: 21, cloneSlots: 20 });
      // Whoever asks for more finds who is silent; one that keeps what it has looks at nobody.
      await ledger.resize(late, 2, context(70.001));
      expect(await ledger.view()).toMatchObject({ usedSlots: 2, cloneSlots: 0 });
    });

    it('reclaims grants that ran out rather than take from those that have not', async () => {
      const ledger = await make();
      const [large, dead, small] = [freshJobId(), freshJobId(), freshJobId()];
      await ledger.admitClones(dead, sized(10, 200), context(0));
      await watchUntil(ledger, 15);
      await ledger.admitClones(large, sized(10, 100), context(30));
      await watchUntil(ledger, 60, 45);
      const admission = await ledger.admitClones(small, sized(10, 4), context(61));
      expect(admission).toEqual({ units: 1, usedSlots: 10, cloneSlots: 10 });
      expect(Object.keys((await ledger.view()).grants).toSorted()).toEqual([large, small].toSorted());
    });

    it('takes from ten jobs beside many grants that ran out', async () => {
      const ledger = await make();
      const old = Array.from({ length: 30 }, () => freshJobId());
      for (const jobId of old) await ledger.resize(jobId, 1, context(0));
      await watchUntil(ledger, 45);
      const victims = Array.from({ length: 10 }, () => freshJobId());
      for (const [index, jobId] of victims.entries()) {
        await ledger.admitClones(jobId, sized(2, 100 + index), context(50));
      }
      const small = freshJobId();
      expect((await ledger.admitClones(small, sized(20, 4), context(61))).victims).toHaveLength(10);
      const view = await ledger.view();
      expectSound(view);
      expect(view.cloneSlots).toBe(20);
    });

    it('neither overspends nor leaks, whatever fifty schedulers take from each other and wherever they die', async () => {
      const ledger = await make();
      const jobs = Array.from({ length: 50 }, () => freshJobId());
      const tallies = await watched(
        async () => {
          expectSound(await ledger.view());
        },
        () =>
          Promise.all(
            jobs.map((jobId, index) =>
              runScheduler(ledger, jobId, createRng(`preempting scheduler ${index}`)),
            ),
          ),
      );
      // Every phase that was taken is one that was admitted, and nobody learns of more than were taken.
      const sum = (pick: (tally: Tally) => number): number =>
        tallies.reduce((total_, tally) => total_ + pick(tally), 0);
      expect(sum(({ took }) => took)).toBeGreaterThan(0);
      expect(sum(({ lost }) => lost)).toBeGreaterThan(0);
      expect(sum(({ lost }) => lost)).toBeLessThanOrEqual(sum(({ took }) => took));
      // Those that died have said nothing: time alone takes their clones and marks back.
      const late = freshJobId();
      await watchUntil(ledger, 200);
      expect((await ledger.admitClones(late, sized(20, 1_000), context(201))).units).toBe(1);
      await ledger.release(late);
      expect(await ledger.view()).toEqual({ totalSlots: 200, usedSlots: 0, cloneSlots: 0, grants: {} });
    });
  });
}

/** Phases of others that a scheduler took, and of its own that it learnt to have lost. */
interface Tally {
  took: number;
  lost: number;
}

/** A scheduler's dealings for one job, which end wherever it dies. */
async function runScheduler(ledger: CapacityLedger, jobId: JobId, rng: Rng): Promise<Tally> {
  const tally: Tally = { took: 0, lost: 0 };
  const dies = (): boolean => rng.next() < 0.06;
  const jobTasks = 1 + Math.floor(rng.next() * 40);
  for (const phase of ['map', 'reduce']) {
    const charge = 2 * (1 + Math.floor(rng.next() * 5));
    const { units, victims = [] } = await ledger.admitClones(
      jobId,
      sized(charge, jobTasks, { phase }),
      context(1),
    );
    expect(victims.every((victim) => victim.jobTasks > jobTasks)).toBe(true);
    tally.took += victims.length;
    if (dies()) return tally;
    if (units === 0) await ledger.resize(jobId, 2, context(2));
    for (let keep = charge - 1; keep >= 0; keep--) {
      if ((await ledger.preemptions(jobId))[phase] !== undefined) {
        tally.lost += 1;
        if (dies()) return tally;
        await ledger.releaseClones(jobId, phase, 0);
        await ledger.resize(jobId, 1, context(3));
        break;
      }
      await ledger.releaseClones(jobId, phase, keep, { addedSlots: Math.floor(keep / 2) });
      if (dies()) return tally;
      if (rng.next() < 0.3) await ledger.resize(jobId, keep + 1, context(3));
    }
  }
  await ledger.release(jobId);
  return tally;
}
