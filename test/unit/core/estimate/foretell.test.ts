import { describe, expect, it } from 'vitest';
import { epochMs } from '../../../../src/contracts/units.ts';
import { foretell } from '../../../../src/core/estimate/foretell.ts';
import type { ProgressReport } from '../../../../src/core/model/job-view.ts';
import { evenShape, type ProgressShape } from '../../../../src/core/model/progress-shape.ts';
import { jobOf, nowMs, type RunningSpec } from '../../../support/policy-views.ts';

const size = 1_000_000;

function attemptOf(running: RunningSpec) {
  const attempt = jobOf([{ bytes: size, running: [running] }]).stages[0]?.tasks[0]?.attempts[0];
  if (attempt === undefined) throw new Error('no attempt');
  return attempt;
}

/** All is read within 30 % of the time, evenly; then it computes. */
const readFirst: ProgressShape = {
  reachedAt: evenShape.reachedAt.map((share) => 0.3 * share),
  errors: evenShape.errors.map(() => 0.2),
  tasks: 8,
};
/** Evenly, learnt from tasks that have finished. */
const even: ProgressShape = { ...evenShape, tasks: 8 };

type Like = { readonly ms: number; readonly error: number };
const totalMs = (running: RunningSpec, shape: ProgressShape, like?: Like, looks: ProgressReport[] = []) => {
  const terms = { now: epochMs(nowMs), shape, expected: like, reportMs: 60_000 };
  return Math.round(foretell({ ...attemptOf(running), looks }, terms)?.totalMs ?? Number.NaN);
};

describe('the whole time of a running attempt', () => {
  it('is by where it was at its last report, between two levels as well as at one', () => {
    // 42 and 43 % after 10 s.
    expect(totalMs({ ranMs: 10_000, bytesRead: 0.42 * size }, even)).toBe(23_810);
    expect(totalMs({ ranMs: 10_000, bytesRead: 0.43 * size }, even)).toBe(23_256);
  });

  it('is by its pace before where it has read all since: when, nobody saw', () => {
    // 60 % after 900 ms, which is 18 % of the time: all of it takes 5 s. All was read by 3.1 s: 10.3 s by that alone.
    const before = [[900, 0.6 * size]] as const;
    expect(totalMs({ ranMs: 3_100, bytesRead: size, before }, readFirst)).toBe(5_000);
    // All read by 1.2 s: 4 s and no longer.
    expect(totalMs({ ranMs: 1_200, bytesRead: size, before }, readFirst)).toBe(4_000);
    // By one report, it took no longer than until then.
    expect(totalMs({ ranMs: 1_200, bytesRead: size }, readFirst)).toBe(4_000);
  });

  it('is by when its looks saw that all was read, which its only report tells too late', () => {
    const seen = (...looks: readonly (readonly [number, number])[]): ProgressReport[] =>
      looks.map(([workedMs, share]) => ({ workedMs, bytesRead: share * size }));
    const late: RunningSpec = { ranMs: 1_500, bytesRead: size };
    // All was read within the first 1.5 s, and no more is known: 5 s.
    expect(totalMs(late, readFirst)).toBe(5_000);
    // 60 % after 450 ms, which is 18 % of the time: 2.5 s, and no more than 0.75 s / 0.3 either.
    expect(totalMs(late, readFirst, undefined, seen([450, 0.6], [750, 1], [1_500, 1]))).toBe(2_500);
    expect(totalMs(late, readFirst, undefined, seen([300, 0.3], [600, 1], [1_500, 1]))).toBe(2_000);
  });

  it('is by its own pace, not by what its like took, once it has run for longer than they do', () => {
    const slow: RunningSpec = { ranMs: 3_100, bytesRead: size, before: [[900, 0.6 * size]] };
    // Its like took 4 s: they know more than its pace, which is the more doubtful.
    expect(totalMs(slow, readFirst, { ms: 4_000, error: 0.1 })).toBe(4_000);
    // They took 2 s, e^0.2 times that at the most: it is slower than they are, and is foretold to end, not to run as long again.
    expect(totalMs(slow, readFirst, { ms: 2_000, error: 0.1 })).toBe(5_000);
  });

  it('is without end once it has outlived its pace as well as its like', () => {
    const before = [
      [900, 0.6 * size],
      [1_500, size],
    ] as const;
    const hangs: RunningSpec = { ranMs: 8_000, bytesRead: size, before };
    // It has run for 8 s, where its pace said 5, or half as long again, and its like took 2: as long again.
    expect(totalMs(hangs, readFirst, { ms: 2_000, error: 0.1 })).toBe(16_000);
  });

  it('is by its last report where the pace before would have had it end sooner: it has slowed down since', () => {
    // 60 % after 900 ms makes 5 s of it; it read on until 8 s: that is 30 % of its time.
    const slowed: RunningSpec = { ranMs: 8_000, bytesRead: size, before: [[900, 0.6 * size]] };
    expect(totalMs(slowed, readFirst)).toBe(26_667);
  });
});
