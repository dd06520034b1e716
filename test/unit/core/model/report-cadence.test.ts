import { describe, expect, it } from 'vitest';
import type { AttemptId } from '../../../../src/contracts/ids.ts';
import { firstReportMs, isUnforetold, nextReportMs } from '../../../../src/core/model/report-cadence.ts';

describe('when an attempt reports', () => {
  it.each([
    [0, 750],
    [500, 1_500],
    [2_000, 6_000],
    [4_000, 10_000],
    [900_000, 10_000],
  ])('after %d ms again within %d ms, with a heartbeat of 10 s', (ranMs, waitMs) => {
    expect(nextReportMs(ranMs, 10_000)).toBe(waitMs);
  });

  it('never waits longer than the heartbeat', () => {
    const id = 'map/0/0' as AttemptId;
    expect([firstReportMs(id, 300), nextReportMs(0, 300), nextReportMs(60_000, 300)]).toEqual([
      300, 300, 300,
    ]);
  });

  it('takes at most 7 reports to 60 s, whenever the first comes', () => {
    for (let first = 750; first <= 1_500; first += 10) {
      const reports: number[] = [];
      for (let at = first; at < 60_000; at += nextReportMs(at, 10_000)) reports.push(at);
      expect(reports.length).toBeLessThanOrEqual(7);
    }
  });

  it('spreads the first reports of attempts that begin together, each always at its time', () => {
    const ids = Array.from({ length: 1_000 }, (_, task) => `map/${task}/0` as AttemptId);
    const firsts = ids.map((id) => firstReportMs(id, 10_000));
    expect(ids.map((id) => firstReportMs(id, 10_000))).toEqual(firsts);
    const byTenth = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9].map(
      (tenth) => firsts.filter((ms) => Math.floor((ms - 750) / 75) === tenth).length,
    );
    expect(Math.min(...byTenth)).toBeGreaterThan(50);
    expect(Math.max(...byTenth)).toBeLessThan(200);
  });
});

describe('an attempt that is not where its reports foretell', () => {
  const marks = [
    { ranMs: 10_000, share: 0.2 },
    { ranMs: 20_000, share: 0.4 },
  ] as const;

  it.each([
    [{ ranMs: 25_000, share: 0.5 }, false, 'goes on as before'],
    [{ ranMs: 21_000, share: 0.4 }, false, 'may have halted for a moment'],
    [{ ranMs: 22_000, share: 0.4 }, true, 'is stuck'],
    [{ ranMs: 30_000, share: 0.54 }, true, 'is slower'],
    [{ ranMs: 25_000, share: 0.6 }, true, 'is faster'],
    [{ ranMs: 60_000, share: 1 }, false, 'has read all, and does the rest'],
  ])('%o: %s, for it %s', (now, expected) => {
    expect(isUnforetold(marks, now)).toBe(expected);
  });
});
