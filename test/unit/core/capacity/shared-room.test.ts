import { describe, expect, it } from 'vitest';
import type { JobId } from '../../../../src/contracts/ids.ts';
import { fairRoom, type RoomClaim } from '../../../../src/core/capacity/shared-room.ts';

const use = (running: number, owed: number, held = 0) => ({ running, starting: 0, late: held, held, owed });
const sharesOf = (total: number, claims: readonly RoomClaim[]): number[] => [
  ...fairRoom(total, new Map(claims.map((claim, index) => [`job-${index}` as JobId, claim]))).values(),
];

describe('fairRoom', () => {
  it('gives each what it can use where there is enough', () => {
    expect(sharesOf(20, [use(2, 3), use(0, 4), use(1, 0)])).toEqual([5, 4, 1]);
  });

  it('shares what is short max-min fairly: small wants first, the rest alike', () => {
    expect(sharesOf(10, [use(0, 100), use(0, 2), use(0, 100)])).toEqual([4, 2, 4]);
  });

  it('gives what rounding leaves over to the first of those that want as much', () => {
    expect(sharesOf(3, [use(0, 4), use(0, 4)])).toEqual([2, 1]);
    expect(sharesOf(2, [use(0, 4), use(0, 4), use(0, 4)])).toEqual([1, 1, 0]);
  });

  it('counts what runs and what is held for the late as used, so that who has much is not given more', () => {
    expect(sharesOf(8, [use(7, 90), use(0, 4)])).toEqual([4, 4]);
    expect(sharesOf(4, [use(1, 0, 2), use(0, 9)])).toEqual([2, 2]);
  });

  it('gives nothing of nothing', () => {
    expect(sharesOf(0, [use(0, 4)])).toEqual([0]);
    expect(sharesOf(5, [])).toEqual([]);
  });

  it('keeps one for each job that has none of its own where all is promised, of half of all at the most', () => {
    const own = { ...use(0, 200), guaranteed: 60 };
    const others = (count: number) => Array.from({ length: count }, () => use(0, 50));
    expect(sharesOf(10, [own, ...others(2)])).toEqual([8, 1, 1]);
    expect(sharesOf(10, [own, ...others(9)])).toEqual([5, 1, 1, 1, 1, 1, 0, 0, 0, 0]);
    expect(sharesOf(10, [own, use(0, 0)])).toEqual([10, 0]);
    expect(sharesOf(100, [own, ...others(45)]).slice(0, 2)).toEqual([60, 1]);
    expect(sharesOf(1, [own, ...others(1)])).toEqual([1, 0]);
  });

  it('gives what is guaranteed first, as far as it is wanted, and shares the rest by weight', () => {
    const own = { ...use(10, 90), guaranteed: 60 };
    expect(sharesOf(100, [own, use(50, 50), use(40, 60)])).toEqual([60, 20, 20]);
    expect(sharesOf(100, [{ ...use(10, 5), guaranteed: 60 }, use(0, 100)])).toEqual([15, 85]);
    expect(sharesOf(100, [{ ...use(0, 500), weight: 4 }, use(0, 500)])).toEqual([80, 20]);
  });
});
