import { awaitsInputs, isRedone } from '../model/lost-outputs.ts';
import type { JobState, TaskView } from '../model/job-view.ts';
import { type LaunchRoom, meetsRefusal, takesRoom } from '../model/tick-config.ts';
import type { OwnPlaces } from './own-places.ts';

/** A task that is owed an attempt. */
export interface OwedLaunch {
  readonly task: TaskView;
  readonly reason: 'first' | 'retry' | 'recompute';
}

/**
 * Tasks that are owed an attempt now, most urgent first, at most `limit`: retries before first attempts (their
 * stage waits for them), earlier stages before later ones, and within a stage the largest input first, so that
 * no long task starts last. Tasks that
 * are not ready (backing off) are left out, and stages of which inputs are made again, and of the stages of `room` those
 * beyond what it has room for, as of those that go where launches are refused.
 *
 * Source: Mantri §5.4 ("task order": descending input, at most 33 % worse than the optimum).
 */
export function owedLaunches(
  state: JobState,
  isReady: (task: TaskView) => boolean,
  limit: number,
  room?: LaunchRoom,
): OwedLaunch[] {
  const owed: OwedLaunch[] = [];
  let roomLeft = room?.launches ?? 0;
  let refusedLeft = room?.refused?.launches ?? 0;
  const hasNoRoom = (task: TaskView): boolean => {
    if (takesRoom(room, task)) return roomLeft-- <= 0;
    return meetsRefusal(room, task) && refusedLeft-- <= 0;
  };
  for (const stage of state.stages) {
    if (stage.state !== 'open' || owed.length >= limit || awaitsInputs(state, stage)) continue;
    const retries = [...stage.retryable]
      .filter(isReady)
      .sort((a, b) => b.inputBytes - a.inputBytes || a.index - b.index);
    for (const task of retries) {
      if (owed.length >= limit) break;
      if (hasNoRoom(task)) continue;
      owed.push({ task, reason: isRedone(task) ? 'recompute' : 'retry' });
    }
    // Others of the stage may need none of the room.
    const isShared = room?.stages.has(stage.index) === true && (room.elsewhere?.size ?? 0) === 0;
    const isRefused = room?.refused?.stages.has(stage.index) === true;
    for (let place = stage.nextFirst; place < stage.order.length && owed.length < limit; place++) {
      if ((isShared && roomLeft <= 0) || (isRefused && refusedLeft <= 0)) break;
      const task = stage.tasks[stage.order[place] ?? -1];
      if (task === undefined || task.attempts.length > 0 || task.result !== undefined) continue;
      if (!isReady(task) || hasNoRoom(task)) continue;
      owed.push({ task, reason: 'first' });
    }
  }
  return owed;
}

/**
 * Slots that the job could use now: those it holds, and one for each task that is owed an attempt; with `own` also one
 * for each that rides and is to get a place of its own.
 */
export function slotDemand(state: JobState, own?: Pick<OwnPlaces, 'leaving'>): number {
  return state.stages.reduce(
    (sum, stage) =>
      stage.state === 'open' && !awaitsInputs(state, stage)
        ? sum + stage.retryable.size + stage.unstarted
        : sum,
    state.live.size + (own?.leaving.length ?? 0),
  );
}
