import { describe, expect, it } from 'vitest';
import type { JobId } from '../../../../src/contracts/ids.ts';
import { epochMs } from '../../../../src/contracts/units.ts';
import { admitClones } from '../../../../src/core/capacity/admit-clones.ts';
import { admitGuarantee, guaranteeStated, reserved } from '../../../../src/core/capacity/guarantees.ts';
import { type Holding, type Ledger, moved } from '../../../../src/core/capacity/ledger.ts';

const idOf = (name: string): JobId => `${name}-000000000000` as JobId;
const ledgerOf = (jobs: Readonly<Record<string, Partial<Holding>>>): Ledger => ({
  totalSlots: 100,
  holdings: new Map(
    Object.entries(jobs).map(([name, fields]): [JobId, Holding] => [
      idOf(name),
      {
        ...{ wanted: 9, weight: 1, since: epochMs(0), beat: 1, epoch: 1, slots: 0 },
        ...{ held: fields.slots ?? 0, ...fields },
      },
    ]),
  ),
});
const asking = (name: string, wanted: number, epoch = 1) => ({
  ...{ jobId: idOf(name), epoch, wanted, totalSlots: 100 },
});

describe('slots that a job asks to be its own', () => {
  it.each([
    [{ a: {} }, 40, 40],
    [{ a: {}, b: { guaranteed: 70 } }, 40, 30],
    [{ a: {}, b: { guaranteed: 70 }, c: { guaranteed: 30 } }, 40, 0],
    [{ a: { guaranteed: 20 }, b: { guaranteed: 70 } }, 40, 30],
    // What it has it keeps, also where there are fewer slots than there were.
    [{ a: { guaranteed: 20 }, b: { guaranteed: 95 } }, 40, 20],
    [{ a: { guaranteed: 50 } }, 40, 50],
    [{ a: {} }, 1_000, 100],
  ])('of %j: %i asked for, %i admitted', (jobs, wanted, expected) => {
    const ledger = ledgerOf(jobs);
    const move = admitGuarantee(ledger, asking('a', wanted));
    expect(move.answer).toBe(expected);
    expect(moved(ledger, move).holdings.get(idOf('a'))?.guaranteed ?? 0).toBe(expected);
  });

  it('are none of a job that is not in the ledger, nor a scheduler that was replaced', () => {
    expect(admitGuarantee(ledgerOf({ b: {} }), asking('a', 1)).answer).toBe(0);
    expect(admitGuarantee(ledgerOf({ a: { guaranteed: 3 } }), asking('a', 9, 0))).toMatchObject({
      answer: 0,
      changes: new Map(),
    });
  });

  it('become fewer by its own word, and never more', () => {
    expect(guaranteeStated(40, 10)).toBe(10);
    expect(guaranteeStated(40, 0)).toBe(0);
    expect(guaranteeStated(40, 90)).toBe(40);
    expect(guaranteeStated(40, undefined)).toBe(40);
    expect(guaranteeStated(undefined, 90)).toBeUndefined();
  });

  it('are kept from the clones of others as far as they stand idle', () => {
    const request = { phase: 'map', unitSlots: 10, leastUnits: 1, mostUnits: 9, besideSlots: 5 };
    const clone = (jobs: Readonly<Record<string, Partial<Holding>>>) =>
      admitClones(
        ledgerOf(jobs),
        { jobId: idOf('a'), epoch: 1, totalSlots: 100, budgetSlots: 100, ceilingSlots: 80 },
        request,
      ).answer;
    expect(clone({ a: {}, b: { slots: 20 } })).toEqual({ units: 5, usedSlots: 20, cloneSlots: 0 });
    // Of 50 that are b's own 30 stand idle.
    expect(clone({ a: {}, b: { slots: 20, guaranteed: 50 } })).toEqual({
      ...{ units: 2, usedSlots: 20, cloneSlots: 0, reservedSlots: 30 },
    });
    expect(clone({ a: {}, b: { slots: 20, guaranteed: 70 } })).toMatchObject({
      ...{ units: 0, reason: 'utilization', usedSlots: 20, reservedSlots: 50 },
    });
    // Its own stand in its way no more than they did.
    expect(clone({ a: { guaranteed: 70 }, b: { slots: 20 } })).toMatchObject({ units: 5 });
  });

  it('are freed for no other job by the end of clones that ran on them', () => {
    const asked = { phase: 'map', unitSlots: 10, leastUnits: 1, mostUnits: 1, besideSlots: 0, jobTasks: 2 };
    const terms = { jobId: idOf('a'), epoch: 1, totalSlots: 100, budgetSlots: 20, ceilingSlots: 40 };
    const clones = { slots: 40, clones: { map: 20 }, addedSlots: { map: 20 }, jobTasks: 50 };
    expect(admitClones(ledgerOf({ a: {}, b: clones }), terms, asked).answer).toMatchObject({
      units: 1,
      victims: [{ jobId: idOf('b'), freedSlots: 20 }],
    });
    expect(
      admitClones(ledgerOf({ a: {}, b: { ...clones, guaranteed: 40 } }), terms, asked).answer,
    ).toMatchObject({ units: 0 });
    expect(
      admitClones(ledgerOf({ a: {}, b: { ...clones, guaranteed: 30 } }), terms, asked).answer,
    ).toMatchObject({ units: 1, victims: [{ freedSlots: 10 }] });
  });

  it('are freed once, of whichever phase of a job the clones are taken', () => {
    const terms = { jobId: idOf('a'), epoch: 1, totalSlots: 100, budgetSlots: 20, ceilingSlots: 20 };
    const asked = { phase: 'map', leastUnits: 1, mostUnits: 1, besideSlots: 5, jobTasks: 2 };
    const held = { slots: 4, clones: { map: 3, sort: 6 }, addedSlots: { map: 4, sort: 4 }, jobTasks: 50 };
    const others = { slots: 10, jobTasks: 1 };
    // The larger charge alone frees all four, though it is the second phase of its job.
    expect(
      admitClones(ledgerOf({ a: {}, b: held, c: others }), terms, { ...asked, unitSlots: 5 }).answer,
    ).toMatchObject({ units: 1, victims: [{ phase: 'sort', freedSlots: 4 }] });
    // Both together free no more.
    expect(
      admitClones(ledgerOf({ a: {}, b: held, c: others }), terms, { ...asked, unitSlots: 6 }).answer,
    ).toMatchObject({ units: 0, reason: 'utilization' });
  });

  it('count as kept only where they are not used', () => {
    const { holdings } = ledgerOf({
      a: { slots: 5, guaranteed: 9 },
      b: { slots: 20, guaranteed: 9 },
      c: { slots: 1, held: 8, guaranteed: 9 },
      d: { slots: 3 },
    });
    expect(reserved(holdings.values())).toBe(4 + 0 + 1 + 0);
  });
});
