import type { AttemptId, JobId } from '../contracts/ids.ts';
import { workerKinds } from '../contracts/job-spec.ts';
import { limits } from '../contracts/limits.ts';
import { type DurationMs, durationMs, elapsedMs, type EpochMs } from '../contracts/units.ts';
import { stageAt } from '../core/model/job-state.ts';
import { type AttemptView, isUnclaimed, type JobState } from '../core/model/job-view.ts';
import { workerOf } from '../core/model/stage-worker.ts';
import type { LaunchRoom } from '../core/model/tick-config.ts';
import { slotDemand } from '../core/policy/owed-launches.ts';
import { quantileOf } from '../lib/sorted-numbers.ts';
import type { Launcher } from '../ports/launcher.ts';
import { type OwnLaunches, SharedRoom } from './shared-room.ts';

/** What a scheduler was waiting for when it looked last, and where what is learned of it is kept. */
export interface LaunchWatch {
  readonly room: SharedRoom;
  readonly waiting: Set<AttemptView>;
  readonly late: Set<AttemptView>;
}

/** A late launch is made anew after this many times what makes it late, and not before so long. */
const renewFactor = 4;
const leastRenewMs = 60_000;
/** One that is made anew is wasted once it comes out of the queue: so many of all launches may be, */
const renewedShare = 1 / 20;
/** or as many as there is room for where they have waited for so long, since Lambda's pauses are longer yet by then. */
const longWaitMs = 150_000;

/** Begins to watch. Several jobs that one process serves share the room; without it the job learns by itself. */
export const startWatch = (room: SharedRoom = new SharedRoom()): LaunchWatch => ({
  room,
  waiting: new Set(),
  late: new Set(),
});

/** Attempts of a job that run, and so are known to have room. */
export const runningOf = ({ live }: Pick<JobState, 'live'>): number =>
  [...live].filter(({ state }) => state === 'running').length;

/** Places of the stages whose launches wait for room unseen. */
function waitingStages(state: JobState, launcher: Launcher): ReadonlySet<number> {
  const kinds = new Set(workerKinds.filter((kind) => launcher.terms?.(kind).waits === true));
  return new Set(state.stages.filter((stage) => kinds.has(workerOf(stage).kind)).map(({ index }) => index));
}

/** How long the launches took that were claimed since the last look, as the scheduler saw it. */
function takeClaims({ waiting, late }: LaunchWatch, now: EpochMs): number[] {
  const lags: number[] = [];
  for (const attempt of waiting) {
    if (attempt.state === 'launched') continue;
    waiting.delete(attempt);
    late.delete(attempt);
    if (attempt.claimedAt !== undefined) lags.push(elapsedMs(attempt.launchedAt, now));
  }
  return lags;
}

/** What attempts of these stages ordinarily take: the median of the last stage of which any has ended. */
function runMsOf(state: JobState, stages: ReadonlySet<number>): DurationMs | undefined {
  const last = state.stages.findLast(
    ({ index, statistics }) => stages.has(index) && statistics.runMs.size > 0,
  );
  const medianMs = last === undefined ? undefined : quantileOf(last.statistics.runMs, 0.5);
  return medianMs === undefined ? undefined : durationMs(medianMs);
}

/** Tasks of these stages that are owed an attempt. */
const owedIn = (state: JobState, stages: ReadonlySet<number>): number =>
  state.stages.reduce(
    (sum, stage) =>
      stage.state === 'open' && stages.has(stage.index) ? sum + stage.retryable.size + stage.unstarted : sum,
    0,
  );

/** What a tick brings besides the job's state. */
interface TickLook {
  readonly now: EpochMs;
  /** Launches that the service refused since the last look. */
  readonly throttled: number;
  /** Copies that the job can use, clones and backups: they need room as first attempts do. */
  readonly copies: number;
}

function look(
  watch: LaunchWatch,
  state: JobState,
  stages: ReadonlySet<number>,
  { now, throttled, copies }: TickLook,
): OwnLaunches {
  const claimLagsMs = takeClaims(watch, now);
  const patienceMs = watch.room.patienceMs(claimLagsMs);
  const holdMs = watch.room.holdMs(runMsOf(state, stages));
  let [running, starting, turnedLate, held] = [0, 0, 0, 0];
  for (const attempt of state.live) {
    if (!stages.has(attempt.stage)) continue;
    if (attempt.state === 'running') {
      running += 1;
      continue;
    }
    watch.waiting.add(attempt);
    const isLate = attempt.isHeldBack !== true && elapsedMs(attempt.launchedAt, now) > patienceMs;
    if (!isLate) {
      // It was made again, or launches turned out to take longer.
      watch.late.delete(attempt);
      starting += 1;
      continue;
    }
    if (elapsedMs(attempt.launchedAt, now) <= holdMs) held += 1;
    if (watch.late.has(attempt)) continue;
    watch.late.add(attempt);
    turnedLate += 1;
  }
  const owed = owedIn(state, stages) + copies;
  return { now, running, starting, held, late: watch.late.size, turnedLate, claimLagsMs, throttled, owed };
}

/**
 * Late launches to make anew: where nothing else is owed and less runs than is known to have room, their environments
 * stand idle while they wait out a pause of Lambda's queue, which may last five minutes. Oldest first, each task a few
 * times, and no more than a twentieth of all unless they have waited for long.
 */
function launchesToRenew(watch: LaunchWatch, state: JobState, seen: OwnLaunches): readonly AttemptId[] {
  if (slotDemand(state) > state.live.size) return [];
  const { idle } = watch.room;
  if (idle <= 0) return [];
  const afterMs = durationMs(Math.max(leastRenewMs, renewFactor * watch.room.patienceMs([])));
  const mayRenew = ({ stage, task, launchedAt }: AttemptView): boolean => {
    const attempts = stageAt(state, stage).tasks[task]?.attempts ?? [];
    return (
      elapsedMs(launchedAt, seen.now) > afterMs &&
      attempts.filter(isUnclaimed).length < limits.renewedLaunchesPerTask
    );
  };
  const oldest = [...watch.late]
    .filter(mayRenew)
    .sort((a, b) => a.launchedAt - b.launchedAt || (a.id < b.id ? -1 : 1));
  if (oldest.length === 0) return [];
  const waited = oldest.filter(({ launchedAt }) => elapsedMs(launchedAt, seen.now) > longWaitMs).length;
  const renewed = [...state.attempts.values()].filter(isUnclaimed).length;
  const left = Math.floor(state.attempts.size * renewedShare) - renewed;
  return oldest.slice(0, Math.min(idle, Math.max(waited, left))).map(({ id }) => id);
}

/** What a tick may launch in stages whose launches wait unseen, and which of those that wait it makes anew. */
export interface Outlook {
  readonly room: LaunchRoom;
  readonly renewed: readonly AttemptId[];
}

/** Looks at the job's launches, and learns from them. Undefined where no launches of the job wait unseen. */
export function watchLaunches(
  deps: { readonly launcher: Launcher },
  session: { readonly jobId: JobId; readonly state: JobState; readonly watch: LaunchWatch },
  tick: TickLook,
): Outlook | undefined {
  const { state, watch } = session;
  const stages = waitingStages(state, deps.launcher);
  if (stages.size === 0) return undefined;
  const seen = look(watch, state, stages, tick);
  const launches = watch.room.take(session.jobId, seen);
  const renewed = launchesToRenew(watch, state, seen);
  return { room: { stages, launches }, renewed };
}

/** Slots that a job can use: all that it needs, or of stages that wait for room those that have it. */
export function usableSlots(state: JobState, needed: number, outlook: Outlook | undefined): number {
  if (outlook === undefined) return needed;
  const { stages, launches } = outlook.room;
  const others = state.stages.reduce(
    (sum, stage) =>
      stage.state === 'open' && !stages.has(stage.index) ? sum + stage.retryable.size + stage.unstarted : sum,
    0,
  );
  return Math.min(needed, state.live.size + others + launches);
}
