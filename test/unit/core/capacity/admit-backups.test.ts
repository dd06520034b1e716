import { describe, expect, it } from 'vitest';
import type { JobId } from '../../../../src/contracts/ids.ts';
import { epochMs } from '../../../../src/contracts/units.ts';
import { admitBackups, backupsStated } from '../../../../src/core/capacity/admit-backups.ts';
import { type Holding, type Ledger, moved } from '../../../../src/core/capacity/ledger.ts';

const idOf = (name: string): JobId => `${name}-000000000000` as JobId;
const ledgerOf = (jobs: Readonly<Record<string, number | undefined>>): Ledger => ({
  totalSlots: 100,
  holdings: new Map(
    Object.entries(jobs).map(([name, backups]): [JobId, Holding] => [
      idOf(name),
      { wanted: 9, weight: 1, since: epochMs(0), beat: 1, epoch: 1, slots: 9, held: 9, backups },
    ]),
  ),
});
const asking = (name: string, wanted: number, cap: number, epoch = 1) => ({
  jobId: idOf(name),
  epoch,
  wanted,
  cap,
  totalSlots: 100,
});

describe('admission of backups under a cap of all jobs', () => {
  it.each([
    // Beside 6 of another job there is room for 4 of 10.
    [{ a: undefined, b: 6 }, 9, 10, 4],
    [{ a: undefined, b: 6 }, 3, 10, 3],
    [{ a: 2, b: 6 }, 9, 10, 4],
    [{ a: undefined, b: 10 }, 1, 10, 0],
    // More run than this policy's cap, of a job whose cap is higher: what it has it keeps.
    [{ a: 2, b: 20 }, 5, 10, 2],
    [{ a: undefined }, 1, 1, 1],
    // Some ahead while no more than half of the cap is taken.
    [{ a: undefined }, 4, 100, 5],
    [{ a: undefined, b: 46 }, 4, 100, 4],
    [{ a: undefined, b: 60 }, 4, 100, 4],
  ])('of %j: %i wanted, %i in all, %i', (jobs, wanted, cap, expected) => {
    const ledger = ledgerOf(jobs);
    const move = admitBackups(ledger, asking('a', wanted, cap));
    expect(move.answer).toBe(expected);
    expect(moved(ledger, move).holdings.get(idOf('a'))?.backups ?? 0).toBe(expected);
    expect(moved(ledger, move).holdings.get(idOf('b'))).toBe(ledger.holdings.get(idOf('b')));
  });

  it('admits none of a job that is not in the ledger, nor to a scheduler that was replaced', () => {
    expect(admitBackups(ledgerOf({ b: 0 }), asking('a', 1, 10))).toMatchObject({ answer: 0 });
    const replaced = admitBackups(ledgerOf({ a: 4 }), asking('a', 5, 10, 0));
    expect(replaced.answer).toBe(0);
    expect(replaced.changes.size).toBe(0);
  });

  it('takes a job at its word for what it needs no more, and counts what runs', () => {
    expect(backupsStated(10, { running: 2, wanted: 4 })).toBe(5);
    expect(backupsStated(10, { running: 0, wanted: 0 })).toBe(0);
    expect(backupsStated(3, { running: 3, wanted: 9 })).toBe(3);
    // It was struck out, and comes back with what runs.
    expect(backupsStated(undefined, { running: 4, wanted: 6 })).toBe(4);
    expect(backupsStated(1, { running: 4, wanted: 6 })).toBe(4);
    expect(backupsStated(undefined, { running: 0, wanted: 6 })).toBeUndefined();
    expect(backupsStated(7, undefined)).toBe(7);
  });
});
