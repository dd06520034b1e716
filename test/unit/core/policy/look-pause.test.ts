import { describe, expect, it } from 'vitest';
import { durationMs, epochMs } from '../../../../src/contracts/units.ts';
import { createJobState } from '../../../../src/core/model/job-state.ts';
import { lookPauseMs } from '../../../../src/core/policy/look-pause.ts';
import { jobOf, nowMs, type TaskSpec, times } from '../../../support/policy-views.ts';

const tickMs = durationMs(1_000);
const pauseOf = (tasks: readonly TaskSpec[], jobs = 1): number =>
  lookPauseMs(jobOf(tasks), { now: epochMs(nowMs), tickMs, jobs });
const running = (ranMs: number): TaskSpec => ({ bytes: 1_000, running: [{ ranMs, bytesRead: 0 }] });

describe('lookPauseMs', () => {
  it('is a tick where nothing lives', () => {
    const shape = { name: 'map', tasks: 3, upstream: [], sourceBytes: [1, 1, 1] };
    const state = createJobState([shape], 'by-index');
    expect(lookPauseMs(state, { now: epochMs(5_000), tickMs, jobs: 1 })).toBe(1_000);
  });

  it('is a tenth of what attempts take, and longer where many jobs share the process', () => {
    const tasks = [...times(3, { bytes: 1_000, doneMs: 800 }), running(50)];
    expect(pauseOf(tasks)).toBe(80);
    expect(pauseOf(tasks, 10)).toBe(150);
  });

  it('is a tenth of what the youngest has run where all have run for longer than others took', () => {
    const ended = times(6, { bytes: 0, doneMs: 5 });
    expect(pauseOf([...ended, running(4_000), running(60_000)])).toBe(400);
    expect(pauseOf([...ended, running(60_000)])).toBe(1_000);
  });

  it('is a quarter of what one has run as long as none has ended', () => {
    expect(pauseOf([running(400), running(100)])).toBe(100);
  });
});
