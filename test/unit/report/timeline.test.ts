import { describe, expect, it } from 'vitest';
import type { ToldAllocation } from '../../../src/contracts/api.ts';
import { epochMs } from '../../../src/contracts/units.ts';
import { drawPlot } from '../../../src/report/plots/draw-plot.ts';
import { oracleOf, timelinePlot } from '../../../src/report/timeline.ts';
import { jobRecord } from './report-records.ts';

/** Ten seconds of a job that has sixteen to end in. */
const job = jobRecord({
  state: 'succeeded',
  endedAt: epochMs(1_010_000),
  deadlineAt: epochMs(1_016_000),
});
const run = (from: number, to: number) => ({
  claimedAt: epochMs(1_000_000 + from),
  endedAt: epochMs(1_000_000 + to),
});
/** Work of 20 s: three beside each other, then one. */
const runs = [run(0, 5_000), run(0, 5_000), run(0, 5_000), run(5_000, 10_000)];
const asked = (at: number, slots: number): ToldAllocation => ({
  at: epochMs(1_000_000 + at),
  slots,
  smoothed: slots,
  reason: 'adjusted',
  facts: {},
});

describe('the slots of a job over time', () => {
  const { series } = timelinePlot(job, runs, { allocations: [asked(500, 3), asked(6_000, 1)], now: 0 });
  const at = (seconds: number) => series[0]?.points.findLast(({ x }) => Number(x) <= seconds)?.y;

  it('are the attempts that ran at each time', () => {
    expect(series[0]?.name).toBe('attempts that ran');
    expect([0, 2, 4.9, 5.1, 9.9, 10].map(at)).toEqual([3, 3, 3, 1, 1, 0]);
  });

  it('beside what was asked for, which holds until the next', () => {
    expect(series[1]).toEqual({
      name: 'asked for',
      points: [
        { x: 0.5, y: 3 },
        { x: 6, y: 3 },
        { x: 6, y: 1 },
        { x: 10, y: 1 },
        { x: 10, y: 1 },
      ],
    });
  });

  it('and beside the oracle: the work over the time until the deadline, rounded up', () => {
    expect(series[2]).toMatchObject({ name: 'oracle' });
    expect(new Set(series[2]?.points.map(({ y }) => y))).toEqual(new Set([2]));
    expect(oracleOf(job, runs, 0)).toBe(2);
    expect(oracleOf({ ...job, deadlineAt: epochMs(1_020_000) }, runs, 0)).toBe(1);
    expect(oracleOf({ ...job, deadlineAt: epochMs(1_001_000) }, runs, 0)).toBe(20);
    expect(oracleOf(jobRecord(), runs, 0)).toBeUndefined();
    expect(oracleOf(job, [], 0)).toBeUndefined();
  });

  it('are drawn without a deadline, before anything has run, and of attempts that never ended', () => {
    const bare = timelinePlot(jobRecord(), [], { allocations: [], now: 1_000_000 });
    expect(bare.series.map(({ name }) => name)).toEqual(['attempts that ran']);
    expect(drawPlot(bare)).toContain('<svg');
    const open = timelinePlot(jobRecord(), [{ claimedAt: epochMs(1_001_000) }, {}], {
      allocations: [],
      now: 1_004_000,
    });
    expect(open.series[0]?.points.at(-1)).toEqual({ x: 4, y: 1 });
  });
});
