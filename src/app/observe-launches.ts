import type { AttemptId, JobId } from '../contracts/ids.ts';
import { type Worker, workerKinds } from '../contracts/job-spec.ts';
import { limits } from '../contracts/limits.ts';
import { type DurationMs, durationMs, elapsedMs, type EpochMs } from '../contracts/units.ts';
import type { TickDecision } from '../core/decide-tick.ts';
import { isWorking } from '../core/model/attempt-life.ts';
import { stageAt, taskOfAttempt } from '../core/model/job-state.ts';
import { awaitsInputs } from '../core/model/lost-outputs.ts';
import {
  type AttemptView,
  foundNoPlace,
  isDeclined,
  isUnclaimed,
  type JobState,
} from '../core/model/job-view.ts';
import { wasPickedUp } from '../core/model/packs.ts';
import { workerOf } from '../core/model/stage-worker.ts';
import {
  type LaunchRoom,
  type RefusedRoom,
  takesRoom,
  type TickBudget,
  type TickConfig,
} from '../core/model/tick-config.ts';
import { tasksElsewhere, type WorkerTerms } from '../core/policy/leave-lambda.ts';
import { type OwnPlaces, ownPlaces } from '../core/policy/own-places.ts';
import { slotDemand } from '../core/policy/owed-launches.ts';
import { quantileOf } from '../lib/sorted-numbers.ts';
import type { Launcher } from '../ports/launcher.ts';
import type { LaunchQueue } from './launch-queue.ts';
import { type OwnLaunches, SharedRoom } from './shared-room.ts';

/** What a scheduler was waiting for when it looked last, and where what is learned of it is kept. */
export interface LaunchWatch {
  readonly room: SharedRoom;
  readonly waiting: Set<AttemptView>;
  readonly late: Set<AttemptView>;
  /** Launches that were refused since it looked last for their service's rate or want of concurrency. */
  readonly throttled: Record<Worker['kind'], number>;
}

/** Copies that stages of a job can use, clones and backups, by the place of the stage. */
export type StageCopies = ReadonlyMap<number, number>;

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
  throttled: { lambda: 0, fargate: 0 },
});

/**
 * Notes for the pace of later ones which launches on Fargate were accepted and found no place, as ECS tells some minutes
 * after RunTask; those that were claimed are waited for no more.
 */
export function watchUnplaced({
  state,
  watch: { waiting },
  launches,
}: {
  readonly state: JobState;
  readonly watch: Pick<LaunchWatch, 'waiting'>;
  readonly launches: Pick<LaunchQueue, 'noteRefusal'>;
}): void {
  let isRefused = false;
  for (const attempt of waiting) {
    const { kind } = workerOf(stageAt(state, attempt.stage), attempt);
    if (attempt.state === 'launched' || kind !== 'fargate') continue;
    waiting.delete(attempt);
    isRefused ||= foundNoPlace(attempt);
  }
  if (isRefused) launches.noteRefusal('fargate');
}

/** Attempts of a job that run, and so are known to have room. */
export const runningOf = ({ live }: Pick<JobState, 'live'>): number => [...live].filter(isWorking).length;

/** The launches that a scheduler makes. */
type LaunchesMade = Pick<LaunchQueue, 'roomOf'>;

/** Kinds of workers whose launches wait for room unseen. */
type Kinds = ReadonlySet<Worker['kind']>;

const waitingKinds = (launcher: Launcher): Kinds =>
  new Set(workerKinds.filter((kind) => launcher.terms?.(kind).waits === true));

/** Whether a launch of an attempt waits for room unseen: one that has left Lambda for Fargate does not. */
const waitsFor = (state: JobState, kinds: Kinds, attempt: AttemptView): boolean =>
  kinds.has(workerOf(stageAt(state, attempt.stage), attempt).kind);

/** Places of the stages whose launches wait for room unseen. */
const waitingStages = ({ stages }: JobState, kinds: Kinds): ReadonlySet<number> =>
  new Set(stages.filter((stage) => kinds.has(workerOf(stage).kind)).map(({ index }) => index));

/** How long the launches took that were claimed since the last look, as the scheduler saw it. */
function takeClaims({ waiting, late }: LaunchWatch, state: JobState, kinds: Kinds, now: EpochMs): number[] {
  const lags: number[] = [];
  for (const attempt of waiting) {
    if (attempt.state === 'launched') continue;
    waiting.delete(attempt);
    late.delete(attempt);
    // Fargate's minute says nothing of how long Lambda takes, nor does a worker that was there already.
    if (attempt.claimedAt !== undefined && waitsFor(state, kinds, attempt) && !wasPickedUp(state, attempt))
      lags.push(elapsedMs(attempt.launchedAt, now));
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

/** Attempts that ride and are to get places of their own, by the place of their stage. */
function leavingByStage({ leaving: riders }: OwnPlaces): ReadonlyMap<number, number> {
  const leaving = new Map<number, number>();
  for (const { stage } of riders) leaving.set(stage, (leaving.get(stage) ?? 0) + 1);
  return leaving;
}

/**
 * Attempts that a job is owed and copies that it can use: those that need room, and those that do not; of these as many as
 * may begin where launches are refused, of which `beyond` more are owed.
 */
function owedOf(
  state: JobState,
  { own, copies }: { readonly own: OwnPlaces; readonly copies: StageCopies },
  {
    stages,
    elsewhere,
    refused,
  }: Omit<LaunchRoom, 'launches' | 'refused'> & { readonly refused?: Refusing | undefined },
): { readonly here: number; readonly others: number; readonly beyond: number } {
  let [here, others, refusedOwed, refusedCopies] = [0, 0, 0, 0];
  const leaving = leavingByStage(own);
  const owedElsewhere = new Map<number, number>();
  for (const task of elsewhere ?? [])
    if (task.isFirstOwed || stageAt(state, task.stage).retryable.has(task))
      owedElsewhere.set(task.stage, (owedElsewhere.get(task.stage) ?? 0) + 1);
  for (const stage of state.stages) {
    const { index, retryable, unstarted } = stage;
    if (stage.state !== 'open') continue;
    const owed = retryable.size + unstarted + (copies.get(index) ?? 0) + (leaving.get(index) ?? 0);
    const away = stages.has(index) ? (owedElsewhere.get(index) ?? 0) : owed;
    here += owed - away;
    if (refused === undefined || !(refused.stages.has(index) || stages.has(index))) others += away;
    else {
      const copied = Math.min(away, stages.has(index) ? 0 : (copies.get(index) ?? 0));
      // No slot is asked for by stages that wait for their inputs.
      if (!awaitsInputs(state, stage)) refusedOwed += away - copied;
      refusedCopies += copied;
    }
  }
  const launches = refused?.launches ?? 0;
  return {
    here,
    others: others + Math.min(launches, refusedOwed + refusedCopies),
    beyond: Math.max(0, refusedOwed - launches),
  };
}

type Refusing = Pick<RefusedRoom, 'stages' | 'launches'>;

/** What may begin on Fargate while it refuses launches of the job; undefined where it takes them as they come, or lets them wait. */
function refusalsOf(state: JobState, launches: LaunchesMade | undefined): Refusing | undefined {
  const room = launches?.roomOf('fargate') ?? Infinity;
  if (room === Infinity) return undefined;
  const stages = state.stages.filter((stage) => workerOf(stage).kind === 'fargate');
  return { stages: new Set(stages.map(({ index }) => index)), launches: room };
}

/** What a tick brings besides the job's state. */
interface TickLook {
  readonly now: EpochMs;
  /** They need room as first attempts do. */
  readonly copies: StageCopies;
  /** Riders that are to get places of their own; absent: to be found out. */
  readonly own?: OwnPlaces;
  /** What it has of what is shared: its weight, and the slots that are its own. Absent: as everybody, and none. */
  readonly share?: { readonly weight: number | undefined; readonly guaranteed: number } | undefined;
  /** What tasks took in earlier runs of the job, by which they go to Fargate from the first. Absent: nothing is known. */
  readonly earlierMs?: WorkerTerms['earlierMs'] | undefined;
}

/** Takes how many launches of these kinds were refused since the last look. */
function takeThrottled({ throttled }: LaunchWatch, kinds: Kinds): number {
  let sum = 0;
  for (const kind of workerKinds) {
    if (kinds.has(kind)) sum += throttled[kind];
    throttled[kind] = 0;
  }
  return sum;
}

function look(
  watch: LaunchWatch,
  state: JobState,
  kinds: Kinds,
  {
    now,
    owed,
    stages,
    share,
  }: Pick<TickLook, 'now' | 'share'> & { readonly owed: number; readonly stages: ReadonlySet<number> },
): OwnLaunches {
  const claimLagsMs = takeClaims(watch, state, kinds, now);
  const patienceMs = watch.room.patienceMs(claimLagsMs);
  const holdMs = watch.room.holdMs(runMsOf(state, stages));
  let [running, starting, turnedLate, held] = [0, 0, 0, 0];
  for (const attempt of state.live) {
    if (!waitsFor(state, kinds, attempt)) continue;
    // One that is about to be taken up by the worker of those before it waits for no room.
    if (isWorking(attempt) || attempt.place === 'carrier') {
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
  const throttled = takeThrottled(watch, kinds);
  const late = watch.late.size;
  // Of the slots that are its own, others may be used where nothing has to wait for room.
  const elsewhere = state.live.size - running - starting - late;
  const guaranteed = Math.max(0, (share?.guaranteed ?? 0) - elsewhere);
  const own = { running, starting, held, late, owed, weight: share?.weight, guaranteed };
  return { ...own, now, turnedLate, claimLagsMs, throttled };
}

/** Whether a launch came to nothing in the queue: one that was declined had room. */
const isRenewed = (attempt: AttemptView): boolean => isUnclaimed(attempt) && !isDeclined(attempt);

/**
 * Late launches to make anew: where nothing else is owed and less runs than is known to have room, their environments
 * stand idle while they wait out a pause of Lambda's queue, which may last five minutes. Oldest first, each task a few
 * times, and no more than a twentieth of all unless they have waited for long.
 */
function launchesToRenew(
  watch: LaunchWatch,
  state: JobState,
  seen: OwnLaunches,
  own: OwnPlaces,
): readonly AttemptId[] {
  if (slotDemand(state, own) > state.live.size) return [];
  const { idle } = watch.room;
  if (idle <= 0) return [];
  const afterMs = durationMs(Math.max(leastRenewMs, renewFactor * watch.room.patienceMs([])));
  const mayRenew = ({ stage, task, launchedAt }: AttemptView): boolean => {
    const attempts = stageAt(state, stage).tasks[task]?.attempts ?? [];
    return (
      elapsedMs(launchedAt, seen.now) > afterMs &&
      attempts.filter(isRenewed).length < limits.renewedLaunchesPerTask
    );
  };
  const oldest = [...watch.late]
    .filter(mayRenew)
    .sort((a, b) => a.launchedAt - b.launchedAt || (a.id < b.id ? -1 : 1));
  if (oldest.length === 0) return [];
  const waited = oldest.filter(({ launchedAt }) => elapsedMs(launchedAt, seen.now) > longWaitMs).length;
  const renewed = [...state.attempts.values()].filter(isRenewed).length;
  const left = Math.floor(state.attempts.size * renewedShare) - renewed;
  return oldest.slice(0, Math.min(idle, Math.max(waited, left))).map(({ id }) => id);
}

/** What a tick may launch in stages whose launches wait unseen, and which of those that wait it makes anew. */
export interface Outlook {
  readonly room: Omit<LaunchRoom, 'launches'>;
  /** Launches that are the job's part of the room, also where others have not left it yet. */
  readonly part: number;
  /** Attempts and copies that the job can use and that need none of the room, without those that would be refused. */
  readonly others: number;
  readonly renewed: readonly AttemptId[];
}

/** Looks at the job's launches, and learns from them. Undefined where none wait unseen, and none are refused. */
export function watchLaunches(
  { launcher }: { readonly launcher: Launcher },
  session: {
    readonly jobId: JobId;
    readonly state: JobState;
    readonly watch: LaunchWatch;
    readonly tickConfig: Pick<TickConfig, 'hasFargate' | 'lambdaMs'>;
    /** Absent: Fargate takes launches as they come. */
    readonly launches?: LaunchesMade;
  },
  { now, copies, share, earlierMs, own: known }: TickLook,
): Outlook | undefined {
  const { state, watch, tickConfig } = session;
  const kinds = waitingKinds(launcher);
  const stages = waitingStages(state, kinds);
  const refusing = refusalsOf(state, session.launches);
  if (stages.size === 0 && refusing === undefined) return undefined;
  const own = known ?? ownPlaces(state, now);
  const terms = { ...tickConfig, ...(earlierMs === undefined ? {} : { earlierMs }) };
  const elsewhere = tasksElsewhere(state, kinds, { stages }, terms);
  const places = { stages, elsewhere, refused: refusing };
  const { here: owed, others, beyond } = owedOf(state, { own, copies }, places);
  const refused = refusing && { ...refusing, beyond };
  const room = { stages, elsewhere, ...(refused && { refused }) };
  if (stages.size === 0) return { room, part: 0, others, renewed: [] };
  const seen = look(watch, state, kinds, { now, owed, stages, share });
  const part = watch.room.see(session.jobId, seen);
  const renewed = launchesToRenew(watch, state, seen, own);
  return { room, part, others, renewed };
}

/** The most attempts that a job could have running at once; Infinity where none of its launches wait, or more may be found. */
export function mostPlaces(
  { launcher }: { readonly launcher: Launcher },
  { jobId, state, watch }: { readonly jobId: JobId; readonly state: JobState; readonly watch: LaunchWatch },
): number {
  const kinds = waitingKinds(launcher);
  const waitAll = state.stages.every((stage) => stage.state === 'done' || kinds.has(workerOf(stage).kind));
  return waitAll ? Math.max(runningOf(state), watch.room.mostOf(jobId)) : Infinity;
}

/** Slots that a job can use: for what runs, for what needs no room and is not refused, and for its part of the room. */
export const usableSlots = ({ live }: Pick<JobState, 'live'>, { part, others }: Outlook): number =>
  live.size + others + part;

/** Takes room for what the job could launch with its slots; what it does not launch of it is to be given back. */
export const takeRoom = (
  { jobId, watch }: { readonly jobId: JobId; readonly watch: LaunchWatch },
  outlook: Outlook | undefined,
  able: number,
): Pick<TickBudget, 'room' | 'renewed'> =>
  outlook === undefined
    ? {}
    : { room: { ...outlook.room, launches: watch.room.take(jobId, able) }, renewed: outlook.renewed };

/** Gives back the room for launches that a tick does not make; before its decisions are taken over. */
export function giveBackRoom(
  { jobId, state, watch }: { readonly jobId: JobId; readonly state: JobState; readonly watch: LaunchWatch },
  { room }: Pick<TickBudget, 'room'>,
  { decisions }: Pick<TickDecision, 'decisions'>,
): void {
  // One that rides, or that its worker is about to take up, needs no place of its own.
  const made = decisions.filter(
    (each) =>
      each.kind === 'launch' &&
      each.behind === undefined &&
      state.attempts.get(each.attemptId)?.place !== 'carrier' &&
      takesRoom(room, taskOfAttempt(state, each.attemptId)),
  );
  watch.room.giveBack(jobId, (room?.launches ?? 0) - made.length);
}
