import { expect } from 'vitest';
import type { AttemptId } from '../../src/contracts/ids.ts';
import { durationMs, epochMs } from '../../src/contracts/units.ts';
import { decideTick, type TickDecision } from '../../src/core/decide-tick.ts';
import { applyAttempt, applyResult, createJobState, openStage } from '../../src/core/model/job-state.ts';
import type { JobState } from '../../src/core/model/job-view.ts';
import type { TickConfig } from '../../src/core/model/tick-config.ts';
import { createRng } from '../../src/lib/rng.ts';
import { attemptRecord, carryOut, resultOf, tickConfig } from './job-states.ts';

const at = epochMs;
export const rng = createRng('job');
/** Attempts ride together that are expected to take two seconds. */
export const packing: TickConfig = {
  ...tickConfig,
  packMs: durationMs(2_000),
  claimLeaseMs: durationMs(900_000),
};

/** A map of so many tasks that read nothing. */
export function mapOf(tasks: number): JobState {
  const shape = { name: 'map', tasks, upstream: [], sourceBytes: Array.from({ length: tasks }, () => 0) };
  const state = createJobState([shape], 'by-index');
  openStage(state, 0, [], at(0));
  return state;
}

/** Decides a tick. */
export const decided = (state: JobState, now: number, slots: number, config = packing): TickDecision =>
  decideTick(state, at(now), config, { slots, cancelRequested: false }, rng);

/** Decides and carries out a tick. Answers its launches, those that ride with their head. */
export function tick(state: JobState, now: number, slots: number, config = packing): string[] {
  const { decisions } = decided(state, now, slots, config);
  carryOut(state, decisions, now);
  return decisions.flatMap((each) => {
    if (each.kind !== 'launch') return [];
    return [each.behind === undefined ? each.attemptId : `${each.attemptId} behind ${each.behind}`];
  });
}

/** A worker has done an attempt in so long. */
export function finish(state: JobState, id: string, now: number, tookMs = 100): void {
  applyResult(state, resultOf(id, now), at(now));
  applyAttempt(state, attemptRecord(id, 'done', now, { claimedAt: at(now - tookMs) }), at(now));
}

/** A worker has taken an attempt up. */
export const begin = (state: JobState, id: string, now: number): void => {
  applyAttempt(state, attemptRecord(id, 'running', now, { claimedAt: at(now) }), at(now));
};

/** Ids in their order. */
export const idsOf = (attempts: Iterable<{ readonly id: AttemptId }>): string[] =>
  [...attempts].map(({ id }) => id).toSorted();

/** Twelve tasks on four slots, of which the first four have ended after 100 ms each: packs of two by then. */
export function afterFirstWave(tasks = 12, slots = 4): JobState {
  const state = mapOf(tasks);
  expect(tick(state, 0, slots)).toHaveLength(slots);
  for (let task = 0; task < slots; task++) finish(state, `map/${String(task)}/0`, 100);
  return state;
}
