import { describe, expect, it } from 'vitest';
import { fairRoom } from '../../../../src/core/capacity/shared-room.ts';

const use = (running: number, owed: number, held = 0) => ({ running, starting: 0, late: held, held, owed });

describe('fairRoom', () => {
  it('gives each what it can use where there is enough', () => {
    expect(fairRoom(20, [use(2, 3), use(0, 4), use(1, 0)])).toEqual([5, 4, 1]);
  });

  it('shares what is short max-min fairly: small wants first, the rest alike', () => {
    expect(fairRoom(10, [use(0, 100), use(0, 2), use(0, 100)])).toEqual([4, 2, 4]);
  });

  it('gives what rounding leaves over to the first of those that want as much', () => {
    expect(fairRoom(3, [use(0, 4), use(0, 4)])).toEqual([2, 1]);
    expect(fairRoom(2, [use(0, 4), use(0, 4), use(0, 4)])).toEqual([1, 1, 0]);
  });

  it('counts what runs and what is held for the late as used, so that who has much is not given more', () => {
    expect(fairRoom(8, [use(7, 90), use(0, 4)])).toEqual([4, 4]);
    expect(fairRoom(4, [use(1, 0, 2), use(0, 9)])).toEqual([2, 2]);
  });

  it('gives nothing of nothing', () => {
    expect(fairRoom(0, [use(0, 4)])).toEqual([0]);
    expect(fairRoom(5, [])).toEqual([]);
  });
});
