import { ErrorName } from '../contracts/errors.ts';
import type { JobId } from '../contracts/ids.ts';
import { limits } from '../contracts/limits.ts';
import { durationMs, elapsedMs, type EpochMs, epochMs, later } from '../contracts/units.ts';
import { hasRoom } from '../core/model/resident-load.ts';
import { forEachBounded } from '../lib/bounded.ts';
import type { RosterJob, RosterPage, RosterView } from '../ports/roster.ts';
import type { ResidentDeps } from './resident-deps.ts';
import {
  beatEveryMs,
  farBeatEveryMs,
  goneGraceMs,
  leavingMs,
  noteWaits,
  patienceMs,
  type ResidentHome,
  type Seating,
  seatMs,
  type ServedJob,
  unserved,
  viewLimit,
  waitsSince,
} from './resident-home.ts';
import { serveJob, strikeAny } from './serve-job.ts';
import { SharedRoom } from './shared-room.ts';

/** Beyond any stay at 20 rounds a second. */
const mostRounds = 100_000;
const parallelCalls = 8;
/** Jobs that are told of a hand-over one after the other until one hears of it. */
const mostHeirs = 5;
/** Jobs that are spoken for beyond those of a view, page by page: as many as there is time for at a hundred a second. */
const farPageJobs = 100;
const farPageMs = durationMs(1_000);
const mostFarPages = 15;
/** A job that waits for no longer has a new token: no sign of life is due yet. */
const freshMs = 5_000;

const weightsOf = (home: ResidentHome): readonly number[] =>
  [...home.jobs.values()].map(({ job }) => job.weight);

const fits = (home: ResidentHome, job: RosterJob, now: EpochMs): boolean =>
  hasRoom(
    weightsOf(home),
    { weight: job.weight, waitedMs: elapsedMs(waitsSince(home, job), now) },
    patienceMs,
  );

const hasLeft = ({ left }: ResidentHome): boolean => left.signal.aborted;

/** Keeps the seat once half of its time is over. False where somebody else sits there, or it ran out unheard. */
async function keepSeat(deps: ResidentDeps, home: ResidentHome, now: EpochMs): Promise<boolean> {
  const leftMs = home.seat.until - now;
  if (leftMs > seatMs(deps) / 2 && leftMs <= seatMs(deps)) return true;
  const seat = { ...home.seat, until: later(now, seatMs(deps)) };
  try {
    if ((await deps.roster.stay(seat)) === 'lost') return false;
  } catch (cause) {
    deps.log.warn('seat not kept', { owner: home.owner, cause: String(cause) });
    return home.seat.until > now;
  }
  home.seat = seat;
  return true;
}

function begin(deps: ResidentDeps, home: ResidentHome, job: RosterJob): void {
  const served: ServedJob = { job, stop: new AbortController(), done: Promise.resolve() };
  home.jobs.set(job.jobId, served);
  // What it asks for, and its share of the time, are that job's.
  const serve = (): Promise<void> => serveJob(deps, home, served);
  const serving = deps.requests === undefined ? serve() : deps.requests.counting(job.jobId, serve);
  served.done = serving.finally(() => {
    home.jobs.delete(job.jobId);
    home.wake.abort();
  });
}

/** Takes on what nobody serves who lives, oldest first, as far as there is room. */
async function adopt(deps: ResidentDeps, home: ResidentHome, view: RosterView, now: EpochMs): Promise<void> {
  for (const job of unserved(view, home.watch.living(now, home.owner))) {
    const served = home.jobs.get(job.jobId);
    if (served !== undefined) {
      served.job = job;
      continue;
    }
    if (hasLeft(home) || !fits(home, job, now)) return; // Those that are younger come after it.
    const taken = await deps.roster.take(job, { from: job.resident, resident: home.owner });
    if (taken === 'stale') continue;
    if (hasLeft(home)) {
      await deps.roster.giveBack(job, home.owner); // That call hung until we had left.
      return;
    }
    begin(deps, home, job);
    // It may have come from one that was silent for long.
    if (elapsedMs(waitsSince(home, job), now) >= freshMs) await beat(deps, home, [job], now);
  }
}

/** Signs of life for jobs; one for whose token nobody has waited for long is left. */
async function beat(
  deps: ResidentDeps,
  home: ResidentHome,
  jobs: readonly RosterJob[],
  now: EpochMs,
): Promise<void> {
  const tokens = await deps.roster.tokens(jobs.map(({ jobId }) => jobId));
  await forEachBounded(jobs, parallelCalls, async (job) => {
    const token = tokens.get(job.jobId);
    if (token === undefined || hasLeft(home)) return;
    const outcome = await deps.answers.beat(token.token);
    const served = home.jobs.get(job.jobId);
    if (outcome === 'answered') {
      if (served !== undefined) delete served.goneSince;
      return;
    }
    // Its execution has ended, or will enlist it anew under another token.
    const since = served === undefined ? waitsSince(home, job) : (served.goneSince ??= now);
    // Whoever leaves has itself answered a token, for which another follows.
    if (elapsedMs(since, now) < goneGraceMs || hasLeft(home)) return;
    served?.stop.abort();
    await strikeAny(deps, job, [token.mark, job.mark]);
  });
}

/** The resident of the first seat speaks also for the jobs that nobody serves yet. */
async function beatAll(
  deps: ResidentDeps,
  home: ResidentHome,
  view: RosterView,
  now: EpochMs,
): Promise<void> {
  home.beatAt = now;
  const living = home.watch.living(now, home.owner);
  const others = view.seats.filter(({ resident }) => resident !== undefined && living.has(resident));
  const isFirst = others.every(({ number }) => number > home.seat.number);
  const waiting = isFirst ? unserved(view, living).filter(({ jobId }) => !home.jobs.has(jobId)) : [];
  if (isFirst) beginFarBeats(deps, home, view, now);
  await beat(deps, home, [...[...home.jobs.values()].map(({ job }) => job), ...waiting], now);
}

/**
 * Begins signs of life for the jobs that stand behind those of a view, unless they are under way. Beside the rounds: there may
 * be thousands of them, and none that is served waits for theirs.
 */
function beginFarBeats(deps: ResidentDeps, home: ResidentHome, { next }: RosterView, now: EpochMs): void {
  const { farBeats } = home;
  const isDue = now < farBeats.at || elapsedMs(farBeats.at, now) >= farBeatEveryMs;
  if (next === undefined || farBeats.underWay !== undefined || !isDue) return;
  farBeats.at = now;
  farBeats.underWay = beatBehind(deps, home, next)
    .catch((cause: unknown) => {
      deps.log.warn('no signs of life for jobs that wait', { owner: home.owner, cause: String(cause) });
    })
    .finally(() => {
      delete farBeats.underWay;
    });
}

async function beatBehind(deps: ResidentDeps, home: ResidentHome, from: string): Promise<void> {
  let next: string | undefined = from;
  for (let page = 0; page < mostFarPages && next !== undefined && !hasLeft(home); page++) {
    const found: RosterPage = await deps.roster.after(next, farPageJobs);
    const now = deps.clock.now();
    const living = home.watch.living(now, home.owner);
    const waiting = unserved({ ...found, seats: [] }, living).filter(({ jobId }) => !home.jobs.has(jobId));
    await beat(deps, home, waiting, now);
    next = found.next;
    if (next !== undefined) await deps.clock.sleep(farPageMs, home.left.signal);
  }
}

async function look(deps: ResidentDeps, home: ResidentHome): Promise<RosterView> {
  const view = await deps.roster.view(viewLimit(deps));
  const now = deps.clock.now();
  home.watch.look(view, now);
  noteWaits(home, unserved(view, home.watch.living(now)), now);
  home.isInDoubt = unserved(view, home.watch.provenTo(now, home.owner)).length > 0;
  return view;
}

/**
 * Empties the seats of the dead: whoever comes next sees them for the first time, and would take their residents for
 * living, and its job for served by them.
 */
async function vacateDead({ roster, clock }: ResidentDeps, { watch, owner }: ResidentHome): Promise<void> {
  await forEachBounded(watch.dead(clock.now(), owner), parallelCalls, (seat) => roster.vacate(seat));
}

/** One look at the roster, where there is room for more or it is time for signs of life. */
async function round(deps: ResidentDeps, home: ResidentHome, now: EpochMs): Promise<void> {
  const isBeatDue = now < home.beatAt || elapsedMs(home.beatAt, now) >= beatEveryMs;
  const least = { weight: 1 / limits.jobsPerResident, waitedMs: 0 };
  if (!isBeatDue && !hasRoom(weightsOf(home), least, patienceMs)) return;
  const view = await look(deps, home);
  await adopt(deps, home, view, now);
  if (isBeatDue) await beatAll(deps, home, view, now);
  await vacateDead(deps, home);
}

/**
 * Begins a look at the roster, unless one is under way, and waits for its end for a tick at most: one call of it that hangs
 * must not cost the seat, and with it all jobs. True where a look has ended; of one that took longer a later call tells,
 * before it begins the next: whoever is idle would look for ever where each takes longer than a tick.
 */
async function lookAround(deps: ResidentDeps, home: ResidentHome, now: EpochMs): Promise<boolean> {
  home.round ??= beginRound(deps, home, now);
  await deps.clock.sleep(deps.config.tickMs, home.round);
  if (!home.round.aborted) return false;
  delete home.round;
  return true;
}

/** The signal fires when it has ended. */
function beginRound(deps: ResidentDeps, home: ResidentHome, now: EpochMs): AbortSignal {
  const over = new AbortController();
  void paidByOldest(deps, home, () => round(deps, home, now))
    .catch((cause: unknown) => {
      deps.log.warn('roster not seen', { owner: home.owner, cause: String(cause) });
    })
    .finally(() => {
      over.abort();
    });
  return over.signal;
}

/** Waits for the look under way, but not for one that hangs: it takes on nothing more once its resident leaves. */
async function endRound(deps: ResidentDeps, home: ResidentHome): Promise<void> {
  const { round: underWay } = home;
  delete home.round;
  if (underWay !== undefined) await deps.clock.sleep(leavingMs, underWay);
}

/**
 * What a resident asks for on its own account is counted with one of its jobs, which takes turns as jobs end, and with
 * the job that it was begun for until it serves one.
 */
function paidByOldest<T>(deps: ResidentDeps, home: ResidentHome, work: () => Promise<T>): Promise<T> {
  const [oldest = home.begunFor] = home.jobs.keys();
  return deps.requests === undefined ? work() : deps.requests.counting(oldest, work);
}

async function stopAll(home: ResidentHome): Promise<void> {
  const all = [...home.jobs.values()];
  for (const { stop } of all) stop.abort();
  await Promise.all(all.map(({ done }) => done));
}

/**
 * Gives the seat up, and looks once more: whoever enlisted a job while we sat there relies on us. True where nothing is
 * left to serve but by others that are seen to live, or others sit there now.
 */
async function leave(deps: ResidentDeps, home: ResidentHome): Promise<boolean> {
  await deps.roster.leave(home.seat);
  const view = await look(deps, home);
  if (!home.isInDoubt) return true;
  const now = deps.clock.now();
  const seat = { ...home.seat, until: later(now, seatMs(deps)) };
  const seen = view.seats.find(({ number }) => number === seat.number);
  if (seen?.resident !== undefined || (await deps.roster.sit(seat, seen)) === 'occupied') return true;
  home.seat = seat;
  return false;
}

/**
 * Leaves all jobs to others, and has one state machine start the next resident: a chain of functions that call
 * themselves would be cut as a loop.
 */
async function handOver(deps: ResidentDeps, home: ResidentHome): Promise<void> {
  home.left.abort();
  await stopAll(home); // First, while the seat is ours.
  await deps.roster.leave(home.seat);
  await endRound(deps, home);
  const view = await look(deps, home);
  const heirs = unserved(view, home.watch.living(deps.clock.now(), home.owner)).slice(0, mostHeirs);
  const tokens = await deps.roster.tokens(heirs.map(({ jobId }) => jobId));
  const failure = { error: ErrorName.HandOver, cause: 'the time of its scheduler was up' };
  for (const { token } of tokens.values())
    if ((await deps.answers.fail(token, failure)) === 'answered') return;
}

/**
 * Sits in a seat that it has taken, and serves the jobs of the roster, many at once, until there are none, somebody
 * else has taken the seat, or its time is nearly up. What goes wrong with one job ends none of the others.
 */
export async function reside(
  host: ResidentDeps,
  { seat, watch }: Seating,
  { until, jobId }: { readonly until: EpochMs; readonly jobId: JobId },
): Promise<void> {
  const deps: ResidentDeps = { ...host, room: new SharedRoom() };
  const home: ResidentHome = {
    owner: seat.resident,
    begunFor: jobId,
    until,
    seat,
    watch,
    jobs: new Map(),
    wake: new AbortController(),
    beatAt: epochMs(0),
    isInDoubt: true,
    waits: new Map(),
    farBeats: { at: epochMs(0) },
    left: new AbortController(),
  };
  deps.log.info('seated', { owner: home.owner, seat: seat.number });
  try {
    for (let rounds = 0; rounds < mostRounds; rounds++) {
      const now = deps.clock.now();
      if (later(now, leavingMs) >= until) {
        await handOver(deps, home);
        return;
      }
      if (!(await paidByOldest(deps, home, () => keepSeat(deps, home, now)))) {
        deps.log.warn('seat lost', { owner: home.owner, seat: seat.number });
        return;
      }
      home.wake = new AbortController();
      const hasLooked = await lookAround(deps, home, now);
      // Whoever has a job's resident for dead may rely on us, who have not watched it for as long.
      const isIdle = hasLooked && home.jobs.size === 0 && !home.isInDoubt;
      if (isIdle && (await leave(deps, home))) return;
      await deps.clock.sleep(deps.config.tickMs, home.wake.signal);
    }
  } finally {
    home.left.abort();
    await stopAll(home);
    await endRound(deps, home);
    await home.farBeats.underWay;
    deps.log.info('left', { owner: home.owner, seat: seat.number });
  }
}
