import { describe, expect, it } from 'vitest';
import { durationMs, epochMs } from '../../../../src/contracts/units.ts';
import { decideTick } from '../../../../src/core/decide-tick.ts';
import { createRng } from '../../../../src/lib/rng.ts';
import { tickConfig } from '../../../support/job-states.ts';
import { jobOf, nowMs, times, type TaskSpec } from '../../../support/policy-views.ts';

/** Ordinary tasks take 20 s. Of sixty others each is slower than the one before. */
const tasks: readonly TaskSpec[] = [
  ...times(100, { doneMs: 20_000 }),
  ...Array.from({ length: 60 }, (_, place) => ({
    running: [{ ranMs: 60_000, bytesRead: 300_000 - 2_000 * place, node: `n${place}` }],
  })),
];

const refused = (givesWay: boolean) => {
  const config = {
    ...{ ...tickConfig, policy: 'mantri' as const, silenceMs: durationMs(600_000) },
    claimLeaseMs: durationMs(600_000),
  };
  const budget = { slots: 1_000, cancelRequested: false, ...(givesWay ? { givesWay } : {}) };
  const decided = decideTick(jobOf(tasks), epochMs(nowMs), config, budget, createRng('x'));
  return { launched: decided.decisions.length, refusals: decided.refusals };
};

describe('a job that gives way to others', () => {
  it('makes no copies, and tells of those that would have brought most, no more in a tick than of others', () => {
    expect(refused(false).launched).toBe(60);
    const { launched, refusals } = refused(true);
    expect(launched).toBe(0);
    expect(refusals.map(({ reason, taskId }) => [reason, taskId])).toEqual(
      Array.from({ length: 20 }, (_, place) => ['gives-way', `map/${159 - place}`]),
    );
    expect(refusals[0]?.facts?.['remMs']).toBeGreaterThan(refusals[19]?.facts?.['remMs'] ?? Infinity);
  });
});
