import { describe, expect, it } from 'vitest';
import type { JobId } from '../../../../src/contracts/ids.ts';
import { epochMs } from '../../../../src/contracts/units.ts';
import { type Holding, type Ledger, moved } from '../../../../src/core/capacity/ledger.ts';
import { grantFree, shareSlots, stated } from '../../../../src/core/capacity/share-slots.ts';

const idOf = (name: string): JobId => `${name}-000000000000` as JobId;

const holding = (fields: Partial<Holding>): Holding => ({
  wanted: 0,
  weight: 1,
  since: epochMs(0),
  beat: 1,
  epoch: 1,
  slots: 0,
  held: fields.slots ?? 0,
  ...fields,
});

const ledgerOf = (totalSlots: number, jobs: Readonly<Record<string, Partial<Holding>>>): Ledger => ({
  totalSlots,
  holdings: new Map(Object.entries(jobs).map(([name, fields]) => [idOf(name), holding(fields)])),
});

/** Slots of each job, and what it may be using where that is more. */
function shared(ledger: Ledger, mostChanges = 100): Readonly<Record<string, number | readonly number[]>> {
  const after = moved(ledger, shareSlots(ledger, { totalSlots: ledger.totalSlots, mostChanges }));
  return Object.fromEntries(
    [...after.holdings].map(([id, { slots, held }]) => [
      id.split('-')[0] ?? '',
      held > slots ? [slots, held] : slots,
    ]),
  );
}

describe('sharing slots out', () => {
  it('gives all what they want where there is room', () => {
    expect(shared(ledgerOf(100, { a: { wanted: 60 }, b: { wanted: 40 } }))).toEqual({ a: 60, b: 40 });
  });

  it('gives what was freed to who is owed most, whoever asks', () => {
    const ledger = ledgerOf(10, { a: { wanted: 20, slots: 9 }, b: { wanted: 5 } });
    expect(shared(ledger)).toEqual({ a: [5, 9], b: 1 });
  });

  it('leaves what runs alone, and parts what is free meanwhile among all that are owed', () => {
    const ledger = ledgerOf(100, { a: { wanted: 200, slots: 80 }, b: { wanted: 200 }, c: { wanted: 200 } });
    expect(shared(ledger)).toEqual({ a: [34, 80], b: 10, c: 10 });
  });

  it('goes by weight', () => {
    expect(shared(ledgerOf(90, { a: { wanted: 90, weight: 2 }, b: { wanted: 90 } }))).toEqual({
      a: 60,
      b: 30,
    });
  });

  it('gives a job what it is guaranteed before others share the rest', () => {
    const jobs = { a: { wanted: 90, guaranteed: 50 }, b: { wanted: 90 }, c: { wanted: 90 } };
    expect(shared(ledgerOf(90, jobs))).toEqual({ a: 50, b: 20, c: 20 });
  });

  it('keeps no guarantee of what is not wanted, nor makes a share less for it', () => {
    const jobs = { a: { wanted: 10, guaranteed: 50 }, b: { wanted: 90 }, c: { wanted: 90, guaranteed: 20 } };
    expect(shared(ledgerOf(90, jobs))).toEqual({ a: 10, b: 40, c: 40 });
  });

  it('parts what there is among guarantees that are more together', () => {
    const jobs = {
      a: { wanted: 90, guaranteed: 90 },
      b: { wanted: 90, guaranteed: 90 },
      c: { wanted: 90 },
      d: { wanted: 90, guaranteed: 10 },
    };
    expect(shared(ledgerOf(90, jobs))).toEqual({ a: 40, b: 40, c: 0, d: 10 });
  });

  it('gives what becomes free to a guarantee first, and stops nothing that runs for it', () => {
    const jobs = { a: { wanted: 90, slots: 80 }, b: { wanted: 90, guaranteed: 60 }, c: { wanted: 90 } };
    expect(shared(ledgerOf(90, jobs))).toEqual({ a: [15, 80], b: 10, c: 0 });
    // Of those whose grants change at once, the guaranteed are first.
    expect(shared(ledgerOf(20, { a: { wanted: 9 }, b: { wanted: 9, slots: 1, guaranteed: 9 } }), 1)).toEqual({
      a: 0,
      b: 9,
    });
  });

  it('grants nothing while more runs than there is', () => {
    const ledger = ledgerOf(50, { a: { wanted: 60, slots: 60 }, b: { wanted: 10 } });
    expect(shared(ledger)).toEqual({ a: [40, 60], b: 0 });
  });

  it('gives one that comes back what it may have without taking it for free', () => {
    const back = stated(undefined, {
      wanted: 100,
      weight: 1,
      since: epochMs(0),
      beat: 1,
      epoch: 1,
      live: 80,
    });
    expect(back).toMatchObject({ slots: 0, held: 80 });
    const ledger = ledgerOf(100, { a: back, b: { wanted: 100, slots: 100, since: epochMs(1) } });
    expect(shared(ledger)).toEqual({ a: [50, 80], b: [50, 100] });
  });

  it('changes no more jobs at once than it is told to, those that have least first', () => {
    const jobs = { a: { wanted: 9, slots: 2 }, b: { wanted: 9 }, c: { wanted: 9, slots: 1 } };
    expect(shared(ledgerOf(27, jobs), 2)).toEqual({ a: 2, b: 9, c: 9 });
  });

  it('first come, first served gives what is free to who asks', () => {
    const ledger = ledgerOf(10, { a: { wanted: 20, slots: 6 }, b: { wanted: 5 } });
    const after = moved(ledger, grantFree(ledger, idOf('a'), 10));
    expect(after.holdings.get(idOf('a'))).toMatchObject({ slots: 10, held: 10 });
    expect(grantFree(after, idOf('b'), 10).changes.size).toBe(0);
  });
});

describe('what a job says of itself', () => {
  const words = { wanted: 10, weight: 1, since: epochMs(0), beat: 2, epoch: 1 };

  it('lowers its grant to what it wants, and never raises it', () => {
    expect(stated(holding({ slots: 30 }), { ...words, live: 0 })).toMatchObject({ slots: 10, held: 10 });
    expect(stated(holding({ slots: 3 }), { ...words, live: 3 })).toMatchObject({ slots: 3, held: 3 });
  });

  it('counts what runs beyond its grant until that has ended', () => {
    expect(stated(holding({ slots: 5, held: 9 }), { ...words, live: 8 })).toMatchObject({
      slots: 5,
      held: 8,
    });
    expect(stated(holding({ slots: 5, held: 9 }), { ...words, live: 2 })).toMatchObject({
      slots: 5,
      held: 5,
    });
  });
});
