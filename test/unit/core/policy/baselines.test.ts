import { describe, expect, it } from 'vitest';
import { cubed } from '../../../../src/core/policy/baseline/cubed.ts';
import { dryad } from '../../../../src/core/policy/baseline/dryad.ts';
import { flink } from '../../../../src/core/policy/baseline/flink.ts';
import { hadoop } from '../../../../src/core/policy/baseline/hadoop.ts';
import { hadoop2 } from '../../../../src/core/policy/baseline/hadoop2.ts';
import { mapreduce } from '../../../../src/core/policy/baseline/mapreduce.ts';
import { spark } from '../../../../src/core/policy/baseline/spark.ts';
import { epochMs } from '../../../../src/contracts/units.ts';
import { nowMs, times, told, viewOf } from '../../../support/policy-views.ts';

const size = 1_000_000;

describe('Hadoop 0.20', () => {
  const atCopyEnd = { bytes: 3, running: [{ ranMs: 60_000, bytesRead: 1 }] };

  it('flags every reducer at the end of its copy phase once more than 30 % have finished', () => {
    expect(hadoop.propose(viewOf([...times(3, { doneMs: 1_000 }), ...times(7, atCopyEnd)]))).toEqual([]);
    expect(
      told(hadoop.propose(viewOf([...times(31, { doneMs: 1_000 }), ...times(69, atCopyEnd)]))),
    ).toHaveLength(69);
  });

  it('never copies a task that has done four fifths', () => {
    const view = viewOf([
      { running: [{ ranMs: 1e7, bytesRead: 0.8 * size }] },
      ...times(999, { doneMs: 1_000 }),
    ]);
    expect(hadoop.propose(view)).toEqual([]);
  });

  it('ranks a task twice as slow and one ten times as slow alike', () => {
    const view = viewOf([
      { running: [{ ranMs: 100_000, bytesRead: 0.35 * size }] },
      { running: [{ ranMs: 100_000, bytesRead: 0.07 * size }] },
      ...times(8, { running: [{ ranMs: 100_000, bytesRead: 0.8225 * size }] }),
    ]);
    expect(told(hadoop.propose(view))).toEqual(['backup 0 0', 'backup 1 0']);
  });

  it('waits for a minute, and until no task waits', () => {
    const young = { running: [{ ranMs: 59_999, bytesRead: 0 }] };
    const old = { running: [{ ranMs: 60_000, bytesRead: 0 }] };
    expect(told(hadoop.propose(viewOf([young, old, ...times(8, { doneMs: 1_000 })])))).toEqual([
      'backup 1 0',
    ]);
    expect(hadoop.propose(viewOf([old, ...times(8, { doneMs: 1_000 }), {}]))).toEqual([]);
  });
});

describe('Dryad and MapReduce', () => {
  it('copies near the end what has run longer than three quarters of the finished', () => {
    const done = [1_000, 2_000, 3_000, 4_000, 5_000].map((doneMs) => ({ doneMs }));
    const two = [
      { running: [{ ranMs: 4_000, bytesRead: 1 }] },
      { running: [{ ranMs: 4_001, bytesRead: 1 }] },
    ];
    expect(told(dryad.propose(viewOf([...done, { doneMs: 1_000 }, ...two])))).toEqual([
      'backup 7 4001',
      'backup 6 4000',
    ]);
    expect(told(dryad.propose(viewOf([...done, { doneMs: 4_000 }, ...two])))).toEqual(['backup 7 4001']);
    expect(dryad.propose(viewOf([...done, ...two]))).toEqual([]); // Five of seven are not the end.
  });

  it('copies all that remains once nine tenths have finished', () => {
    const running = { running: [{ ranMs: 10, bytesRead: 0.9 * size }] };
    expect(told(mapreduce.propose(viewOf([...times(18, { doneMs: 100 }), running, running])))).toEqual([
      'backup 18 10',
      'backup 19 10',
    ]);
    expect(mapreduce.propose(viewOf([...times(17, { doneMs: 100 }), ...times(3, running)]))).toEqual([]);
  });
});

describe('Spark', () => {
  const after = (ranMs: number, bytesRead: number, done = 9): string[] =>
    told(
      spark.propose(
        viewOf([...times(done, { doneMs: 1_000 }), ...times(10 - done, { running: [{ ranMs, bytesRead }] })]),
      ),
    );

  it('copies after three times the median, once nine tenths have finished', () => {
    expect(after(3_000, 1)).toEqual([]);
    expect(after(3_001, 1)).toEqual(['backup 9 3001']);
    expect(after(9_000, 1, 8)).toEqual([]);
  });

  it('spares a task that reads as fast as others, up to twice the threshold', () => {
    expect(after(4_000, 3 * size)).toEqual([]);
    expect(after(4_000, 2.9 * size)).toEqual(['backup 9 4000']);
    expect(after(6_001, 6 * size)).toEqual(['backup 9 6001']);
  });
});

describe('Hadoop 2', () => {
  /** Half done after ten reports at an even rate. */
  const even = (ranMs: number): object => ({
    running: [
      {
        ranMs,
        bytesRead: size / 2,
        before: Array.from({ length: 9 }, (_, n) => [(ranMs * (n + 1)) / 10, (size * (n + 1)) / 20]),
      },
    ],
  });

  it("copies the one task of a stage whose end lies farthest beyond a new copy's", () => {
    const view = viewOf([...times(9, { doneMs: 10_000 }), even(12_000), even(30_000), even(20_000)]);
    expect(told(hadoop2.propose(view))).toEqual(['backup 10 20000']);
  });

  it('leaves tasks alone that will end before a new copy', () => {
    expect(hadoop2.propose(viewOf([...times(9, { doneMs: 10_000 }), even(10_000)]))).toEqual([]);
  });

  it('then waits for 15 s', () => {
    const view = viewOf([...times(9, { doneMs: 10_000 }), even(30_000)]);
    const { statistics } = view.runs[0]?.stage ?? { statistics: undefined };
    if (statistics !== undefined) statistics.lastBackupAt = epochMs(nowMs - 14_999);
    expect(hadoop2.propose(view)).toEqual([]);
    if (statistics !== undefined) statistics.lastBackupAt = epochMs(nowMs - 15_000);
    expect(told(hadoop2.propose(view))).toEqual(['backup 9 20000']);
  });

  it('caps copies at ten, or a hundredth of all tasks, or a tenth of the running', () => {
    const running = { running: [{ ranMs: 1, bytesRead: 1 }] };
    expect(hadoop2.copyCap?.(viewOf(times(5, running)))).toBe(10);
    expect(hadoop2.copyCap?.(viewOf([...times(2_000, { doneMs: 1 }), running]))).toBe(20.01);
    expect(hadoop2.copyCap?.(viewOf(times(200, running)))).toBe(20);
  });
});

describe('Flink', () => {
  it('copies after a minute and 1.5 times the median by input, away from the slow node', () => {
    const running = (ranMs: number, bytes: number): object => ({
      bytes,
      running: [{ ranMs, bytesRead: 1, node: 'slow' }],
    });
    const view = viewOf([...times(6, { doneMs: 60_000 }), running(90_000, size), running(90_000, 2 * size)]);
    expect(told(flink.propose(view))).toEqual(['backup 6 0']);
    expect(flink.propose(view)[0]).toMatchObject({ avoidNodes: ['slow'] });
    expect(
      flink.propose(viewOf([...times(6, { doneMs: 1_000 }), ...times(2, running(59_999, size))])),
    ).toEqual([]);
  });
});

describe('Cubed', () => {
  const late = (ranMs: number, lagMs = 0): object => ({ running: [{ ranMs, lagMs, bytesRead: 1 }] });

  it('copies after three times the N/2-th fastest, counted from the launch', () => {
    const done = [1_000, 1_100, 1_200, 1_300, 2_000, 9_000].map((doneMs) => ({ doneMs }));
    const view = viewOf([...done, late(6_000), late(6_001), late(1, 6_000), late(1, 5_999)]);
    expect(told(cubed.propose(view))).toEqual(['backup 7 6001', 'backup 8 6001']);
  });

  it('takes half of an odd number of tasks to be one more than half', () => {
    // Of eleven tasks the sixth: 2 s. Of ten it would be the fifth: 1 s.
    const finished = [...times(5, { doneMs: 1_000 }), ...times(1, { doneMs: 2_000 })];
    const running = (ms: number) => [...times(1, late(ms)), ...times(4, late(1_000))];
    expect(told(cubed.propose(viewOf([...finished, ...running(5_999)])))).toEqual([]);
    expect(told(cubed.propose(viewOf([...finished, ...running(6_001)])))).toHaveLength(1);
  });

  it('reads the share that is asked for, and not always half', () => {
    const finished = [...times(8, { doneMs: 1_000 }), ...times(1, { doneMs: 2_000 })];
    const view = (ms: number) =>
      viewOf([...finished, late(ms), late(1), late(1)], { config: { cubed: { doneFraction: 0.75 } } });
    expect(told(cubed.propose(view(5_999)))).toEqual([]);
    expect(told(cubed.propose(view(6_001)))).toHaveLength(1);
  });

  it('wants ten tasks, half of them finished', () => {
    expect(cubed.propose(viewOf([...times(8, { doneMs: 1 }), late(1_000)]))).toEqual([]);
    expect(cubed.propose(viewOf([...times(4, { doneMs: 1 }), ...times(6, late(1_000))]))).toEqual([]);
  });
});
