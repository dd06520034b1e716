import { describe, expect, it } from 'vitest';
import { durationMs } from '../../../../src/contracts/units.ts';
import { lookPauseMs } from '../../../../src/core/policy/look-pause.ts';
import { createJobState } from '../../../../src/core/model/job-state.ts';
import { epochMs } from '../../../../src/contracts/units.ts';

const tickMs = durationMs(1_000);

describe('lookPauseMs', () => {
  it('is a tick where nothing lives', () => {
    const shape = { name: 'map', tasks: 3, upstream: [], sourceBytes: [1, 1, 1] };
    const state = createJobState([shape], 'by-index');
    expect(lookPauseMs(state, { now: epochMs(5_000), tickMs, jobs: 1 })).toBe(1_000);
  });
});
