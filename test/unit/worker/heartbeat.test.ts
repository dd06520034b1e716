import { describe, expect, it } from 'vitest';
import { reportAfterMs } from '../../../src/worker/heartbeat.ts';

describe('reportAfterMs', () => {
  it.each([
    [0, 500],
    [2_000, 500],
    [4_000, 1_000],
    [20_000, 5_000],
    [40_000, 10_000],
    [900_000, 10_000],
  ])('after %d ms of an attempt waits %d ms, with a heartbeat of 10 s', (ranMs, waitMs) => {
    expect(reportAfterMs(ranMs, 10_000)).toBe(waitMs);
  });

  it('never waits longer than the heartbeat', () => {
    expect(reportAfterMs(0, 300)).toBe(300);
    expect(reportAfterMs(60_000, 300)).toBe(300);
  });

  it('hardly reports more often than every 10 s in 15 minutes', () => {
    let reports = 0;
    for (let at = 0; at <= 900_000; at += reportAfterMs(at, 10_000)) reports += 1;
    // 90 at a fixed rhythm.
    expect(reports).toBeLessThan(110);
  });
});
