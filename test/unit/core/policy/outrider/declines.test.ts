import { describe, expect, it } from 'vitest';
import { durationMs, epochMs } from '../../../../../src/contracts/units.ts';
import { decideTick } from '../../../../../src/core/decide-tick.ts';
import { outrider } from '../../../../../src/core/policy/outrider/outrider.ts';
import { createRng } from '../../../../../src/lib/rng.ts';
import { tickConfig } from '../../../../support/job-states.ts';
import {
  jobOf,
  nowMs,
  type RunningSpec,
  type TaskSpec,
  times,
  viewOf,
} from '../../../../support/policy-views.ts';

const size = 1_000_000;
/** Ordinary tasks take 100 s. */
const done = times(999, { doneMs: 100_000 });
/** One that has read so much of its input in 100 s, or in another time. */
const copyAt = (share: number, ranMs = 100_000): RunningSpec => ({ ranMs, bytesRead: share * size });
const proposed = (...tasks: readonly TaskSpec[]) =>
  outrider.propose(viewOf([...done, ...tasks], { reportMs: 10_000 }));

describe('a slow task that gets no copy', () => {
  it('is told of with the numbers by which none is worth it', () => {
    // 100 s for 48 %: 108.3 s are left, and a new attempt takes 100 s. It saves 8 s and takes 92 s more of slots.
    expect(proposed({ running: [copyAt(0.48)] })).toMatchObject([
      {
        kind: 'decline',
        reason: 'not-worth-it',
        gainMs: 0,
        facts: { remMs: 108_333, leastRemMs: 108_333, newMs: 100_000, copies: 1, sinceCopyMs: 100_000 },
      },
    ]);
  });

  it('is told of as one whose last copy has not shown yet what it brings', () => {
    // The last one is as slow by its first report; Δ is a tenth of a task.
    expect(proposed({ running: [copyAt(0.1), copyAt(0.01, 9_000)] })).toMatchObject([
      { kind: 'decline', reason: 'recent-copy', facts: { sinceCopyMs: 9_000, deltaMs: 10_000, copies: 2 } },
    ]);
  });

  it('is not told of where a new attempt would not end sooner, or one is made', () => {
    expect(proposed({ running: [copyAt(0.52)] })).toEqual([]);
    expect(proposed({ running: [copyAt(0.1)] })).toMatchObject([{ kind: 'backup' }]);
  });

  it('is one of ten of its stage that a tick tells of, those that are slowest', () => {
    // Each has from 104 to 112 s left, the last one most.
    const slow = Array.from({ length: 20 }, (_, place) => ({ running: [copyAt(0.49 - place / 1_000)] }));
    expect(proposed(...slow).map(({ kind, task }) => [kind, task.index])).toEqual(
      [1_018, 1_017, 1_016, 1_015, 1_014, 1_013, 1_012, 1_011, 1_010, 1_009].map((task) => ['decline', task]),
    );
  });

  it('is told of by the tick, beside what it refuses', () => {
    const config = {
      ...{ ...tickConfig, policy: 'outrider' as const },
      ...{ silenceMs: durationMs(600_000), claimLeaseMs: durationMs(600_000) },
    };
    const budget = { slots: 1_000, cancelRequested: false };
    const state = jobOf([...done, { running: [copyAt(0.48)] }]);
    const { decisions, refusals } = decideTick(state, epochMs(nowMs), config, budget, createRng('x'));
    expect(decisions).toEqual([]);
    expect(refusals).toMatchObject([
      {
        kind: 'refuse',
        taskId: 'map/999',
        reason: 'not-worth-it',
        facts: { remMs: 108_333, newMs: 100_000 },
      },
    ]);
  });
});
