import { describe, expect, it } from 'vitest';
import { type Course, evenShape, shapeOfRunning } from '../../../../src/core/model/progress-shape.ts';
import { judgeStage } from '../../../../src/core/policy/outrider/judge.ts';
import { outrider } from '../../../../src/core/policy/outrider/outrider.ts';
import { type RunningSpec, type TaskSpec, viewOf } from '../../../support/policy-views.ts';

/** Of a hundred bytes: a fiftieth in 20 s, a twentieth in 40 s, and then three a second. */
const slowStart = [
  [10, 1],
  [20, 2],
  [40, 5],
  [50, 20],
] as const;

/** A task that takes `slowness` times as long, as it has reported after `seconds`. */
function courseAt(slowness: number, seconds: number): Course {
  const reports = slowStart
    .map(([after, bytesRead]) => ({ workedMs: after * slowness * 1_000, bytesRead }))
    .filter(({ workedMs }) => workedMs <= seconds * 1_000);
  return { reports, bytesTotal: 100, runMs: seconds * 1_000 };
}

/** At the levels 0.01, 0.02, 0.05, 0.2 and 0.25, and at the end. */
const reachedAt = (courses: readonly Course[]): number[] =>
  [1, 2, 5, 9, 10, 25].map((level) => Number(shapeOfRunning(courses).reachedAt[level]?.toFixed(9)));

describe('the shape of progress from tasks that run', () => {
  it('is how long each took from level to level, and even after the last that three have reached', () => {
    // A fifth in 50 s: all in 250 s, of which a hundredth takes 10.
    const fast = [courseAt(1, 50), courseAt(1, 50), courseAt(1, 50)];
    expect(reachedAt(fast)).toEqual([0.04, 0.08, 0.16, 0.2, 0.25, 1]);
    // However slow each is, and whatever those that follow have come to.
    expect(reachedAt([courseAt(2, 100), courseAt(1, 50), courseAt(3, 150), courseAt(4, 45)])).toEqual(
      reachedAt(fast),
    );
    // Two alone tell nothing of what comes after a twentieth, which is reached in 40 s.
    expect(reachedAt([courseAt(1, 50), courseAt(1, 50), courseAt(1, 45)])).toEqual([
      0.0125, 0.025, 0.05, 0.2, 0.25, 1,
    ]);
  });

  it('leaves time after all is read where tasks have run on', () => {
    const all = (runMs: number): Course => ({
      reports: [
        { workedMs: 3_000, bytesRead: 10 },
        { workedMs: 30_000, bytesRead: 100 },
      ],
      bytesTotal: 100,
      runMs,
    });
    expect(shapeOfRunning([all(30_000), all(30_000), all(30_000)]).reachedAt[25]).toBe(1);
    expect(shapeOfRunning([all(40_000), all(60_000), all(80_000)]).reachedAt[25]).toBe(0.5);
    expect(shapeOfRunning([all(40_000), all(60_000), all(80_000)]).reachedAt[7]).toBeCloseTo(0.05, 12);
  });

  it('is even where fewer than three have come anywhere', () => {
    expect(shapeOfRunning([])).toBe(evenShape);
    expect(shapeOfRunning([courseAt(1, 50), courseAt(1, 50), courseAt(1, 5)])).toBe(evenShape);
  });
});

describe('a stage that starts slowly, some of it past the start', () => {
  const size = 100_000_000;
  const taskOf = (
    ranMs: number,
    percent: number,
    before: readonly (readonly [number, number])[],
  ): TaskSpec => {
    const running: RunningSpec = {
      ranMs,
      bytesRead: (percent / 100) * size,
      before: before.map(([ms, read]): [number, number] => [ms, (read / 100) * size]),
    };
    return { bytes: size, running: [running] };
  };
  const past = taskOf(50_000, 20, [
    [10_000, 1],
    [20_000, 2],
    [40_000, 5],
  ]);
  // 5 % after 50 s, where the others were after 40.
  const behind = taskOf(50_000, 5, [
    [12_500, 1],
    [25_000, 2],
  ]);
  // 1 % after 50 s, where the others were after 10.
  const straggler = taskOf(50_000, 1, []);

  it('takes none for a straggler that is a quarter slower, though it has read a quarter as much', () => {
    const view = viewOf([past, past, past, past, behind, behind]);
    const [runs] = view.runs;
    const judged = runs === undefined ? [] : judgeStage(runs, view).tasks;
    expect(judged.map(({ slowness }) => Math.round(slowness * 100) / 100)).toEqual([1, 1, 1, 1, 1.25, 1.25]);
    expect(outrider.propose(view).filter(({ kind }) => kind === 'backup')).toEqual([]);
  });

  it('copies one that is five times as slow', () => {
    const proposals = outrider.propose(viewOf([past, past, past, past, behind, straggler]));
    const copied = proposals.filter(({ kind }) => kind === 'backup').map(({ task }) => task.index);
    expect(copied).toEqual([5]);
  });
});
