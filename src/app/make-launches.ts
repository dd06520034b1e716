import { AccessDeniedError, JobFailedError } from '../contracts/errors.ts';
import { type AttemptId, attemptParts } from '../contracts/ids.ts';
import { durationMs, elapsedMs, epochMs, type EpochMs, later } from '../contracts/units.ts';
import type { Decision } from '../core/model/decision.ts';
import type { AttemptView, JobState } from '../core/model/job-view.ts';
import { stageAt, taskOfAttempt } from '../core/model/job-state.ts';
import { unclaimedLaunches } from '../core/model/launches.ts';
import { ridersOf } from '../core/model/packs.ts';
import { workerOf } from '../core/model/stage-worker.ts';
import type { Log } from '../ports/log.ts';
import { observe } from './journal.ts';
import { type LaunchNews, wantsRoom } from './launch-queue.ts';
import { type LaunchDecision, launchRequest } from './perform-decisions.ts';
import type { Session } from './scheduler-session.ts';

/** A throttled launch waits so long before it is decided on again. */
const throttleDelayMs = durationMs(1_000);
/** Launches that a scheduler which takes a job over makes again, of those that may not have been made. */
const repeatedLaunches = 500;

/** Lets the launches among the decisions take their turn. They are made beside this tick and later ones. */
export function queueLaunches(session: Session, decisions: readonly Decision[]): void {
  if (session.heldLaunches.length > 0) queueHeldLaunches(session);
  for (const decision of decisions) if (decision.kind === 'launch') queueLaunch(session, decision);
  session.launches.pump();
}

function queueLaunch(session: Session, decision: LaunchDecision): void {
  const { state, launches } = session;
  const { attemptId, behind } = decision;
  const attempt = state.attempts.get(attemptId);
  // One that rides is launched with the head of its pack.
  if (attempt?.state !== 'launched' || behind !== undefined) return;
  observe(session, { kind: 'held', attemptId });
  session.watch.waiting.add(attempt);
  launches.add(attemptId, {
    kind: workerOf(stageAt(state, attempt.stage), attempt).kind,
    request: () => launchRequest(session, decision),
    riders: () => ridersOf(state, attemptId).map(({ id }) => id),
    isWanted: () => state.attempts.get(attemptId)?.state === 'launched',
    mayBeMade: () => state.attempts.get(attemptId)?.recordedAt !== undefined,
  });
}

/** Whether attempts of the same task are numbered after one. */
function isBeforeOthers(state: JobState, id: AttemptId): boolean {
  const attempt = state.attempts.get(id);
  return (
    attempt !== undefined && attempt.place !== 'own' && taskOfAttempt(state, id).attempts.at(-1) !== attempt
  );
}

/** Undoes a launch that was not made: it is owed again at `notBefore`. */
function withdraw(session: Session, { attemptId, at }: LaunchNews, notBefore: EpochMs): void {
  observe(session, { kind: 'launched', attemptId, at });
  observe(session, { kind: 'withdrawn', attemptId, notBefore });
}

/**
 * Takes in what became of launches: those that were made are stamped with when, and what was throttled is owed again
 * after a pause, and where it was for want of room noted for whoever learns of that; what was behind it is owed again at once.
 * Throws `AccessDeniedError` or `JobFailedError` where a launch never can be made, and what the store threw.
 */
export function takeLaunches(deps: { readonly log: Log }, session: Session, now: EpochMs): void {
  const { state, watch } = session;
  // The last first: an attempt can be withdrawn only while none of its task is numbered after it.
  for (const news of session.launches.take().toReversed()) {
    const { attemptId, outcome, message, denied, at, takenBack } = news;
    if (takenBack !== undefined) {
      // One behind which others of its task were decided on cannot be withdrawn: it takes its turn again.
      if (isBeforeOthers(state, attemptId)) session.launches.add(attemptId, takenBack);
      else withdraw(session, news, now);
      continue;
    }
    if (outcome === 'accepted') {
      observe(session, { kind: 'launched', attemptId, at });
      continue;
    }
    if (denied === true) throw new AccessDeniedError(message ?? 'access denied', { attemptId });
    if (outcome === 'refused')
      throw new JobFailedError(`attempt ${attemptId} cannot be launched: ${message ?? 'refused'}`);
    deps.log.warn('throttled', { jobId: session.jobId, attemptId, message });
    const attempt = state.attempts.get(attemptId);
    if (attempt !== undefined && wantsRoom(news))
      watch.throttled[workerOf(stageAt(state, attempt.stage), attempt).kind] += 1;
    // Where it cannot be withdrawn, it is given up for want of a claim.
    withdraw(session, news, later(now, throttleDelayMs));
  }
}

/**
 * Has a scheduler that took the job over make the launches that its predecessor has decided on and not made. One without
 * a record was certainly not made. Of the others the last may not have been, for the record comes first: they are made
 * again, which does no harm, since an attempt is claimed once. Where the predecessor has left in order all of them were
 * made, and only those are made again that have waited for so long that they may have grown too old.
 */
export function queueUnmadeLaunches(
  session: Session,
  decided: ReadonlyMap<AttemptId, LaunchDecision>,
  leftInOrder: boolean,
): void {
  const unclaimed = unclaimedLaunches(session.state);
  const recorded = unclaimed.filter(({ recordedAt }) => recordedAt !== undefined);
  // Patience begins anew, by this scheduler's clock.
  for (const { id } of recorded) observe(session, { kind: 'launched', attemptId: id, at: session.enteredAt });
  const unmade = unclaimed.filter(({ recordedAt }) => recordedAt === undefined);
  const { claimLeaseMs } = session.tickConfig;
  const mayBeUnmade = ({ recordedAt = epochMs(0) }: AttemptView): boolean =>
    !leftInOrder || elapsedMs(recordedAt, session.enteredAt) > claimLeaseMs / 2;
  const again = recorded
    .filter(mayBeUnmade)
    .toSorted((a, b) => (b.recordedAt ?? 0) - (a.recordedAt ?? 0))
    .slice(0, repeatedLaunches);
  for (const { id } of [...again, ...unmade.toReversed()]) {
    const decision = decided.get(id);
    if (decision === undefined) continue;
    if (isOutdated(session, id)) session.heldLaunches.push(decision);
    else queueLaunch(session, decision);
  }
  withdrawUnmade(session);
  session.launches.pump();
}

/**
 * Takes back the held launches that were certainly not made: they would keep the slots that making their input again
 * needs. The others wait for their claims like any that was made, since nobody can say that they were not.
 */
function withdrawUnmade(session: Session): void {
  const { state, enteredAt: at, heldLaunches } = session;
  const unmade = heldLaunches
    .filter(({ attemptId }) => state.attempts.get(attemptId)?.recordedAt === undefined)
    // An attempt can be withdrawn only while none of its task is numbered after it.
    .toSorted((a, b) => attemptParts(b.attemptId).attempt - attemptParts(a.attemptId).attempt);
  for (const decision of unmade) {
    const { attemptId } = decision;
    observe(session, { kind: 'launched', attemptId, at });
    observe(session, { kind: 'withdrawn', attemptId, notBefore: at });
    if (!state.attempts.has(attemptId)) heldLaunches.splice(heldLaunches.indexOf(decision), 1);
  }
}

/** Whether the lists of what an attempt reads are of outputs that are gone: nobody knows any more where its line lies. */
const isOutdated = ({ state }: Session, id: AttemptId): boolean =>
  stageAt(state, taskOfAttempt(state, id).stage).outdated.size > 0;

/** Has launches made that have waited for lists of inputs which are written now. */
function queueHeldLaunches(session: Session): void {
  const ready = session.heldLaunches.filter(({ attemptId }) => !isOutdated(session, attemptId));
  for (const decision of ready) {
    session.heldLaunches.splice(session.heldLaunches.indexOf(decision), 1);
    queueLaunch(session, decision);
  }
}
