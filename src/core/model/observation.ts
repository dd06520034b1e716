import type { AttemptId } from '../../contracts/ids.ts';
import type { AttemptRecord, TaskResult, UnreadableRecord } from '../../contracts/records.ts';
import type { EpochMs } from '../../contracts/units.ts';
import { noteReads } from '../policy/due-reads.ts';
import {
  applyAttempt,
  applyReplica,
  applyResult,
  applyUnreadable,
  resumeAttempt,
  withdrawAttempt,
} from './job-state.ts';
import type { JobState } from './job-view.ts';
import { holdLaunch, stampLaunch } from './launches.ts';
import { openSuspicions, refute } from './lost-outputs.ts';

/**
 * What a scheduler learns of its job between two decisions. Nothing else but the decisions themselves changes the job's
 * state, so that whoever takes the same observations over in the same order, and the same decisions, comes to the same
 * state, and decides alike.
 */
export type Observation =
  | { readonly kind: 'result'; readonly result: TaskResult; readonly at: EpochMs }
  | { readonly kind: 'replica'; readonly result: TaskResult }
  | { readonly kind: 'attempt'; readonly record: AttemptRecord; readonly at: EpochMs }
  | { readonly kind: 'unreadable'; readonly record: UnreadableRecord }
  /** These attempts were asked for at that time, whatever was found. */
  | {
      readonly kind: 'read';
      readonly ids: readonly AttemptId[];
      readonly at: EpochMs;
      readonly what: 'records' | 'outputs';
    }
  /** A launch waits in the scheduler's own queue; was made; found no room, and is owed again from then on. */
  | { readonly kind: 'held'; readonly attemptId: AttemptId }
  | { readonly kind: 'launched'; readonly attemptId: AttemptId; readonly at: EpochMs }
  | { readonly kind: 'withdrawn'; readonly attemptId: AttemptId; readonly notBefore: EpochMs }
  /** The order to stop was written: from then on it can be heard. */
  | { readonly kind: 'cancel-ordered'; readonly attemptId: AttemptId; readonly at: EpochMs }
  /** One that was given up unclaimed had been taken up just before. */
  | { readonly kind: 'resumed'; readonly attemptId: AttemptId; readonly at: EpochMs }
  /** Suspected outputs were looked through: those that nobody needs are forgotten. This one is there. */
  | { readonly kind: 'suspects-sorted' }
  | { readonly kind: 'output-there'; readonly attemptId: AttemptId }
  /** Another scheduler has taken over: its patience with all that lives begins then. */
  | { readonly kind: 'taken-over'; readonly at: EpochMs };

/** Takes an observation over into the state of a job. */
export function applyObservation(state: JobState, seen: Observation): void {
  switch (seen.kind) {
    case 'result':
      applyResult(state, seen.result, seen.at);
      return;
    case 'replica':
      applyReplica(state, seen.result);
      return;
    case 'attempt':
      applyAttempt(state, seen.record, seen.at);
      return;
    case 'unreadable':
      applyUnreadable(state, seen.record);
      return;
    case 'read':
      noteReads(state, seen.ids, seen.at, seen.what);
      return;
    case 'held':
      holdLaunch(state, seen.attemptId);
      return;
    case 'launched':
      stampLaunch(state, seen.attemptId, seen.at);
      return;
    case 'withdrawn':
      withdrawAttempt(state, seen.attemptId, seen.notBefore);
      return;
    case 'cancel-ordered':
      stampOrder(state, seen.attemptId, seen.at);
      return;
    case 'resumed':
      resumeAttempt(state, seen.attemptId, seen.at);
      return;
    case 'suspects-sorted':
      openSuspicions(state);
      return;
    case 'output-there':
      refute(state, seen.attemptId);
      return;
    case 'taken-over':
      beginAnew(state, seen.at);
  }
}

/** Stamps an order to stop with the time at which it was written: the scheduler may have slept since it was decided. */
function stampOrder(state: JobState, id: AttemptId, at: EpochMs): void {
  const attempt = state.attempts.get(id);
  if (attempt?.cancelledAt !== undefined) attempt.cancelledAt = at;
}

/** What records do not tell, the scheduler before knew: since when attempts have been silent. */
function beginAnew(state: JobState, at: EpochMs): void {
  state.takenOverAt = at;
  for (const attempt of state.live) {
    attempt.seenAt = at;
    if (attempt.cancelledAt !== undefined) attempt.cancelledAt = at;
  }
  for (const pack of state.packs.values()) pack.since = at;
}
