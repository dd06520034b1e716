import { JobFailedError } from '../contracts/errors.ts';
import type { JobId } from '../contracts/ids.ts';
import { finalJobStates, type JobRecord } from '../contracts/records.ts';
import { durationMs, type EpochMs, later } from '../contracts/units.ts';
import { residentsWanted, residentWeight } from '../core/model/resident-load.ts';
import type { RosterJob, RosterView, TakenSeat } from '../ports/roster.ts';
import { findJob } from './query-jobs.ts';
import type { ResidentDeps } from './resident-deps.ts';
import { type Seating, SeatWatch, seatMs, viewLimit } from './resident-home.ts';

/** A job and the token by which its state machine waits. */
export interface ScheduleRequest {
  readonly jobId: JobId;
  readonly token: string;
}

/** Which invocation this is, and the end of its time. */
export interface Invocation {
  readonly owner: string;
  readonly until: EpochMs;
}

/** Looks at a resident that may be dead: for longer than any seat is kept without a word. */
const mostLooks = 60;
const lookMs = durationMs(1_000);

const weightOf = ({ stages }: JobRecord): number =>
  residentWeight(stages.reduce((most, { tasks }) => Math.max(most, tasks), 1));

/** A seat among the `residents` that nobody has; undefined where all are taken. */
async function takeSeat(
  deps: ResidentDeps,
  watch: SeatWatch,
  { owner }: Invocation,
): Promise<TakenSeat | undefined> {
  for (let number = 0; number < deps.residents; number++) {
    const now = deps.clock.now();
    const { seen, isFree } = watch.seat(number, now);
    if (!isFree) continue;
    const seat = { number, resident: owner, until: later(now, seatMs(deps)) };
    if ((await deps.roster.sit(seat, seen)) === 'seated') return seat;
  }
  return undefined;
}

/**
 * Whether somebody serves a job, or will once there is room. One that comes again may come because its resident has
 * died, or because all have: then somebody must be seen to live, its own resident where it had one.
 */
function isServed(watch: SeatWatch, now: EpochMs, before: RosterJob | undefined): boolean {
  const living = watch.living(now);
  if (before === undefined) return living.size > 0;
  const proven = watch.provenTo(now);
  const { resident } = before;
  return resident !== undefined && living.has(resident) ? proven.has(resident) : proven.size > 0;
}

/** Whether this invocation is to be a resident itself: it has a seat then. Otherwise there are enough. */
async function seatFor(
  deps: ResidentDeps,
  invocation: Invocation,
  before: RosterJob | undefined,
): Promise<{ readonly seating: Seating | undefined; readonly view: RosterView }> {
  const watch = new SeatWatch(seatMs(deps));
  for (let looks = 0; ; looks++) {
    const view = await deps.roster.view(viewLimit(deps));
    const now = deps.clock.now();
    watch.look(view, now);
    const weights = view.jobs.map(({ weight }) => weight);
    if (watch.living(now).size < residentsWanted(weights, deps.residents)) {
      const seat = await takeSeat(deps, watch, invocation);
      if (seat !== undefined) return { seating: { seat, watch }, view };
    }
    if (isServed(watch, now, before) || looks >= mostLooks) return { seating: undefined, view };
    await deps.clock.sleep(lookMs);
  }
}

/**
 * Puts a job on the roster and sees to it that somebody serves it: a resident that lives, or this invocation itself,
 * which then has a seat and must reside there. The job's end is told to its token alone. May be repeated, also while an
 * earlier call is resident. Throws `JobFailedError` where the job has ended.
 */
export async function enlistJob(
  deps: ResidentDeps,
  { jobId, token }: ScheduleRequest,
  invocation: Invocation,
): Promise<Seating | undefined> {
  const job = await findJob(deps.jobs, jobId);
  const { createdAt } = job;
  if (finalJobStates.includes(job.state))
    throw new JobFailedError(`job ${jobId} has ended`, { state: job.state });
  const before = await deps.roster.find({ jobId, createdAt });
  const now = deps.clock.now();
  const enlistedAt = before?.enlistedAt ?? now;
  await deps.roster.enlist(
    { jobId, createdAt, weight: weightOf(job), mark: invocation.owner, enlistedAt },
    token,
  );
  const { seating, view } = await seatFor(deps, invocation, before);
  if (seating !== undefined) return seating;
  const load = view.jobs.reduce((sum, { weight }) => sum + weight, 0);
  if (load > deps.residents && before === undefined) {
    deps.log.info('waiting for a scheduler', { jobId, load, residents: deps.residents });
    await deps.jobs.update(jobId, ['running'], { waitingSince: now });
  }
  return undefined;
}
