import { describe, expect, it } from 'vitest';
import { judgeStage, type JudgedTask } from '../../../../../src/core/policy/outrider/judge.ts';
import { outrider } from '../../../../../src/core/policy/outrider/outrider.ts';
import { outrun } from '../../../../../src/core/policy/outrider/outrun.ts';
import { type RunningSpec, times, viewOf } from '../../../../support/policy-views.ts';

const size = 1_000_000;

/** A copy that has read so much of its input after so many seconds, at each of its reports. */
const copyAt = (...reports: readonly (readonly [number, number])[]): RunningSpec => {
  const read = reports.map(([seconds, share]) => [seconds * 1_000, share * size] as const);
  const [ranMs, bytesRead] = read.at(-1) ?? [0, 0];
  return { ranMs, bytesRead, before: read.slice(0, -1) };
};

/** A task of a stage whose ordinary ones take a hundred seconds, of which some have ended. */
const viewWith = (copies: readonly RunningSpec[]) =>
  viewOf([{ running: copies }, ...times(8, { doneMs: 100_000 })], { reportMs: 1_000 });

function judged(copies: readonly RunningSpec[]): JudgedTask {
  const view = viewWith(copies);
  const [runs] = view.runs;
  const [task] = runs === undefined ? [] : judgeStage(runs, view).tasks;
  if (task === undefined) throw new Error('no task');
  return task;
}

/** Numbers of the copies that are stopped. */
const stopped = (task: JudgedTask, deltaMs = 1_000): number[] =>
  outrun(task, { deltaMs }).flatMap((each) => (each.kind === 'prune' ? [each.attempt.number] : []));

const slowOne = copyAt([10, 0.01], [100, 0.1]);

describe('of two copies of a task', () => {
  it('the older one is stopped once the younger one has read more', () => {
    expect(stopped(judged([slowOne, copyAt([5, 0.06], [12, 0.13])]))).toEqual([0]);
  });

  it('the older one is let run for half of an ordinary time, so that it tells of where it ran', () => {
    const young = copyAt([2, 0.02], [5, 0.05]);
    expect(stopped(judged([copyAt([20, 0.01], [40, 0.02]), young]))).toEqual([]);
    expect(stopped(judged([copyAt([20, 0.01], [60, 0.03]), young]))).toEqual([0]);
  });

  it('both run while the younger one is only faster', () => {
    expect(stopped(judged([slowOne, copyAt([2, 0.02], [8, 0.08])]))).toEqual([]);
  });

  it('the older one may have gone on since its last report', () => {
    // By now it may have read 0.15, had it gone on as before.
    const silent: RunningSpec = { ...slowOne, silentMs: 50_000 };
    expect(stopped(judged([silent, copyAt([5, 0.06], [12, 0.13])]))).toEqual([]);
    expect(stopped(judged([silent, copyAt([5, 0.06], [16, 0.17])]))).toEqual([0]);
  });

  it('the younger one is stopped where it is slower than the older one was at its age', () => {
    expect(stopped(judged([copyAt([10, 0.1], [40, 0.4]), copyAt([5, 0.03], [10, 0.06])]))).toEqual([1]);
    // A tenth slower may be chance.
    expect(stopped(judged([copyAt([10, 0.1], [40, 0.4]), copyAt([5, 0.045], [10, 0.09])]))).toEqual([]);
  });

  it('not by its first report, nor before it has run for Δ', () => {
    expect(stopped(judged([copyAt([10, 0.1], [40, 0.4]), copyAt([10, 0.06])]))).toEqual([]);
    const task = judged([copyAt([10, 0.1], [40, 0.4]), copyAt([5, 0.03], [10, 0.06])]);
    expect(stopped(task, 10_001)).toEqual([]);
    expect(stopped(task, 10_000)).toEqual([1]);
  });

  it('not where the older one was fast and stands still', () => {
    const stuck = copyAt([10, 0.1], [50, 0.5], [100, 0.505], [400, 0.51]);
    expect(stopped(judged([stuck, copyAt([5, 0.03], [10, 0.06])]))).toEqual([]);
  });

  it('none where both have read all at once', () => {
    expect(stopped(judged([copyAt([1, 1], [60, 1]), copyAt([1, 1], [20, 1])]))).toEqual([]);
  });

  it('none that is a clone, or does only the rest of its task', () => {
    const task = judged([slowOne, copyAt([5, 0.06], [12, 0.13])]);
    const with1 = (change: object): JudgedTask => ({
      ...task,
      copies: task.copies.map((copy, place) =>
        place === 0 ? copy : { ...copy, attempt: { ...copy.attempt, ...change } },
      ),
    });
    expect(stopped(with1({}))).toEqual([0]);
    expect(stopped(with1({ reason: 'clone' }))).toEqual([]);
    const takenUp = { attempt: 0, bytes: 1 };
    expect(stopped(with1({ progress: { bytesRead: 130_000, bytesTotal: size, takenUp } }))).toEqual([]);
  });
});

describe('outrider', () => {
  it('tells what was left of the one that it stops, and of the one ahead', () => {
    const proposals = outrider.propose(viewWith([slowOne, copyAt([5, 0.06], [12, 0.13])]));
    // 100 s for a tenth: 900 s left; 12 s for 0.13: 80 s left.
    expect(proposals).toMatchObject([{ kind: 'prune', attempt: { number: 0 }, facts: { copies: 2 } }]);
    expect(proposals[0]?.facts['remMs']).toBeGreaterThan(700_000);
    expect(proposals[0]?.facts['firstRemMs']).toBeLessThan(100_000);
  });
});

describe('a stage whose progress is slow at first', () => {
  /** Of nine tasks of seven minutes one is far behind; after 50 s the others have read little more than a hundredth. */
  const early = (behind: number): RunningSpec[] => [
    ...times(8, {}).map(() => copyAt([10, 0.002], [20, 0.004], [30, 0.007], [40, 0.01], [50, 0.013])),
    copyAt(
      [10, 0.002 * behind],
      [20, 0.004 * behind],
      [30, 0.007 * behind],
      [40, 0.01 * behind],
      [50, 0.013 * behind],
    ),
  ];
  const proposed = (behind: number): string[] =>
    outrider
      .propose(
        viewOf(
          early(behind).map((copy) => ({ running: [copy] })),
          { reportMs: 10_000 },
        ),
      )
      .map(({ kind, task }) => `${kind} ${String(task.index)}`);

  it('has its straggler copied after a few reports, though a whole task seems to take an hour', () => {
    expect(proposed(0.3)).toEqual(['backup 8']);
    expect(proposed(1)).toEqual([]);
  });
});
