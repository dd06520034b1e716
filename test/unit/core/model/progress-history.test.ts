import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Progress } from '../../../../src/contracts/progress.ts';
import type { ProgressReport } from '../../../../src/core/model/job-view.ts';
import {
  courseOf,
  historyOf,
  keepReport,
  KeptProgress,
  ProgressHistory,
  reportsIn,
  withoutCourse,
  withoutHistory,
} from '../../../../src/core/model/progress-history.ts';

const progressOf = (bytesTotal: number, history?: string): Progress => ({
  ...{ bytesRead: 0, bytesTotal, recordsIn: 0, recordsOut: 0, phase: 'read', peakMemoryBytes: 0 },
  phaseMs: { init: 0, read: 0, compute: 0, write: 0 },
  ...(history === undefined ? {} : { history }),
});

describe('how an attempt got on, in its record', () => {
  it('is times and shares in base 36', () => {
    const reports = [
      { workedMs: 1_000, bytesRead: 0 },
      { workedMs: 36_000, bytesRead: 500_000 },
      { workedMs: 780_000, bytesRead: 1_000_000 },
    ];
    expect(historyOf(reports, 1_000_000)).toBe('rs.0 rs0.i00 gpuo.zzz');
    expect(reportsIn('rs.0 rs0.1 gpuo.zzz', 46_655)).toEqual([
      { workedMs: 1_000, bytesRead: 0 },
      { workedMs: 36_000, bytesRead: 1 },
      { workedMs: 780_000, bytesRead: 46_655 },
    ]);
  });

  it('is not told of nothing, nor while it is not known how much there is', () => {
    expect(historyOf([], 1_000)).toBeUndefined();
    expect(historyOf([{ workedMs: 1_000, bytesRead: 10 }], 0)).toBeUndefined();
    expect(reportsIn(undefined, 1_000)).toEqual([]);
    const history = new ProgressHistory();
    expect(history.text).toBeUndefined();
    history.note(1_000, { bytesRead: 10, bytesTotal: 0 });
    expect(history.text).toBeUndefined();
    history.note(2_000, { bytesRead: 20, bytesTotal: 20 });
    expect(history.text).toBe('rs.i00 1jk.zzz');
  });

  it('is left out once it was read', () => {
    expect(withoutHistory(progressOf(1_000, 'rs.0'))).toEqual(progressOf(1_000));
    expect(withoutHistory(progressOf(1_000))).toEqual(progressOf(1_000));
  });

  it('tells its looks beside its reports, which journals keep and the state of a job does not', () => {
    const kept = new KeptProgress();
    expect(kept.texts).toEqual({});
    kept.noteLook(250, { bytesRead: 0, bytesTotal: 1_000 });
    kept.noteLook(1_000, { bytesRead: 500, bytesTotal: 1_000 });
    expect(kept.texts).toEqual({ looks: '6y.0 rs.i00' });
    kept.noteReport(1_000, { bytesRead: 500, bytesTotal: 1_000 });
    expect(kept.texts).toEqual({ history: 'rs.i00', looks: '6y.0 rs.i00' });
    const told = { ...progressOf(1_000), ...kept.texts };
    expect(withoutHistory(told)).toEqual({ ...progressOf(1_000), looks: '6y.0 rs.i00' });
    expect(withoutCourse(told)).toEqual(progressOf(1_000));
  });

  it('is known by its looks, and by its reports of a worker that tells none', () => {
    const [reports, looks] = [[{ workedMs: 1_000, bytesRead: 5 }], [{ workedMs: 250, bytesRead: 1 }]];
    expect(courseOf({ reports, looks })).toBe(looks);
    expect(courseOf({ reports, looks: [] })).toBe(reports);
  });

  it.each(['', ' ', '.', 'rs', 'rs.', '.rs', '-rs.1', 'rs.-1', 'rs.1000', '!.!', 'rs.0.0 x y'])(
    'never throws, nor tells of more than all bytes: %j',
    (text) => {
      for (const report of reportsIn(text, 1_000)) {
        expect(report.workedMs).toBeGreaterThanOrEqual(0);
        expect(report.bytesRead).toBeLessThanOrEqual(1_000);
      }
    },
  );

  it('passes over what comes before the report before it', () => {
    expect(reportsIn('rs0.1 rs.2 rs0.3 gpuo.4', 46_655)).toEqual([
      { workedMs: 36_000, bytesRead: 1 },
      { workedMs: 780_000, bytesRead: 4 },
    ]);
  });

  it('tells what whoever has read every report knows, to one 46,655th, in 250 characters for half an hour', () => {
    const step = fc.record({
      ms: fc.integer({ min: 1, max: 45_000 }),
      bytes: fc.integer({ min: 0, max: 10_000 }),
    });
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 40 }), (steps) => {
        const read: ProgressReport[] = [];
        const history = new ProgressHistory();
        let [workedMs, bytesRead] = [0, 0];
        const bytesTotal = steps.reduce((sum, { bytes }) => sum + bytes, 1);
        for (const { ms, bytes } of steps) {
          [workedMs, bytesRead] = [workedMs + ms, bytesRead + bytes];
          history.note(workedMs, { bytesRead, bytesTotal });
          keepReport(read, { workedMs, bytesRead });
        }
        const told = reportsIn(history.text, bytesTotal);
        expect(told.map((each) => each.workedMs)).toEqual(read.map((each) => each.workedMs));
        for (const [place, each] of told.entries())
          expect(Math.abs(each.bytesRead - (read[place]?.bytesRead ?? 0))).toBeLessThanOrEqual(
            bytesTotal / 46_655,
          );
        expect(history.text?.length).toBeLessThanOrEqual(250);
      }),
    );
  });
});
