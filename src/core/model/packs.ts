import type { AttemptId } from '../../contracts/ids.ts';
import type { EpochMs } from '../../contracts/units.ts';
import { type AttemptView, isLive, isRiding, type JobState, type Pack } from './job-view.ts';

/**
 * Packs of attempts: one worker takes them up one after the other, each by a claim of its own. The log says who rides
 * behind whom; whose turn it is follows from what has ended. One place is counted for each worker, whatever rides.
 */

/**
 * The pack that an attempt heads or rides in. One that rode before and has a place of its own may head another: where its
 * first launch found no room, it was decided on anew, of which whoever takes over knows from the log alone.
 */
export function packOf(state: JobState, attempt: AttemptView): Pack | undefined {
  return state.packs.get(attempt.place === 'own' ? attempt.id : (attempt.behind ?? attempt.id));
}

/** Attempts that ride behind a head, in their order. */
export const ridersOf = (state: JobState, head: AttemptId): readonly AttemptView[] =>
  (state.packs.get(head)?.riders ?? []).filter(isRiding);

/**
 * Whether an attempt was taken up by a worker that had others before it, as far as is known: also one that was launched
 * by itself, where the worker of its pack was quicker. That tells nothing of how long launches take.
 */
export function wasPickedUp({ attempts }: Pick<JobState, 'attempts'>, attempt: AttemptView): boolean {
  const { behind, place, node } = attempt;
  if (behind === undefined) return false;
  return place !== 'own' || (node !== undefined && attempts.get(behind)?.node === node);
}

const keep = <T>(set: Set<T>, item: T, isIn: boolean): unknown => (isIn ? set.add(item) : set.delete(item));

/** Keeps true which attempts hold a slot and which ride, after a change of one. */
export function settlePlace(state: JobState, attempt: AttemptView): void {
  keep(state.riding, attempt, isRiding(attempt));
  keep(state.live, attempt, isLive(attempt) && !isRiding(attempt));
}

/** Seats an attempt behind the head of a pack. */
export function ride(state: JobState, attempt: AttemptView, head: AttemptId, now: EpochMs): void {
  const pack = state.packs.get(head) ?? { head, riders: [], isOver: false, since: now };
  state.packs.set(head, pack);
  attempt.behind = head;
  attempt.rodeSince ??= attempt.launchedAt;
  attempt.place = undefined;
  pack.riders.push(attempt);
}

function leavePack(state: JobState, attempt: AttemptView): void {
  const pack = attempt.place === 'own' ? undefined : packOf(state, attempt);
  if (pack === undefined || attempt.behind === undefined) return;
  pack.riders.splice(pack.riders.indexOf(attempt), 1);
  // It was awaited in vain: its worker is gone, or hangs.
  if (attempt.place === 'carrier') pack.isOver = true;
  const head = state.attempts.get(pack.head);
  if (!pack.riders.some(isLive) && (head === undefined || !isLive(head))) state.packs.delete(pack.head);
}

/**
 * Takes over where an attempt that was decided on before is to run now: by itself, or behind another. No effect on one
 * that has begun or ended, nor a second time.
 */
export function seatAnew(
  state: JobState,
  attempt: AttemptView,
  behind: AttemptId | undefined,
  now: EpochMs,
): void {
  const isThere =
    behind === undefined
      ? attempt.behind === undefined || attempt.place === 'own'
      : attempt.behind === behind;
  if (attempt.state !== 'launched' || isThere) return;
  leavePack(state, attempt);
  if (behind === undefined) attempt.place = 'own';
  else ride(state, attempt, behind, now);
  attempt.launchedAt = now;
  settlePlace(state, attempt);
}

/**
 * Takes back that an attempt was given a place of its own: it rides again. Its pack goes on as it did, also without it;
 * where there is none any more, its worker is gone.
 */
export function unseat(state: JobState, attempt: AttemptView, now: EpochMs): void {
  const { behind } = attempt;
  if (behind === undefined || attempt.place !== 'own') return;
  const isGone = !state.packs.has(behind);
  ride(state, attempt, behind, now);
  const pack = state.packs.get(behind);
  if (pack !== undefined && isGone) pack.isOver = true;
  settlePlace(state, attempt);
}

/** An attempt was never launched after all, and neither were those behind it. */
export function forgetPlace(state: JobState, attempt: AttemptView): void {
  leavePack(state, attempt);
  state.live.delete(attempt);
  state.riding.delete(attempt);
  if (attempt.behind === undefined) state.packs.delete(attempt.id);
}

/**
 * Takes over whose turn it is in a pack after a change of one of its attempts. A worker goes on after one that it has
 * done, and passes over what it may not claim; after any other end it takes up none of the rest.
 */
export function passOn(state: JobState, attempt: AttemptView, now: EpochMs): void {
  const pack = packOf(state, attempt);
  if (pack === undefined) return;
  if (attempt.state === 'running') pack.since = now;
  if (isLive(attempt)) return;
  const isPassedOver = attempt.id !== pack.head && attempt.claimedAt === undefined;
  if (attempt.state !== 'done' && !isPassedOver) pack.isOver = true;
  const head = state.attempts.get(pack.head);
  const isBusy = [...(head === undefined ? [] : [head]), ...pack.riders].some((each) => state.live.has(each));
  const next = pack.riders.find(isRiding);
  if (next === undefined) {
    if (!isBusy) state.packs.delete(pack.head);
    return;
  }
  if (pack.isOver || isBusy) return;
  next.place = 'carrier';
  next.launchedAt = now;
  next.seenAt = now;
  next.isHeldBack = undefined;
  pack.since = now;
  settlePlace(state, next);
}

/** The head of a pack was given up, and had begun just before: its worker goes on with the rest after all. */
export function goOn(state: JobState, attempt: AttemptView, now: EpochMs): void {
  const pack = packOf(state, attempt);
  if (pack?.head !== attempt.id) return;
  pack.isOver = false;
  pack.since = now;
}
