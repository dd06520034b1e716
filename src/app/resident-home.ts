import { limits } from '../contracts/limits.ts';
import type { JobId } from '../contracts/ids.ts';
import { type DurationMs, durationMs, elapsedMs, type EpochMs, epochMs } from '../contracts/units.ts';
import type { RosterJob, RosterView, Seat, TakenSeat } from '../ports/roster.ts';
import type { ResidentDeps } from './resident-deps.ts';

/** A job that a resident serves. Changed by the resident alone. */
export interface ServedJob {
  /** As it was last seen on the roster. */
  job: RosterJob;
  readonly stop: AbortController;
  done: Promise<void>;
  /** Since when nobody waits for its token. */
  goneSince?: EpochMs;
}

/** A seat that was taken, and the watch by which it was: a resident knows from there who lives. */
export interface Seating {
  readonly seat: TakenSeat;
  readonly watch: SeatWatch;
}

/** One resident: its seat, its jobs, and what wakes it. */
export interface ResidentHome {
  readonly owner: string;
  /** The job whose state machine has begun it. */
  readonly begunFor: JobId;
  readonly until: EpochMs;
  seat: TakenSeat;
  readonly watch: SeatWatch;
  readonly jobs: Map<JobId, ServedJob>;
  /** Fires when a job of it has ended. */
  wake: AbortController;
  beatAt: EpochMs;
  /** Whether jobs were on the roster, when it was last seen, of whose residents nobody knows whether they live. */
  isInDoubt: boolean;
  /** Since when, by its own clock, it has seen jobs that nobody serves. */
  waits: ReadonlyMap<JobId, EpochMs>;
  /** Signs of life for jobs beyond its view: when they last began, and those under way. */
  readonly farBeats: { at: EpochMs; underWay?: Promise<void> };
  /** Of the look at the roster that was begun last: fires when it has ended. Kept until that is seen. */
  round?: AbortSignal;
  /** Fires when it leaves: from then on it takes on no job. */
  readonly left: AbortController;
}

const taskHeartbeatMs = limits.taskHeartbeatSeconds * 1_000;
/** Signs of life come so often that two may be lost. */
export const beatEveryMs = durationMs(taskHeartbeatMs / 4);
/** Those for jobs that stand behind all that residents look at, so that one may be lost: there may be thousands. */
export const farBeatEveryMs = durationMs(taskHeartbeatMs / 2);
/** A token for which nobody waits may be followed by another for so long. */
export const goneGraceMs = durationMs(taskHeartbeatMs * 2);
/** A job that has waited for so long is taken on by a full resident, too. */
export const patienceMs = durationMs(30_000);
/** Before its time is up a resident leaves in order. */
export const leavingMs = durationMs(5_000);

/** Jobs of the roster that are of interest at once: those of all residents, and as many again that wait. */
export const viewLimit = ({ residents }: ResidentDeps): number =>
  (residents + 1) * limits.mostJobsPerResident;

const isTaken = (seat: Seat): seat is TakenSeat => seat.resident !== undefined;

/**
 * Who of the residents lives, judged by the watcher's own clock alone: whose seat has not changed for as long as a seat
 * is kept without a word is dead. At first sight everybody lives.
 */
export class SeatWatch {
  private readonly seen = new Map<number, { readonly seat: Seat; readonly since: EpochMs }>();
  private readonly proven = new Set<string>();
  private readonly patience: DurationMs;

  constructor(patience: DurationMs) {
    this.patience = patience;
  }

  /** Takes a look at the seats. */
  look({ seats }: RosterView, now: EpochMs): void {
    for (const seat of seats) {
      const before = this.seen.get(seat.number);
      const isSame = before?.seat.resident === seat.resident && before?.seat.until === seat.until;
      if (isSame) continue;
      if (before !== undefined && seat.resident !== undefined) this.proven.add(seat.resident);
      this.seen.set(seat.number, { seat, since: now });
    }
  }

  /** Residents that are not known to be dead; `but` is left out. */
  living(now: EpochMs, but?: string): ReadonlySet<string> {
    const living = new Set<string>();
    for (const { seat, since } of this.seen.values())
      if (seat.resident !== undefined && seat.resident !== but && elapsedMs(since, now) < this.patience)
        living.add(seat.resident);
    return living;
  }

  /** Seats whose residents are dead, whatever their numbers; `but` is left out. */
  dead(now: EpochMs, but: string): readonly TakenSeat[] {
    return [...this.seen.values()].flatMap(({ seat, since }) =>
      isTaken(seat) && seat.resident !== but && elapsedMs(since, now) >= this.patience ? [seat] : [],
    );
  }

  /** Living residents whose seat has changed under this watch; of others nobody knows. `but` is left out. */
  provenTo(now: EpochMs, but?: string): ReadonlySet<string> {
    return new Set([...this.living(now, but)].filter((resident) => this.proven.has(resident)));
  }

  /** The seat of a number as it was seen, and whether one may sit there. */
  seat(number: number, now: EpochMs): { readonly seen: Seat | undefined; readonly isFree: boolean } {
    const found = this.seen.get(number);
    if (found === undefined) return { seen: undefined, isFree: true };
    const { seat, since } = found;
    return { seen: seat, isFree: seat.resident === undefined || elapsedMs(since, now) >= this.patience };
  }
}

/** Jobs that nobody serves who lives, oldest first. */
export const unserved = (view: RosterView, living: ReadonlySet<string>): readonly RosterJob[] =>
  view.jobs.filter(({ resident }) => resident === undefined || !living.has(resident));

/** Takes note of the jobs that nobody serves; those that were seen before have waited since then. */
export function noteWaits(home: ResidentHome, jobs: readonly RosterJob[], now: EpochMs): void {
  home.waits = new Map(jobs.map(({ jobId }) => [jobId, home.waits.get(jobId) ?? now]));
}

/**
 * Since when a job waits: since it was enlisted, so that nobody's patience begins anew at each hand-over. Where that lies after
 * it was first seen here, since then: the clock of whoever enlisted it may be an hour ahead.
 */
export const waitsSince = ({ waits }: ResidentHome, { jobId, enlistedAt }: RosterJob): EpochMs =>
  epochMs(Math.min(enlistedAt, waits.get(jobId) ?? enlistedAt));

/** How long a seat is kept without a word. */
export const seatMs = ({ config }: ResidentDeps): DurationMs => config.leaseMs;
