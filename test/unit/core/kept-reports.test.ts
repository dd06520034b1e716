import { describe, expect, it } from 'vitest';
import { readBy } from '../../../src/core/estimate/progress-rate.ts';
import type { ProgressReport } from '../../../src/core/model/job-view.ts';
import { reportsAround } from '../../../src/core/model/progress-shape.ts';
import { keepReport } from '../../../src/core/model/progress-history.ts';

/** What is kept of a task that reports each ten seconds. */
function kept(count: number, bytesAfter: (ms: number) => number): readonly ProgressReport[] {
  const reports: ProgressReport[] = [];
  for (let workedMs = 10_000; workedMs <= count * 10_000; workedMs += 10_000)
    keepReport(reports, { workedMs, bytesRead: bytesAfter(workedMs) });
  return reports;
}

const lastLevel = 25;

describe('reports kept of one attempt', () => {
  it('tell for ever when all was read, and when a slow start was over', () => {
    const readEarly = kept(500, (ms) => Math.min(1_000, ms / 20));
    expect(readEarly).toHaveLength(24);
    expect(reportsAround(readEarly, 1_000, lastLevel)?.after.workedMs).toBe(20_000);
    const slowStart = kept(500, (ms) => (ms <= 40_000 ? 1 : Math.min(1_000, (ms - 40_000) / 1_000)));
    expect(readBy(slowStart, 40_000)).toBe(1);
    expect(readBy(slowStart, 540_000)).toBe(500);
    expect(readBy(slowStart, 4_000_000)).toBe(1_000);
  });

  // Its progress is uneven by more than it does between two reports.
  it('tell when all was read of one that stands still from then on, however uneven its progress was before', () => {
    const uneven = kept(200, (ms) =>
      ms >= 400_000 ? 1_000 : Math.min(999, ms / 400 + (ms % 50_000) / 1_000),
    );
    expect(uneven).toHaveLength(24);
    expect(reportsAround(uneven, 1_000, lastLevel)?.after.workedMs).toBe(400_000);
  });

  it('are the newest in full', () => {
    const even = kept(100, (ms) => ms / 1_000);
    expect(even.slice(-12).map(({ workedMs }) => workedMs / 10_000)).toEqual([
      89, 90, 91, 92, 93, 94, 95, 96, 97, 98, 99, 100,
    ]);
  });
});
