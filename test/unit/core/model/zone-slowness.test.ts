import { describe, expect, it } from 'vitest';
import { attemptIdOf } from '../../../../src/contracts/ids.ts';
import type { AttemptRecord } from '../../../../src/contracts/records.ts';
import { epochMs } from '../../../../src/contracts/units.ts';
import {
  addAttempt,
  applyAttempt,
  applyResult,
  createJobState,
  openStage,
} from '../../../../src/core/model/job-state.ts';
import type { ZonesSlowness } from '../../../../src/core/model/zone-slowness.ts';
import { attemptRecord, resultOf } from '../../../support/job-states.ts';

const size = 1_000_000;

/**
 * What a stage of one task knows of zones, whose first attempt was claimed at 0 and had read so much at 50 s, and whose
 * backup in zone b was claimed at 30 s and won at 60 s. Before anything is learnt a byte costs 1.
 */
function zonesAfter(first: {
  readonly state: AttemptRecord['state'];
  readonly bytesRead: number;
  readonly at?: number;
}): ZonesSlowness | undefined {
  const state = createJobState([{ name: 'map', tasks: 1, upstream: [], sourceBytes: [size] }]);
  openStage(state, 0, [], epochMs(0));
  const [one, other] = [attemptIdOf('map', 0, 0), attemptIdOf('map', 0, 1)];
  const { at = 50_000, bytesRead } = first;
  addAttempt(state, one, 'first', epochMs(0));
  const progress = {
    ...{ bytesRead, bytesTotal: size, recordsIn: 0, recordsOut: 0, phase: 'compute' as const },
    ...{ phaseMs: { init: 0, read: 0, compute: at, write: 0 }, peakMemoryBytes: 0 },
  };
  const claimed = (claimedAt: number, zone: string) => ({ claimedAt: epochMs(claimedAt), zone });
  applyAttempt(state, attemptRecord(one, first.state, at, { ...claimed(0, 'a'), progress }), epochMs(at));
  addAttempt(state, other, 'backup', epochMs(30_000));
  applyAttempt(state, attemptRecord(other, 'done', 60_000, claimed(30_000, 'b')), epochMs(60_000));
  applyResult(state, resultOf(other, 60_000), epochMs(60_000));
  return state.stages[0]?.statistics.zones;
}

describe('what a stage learns of zones when a backup wins', () => {
  it('is how slow the winner was in its zone, and the one that it has outrun in its own', () => {
    const zones = zonesAfter({ state: 'running', bytesRead: size / 4 });
    expect(zones?.get('b')?.won.count).toBe(1);
    expect(zones?.get('b')?.won.sum).toBeCloseTo(Math.log(0.03), 12);
    // 50 s for a quarter: 200 s for all.
    expect(zones?.get('a')?.outrun.count).toBe(1);
    expect(zones?.get('a')?.outrun.sum).toBeCloseTo(Math.log(0.2), 12);
    expect(zones?.get('a')?.won.count).toBe(0);
  });

  it('leaves out what had run for less than half of what the winner took', () => {
    expect(zonesAfter({ state: 'running', bytesRead: size / 4, at: 14_999 })?.has('a')).toBe(false);
    expect(zonesAfter({ state: 'running', bytesRead: size / 4, at: 15_000 })?.has('a')).toBe(true);
  });

  it('leaves out what has failed', () => {
    expect(zonesAfter({ state: 'failed', bytesRead: size / 4 })?.has('a')).toBe(false);
  });
});
