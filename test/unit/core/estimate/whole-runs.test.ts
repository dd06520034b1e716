import { describe, expect, it } from 'vitest';
import { type ForetoldRun, wholeRuns } from '../../../../src/core/estimate/new-copy.ts';
import { jobOf, type TaskSpec, times } from '../../../support/policy-views.ts';

const size = 1_000_000;

function stageOf(tasks: readonly TaskSpec[]) {
  const stage = jobOf(tasks).stages[0];
  if (stage === undefined) throw new Error('no stage');
  return stage;
}

const runsOf = (...seconds: number[]): ForetoldRun[] =>
  seconds.map((each) => ({ bytes: size, ms: each * 1_000 }));
const secondsOf = (runs: readonly ForetoldRun[]): number[] => runs.map(({ ms }) => Math.round(ms / 1_000));

describe('runs of which only the least is known', () => {
  const none = stageOf(times(4, { bytes: size }));

  it('take what the others take in the median that take longer than that', () => {
    const known = runsOf(10, 20, 30, 40, 50);
    // Longer than 1 s: all, whose median is 30 s; than 25 s: 30, 40 and 50; than 45 s: 50.
    expect(secondsOf(wholeRuns(runsOf(1, 25, 45), known, none))).toEqual([30, 40, 50]);
  });

  it('take just that where it is longer than all, and count as such for those that take less', () => {
    expect(secondsOf(wholeRuns(runsOf(60, 90, 25), runsOf(10, 20, 30), none))).toEqual([60, 90, 60]);
  });

  it('are held against tasks that have finished, each by its input', () => {
    const stage = stageOf([...times(3, { bytes: size, doneMs: 100_000 }), { bytes: 2 * size }]);
    const [run] = wholeRuns([{ bytes: 2 * size, ms: 10_000, zone: 'a' }], [], stage);
    expect(run).toEqual({ bytes: 2 * size, ms: 200_000, zone: 'a' });
  });

  it('tell nothing where nothing else is known', () => {
    expect(wholeRuns(runsOf(1, 2, 3), [], none)).toEqual([]);
    expect(wholeRuns([], runsOf(10), none)).toEqual([]);
  });
});
