import type { JobId } from '../contracts/ids.ts';
import type { EpochMs } from '../contracts/units.ts';

/** Where a job stands on the roster: by its age, so that the oldest comes first. */
export interface RosterPlace {
  readonly jobId: JobId;
  readonly createdAt: EpochMs;
}

/** A job that asks for a scheduler. */
export interface EnlistedJob extends RosterPlace {
  /** How much of one resident it takes, in (0, 1]. */
  readonly weight: number;
  /** Tells this enlistment from another of the same job. */
  readonly mark: string;
  readonly enlistedAt: EpochMs;
}

/** A job on the roster, and who has taken it; a resident that is gone does not give back what it had. */
export interface RosterJob extends EnlistedJob {
  readonly resident?: string;
}

/**
 * One of the seats of residents. `until` grows as its resident shows that it lives: by that resident's clock, so that
 * others may tell from it that it has changed, and nothing more.
 */
export interface Seat {
  readonly number: number;
  /** Absent: nobody sits there any more. */
  readonly resident?: string;
  readonly until: EpochMs;
}

/** A seat with somebody in it. */
export type TakenSeat = Seat & { readonly resident: string };

/** Jobs of the roster, oldest first. `next` goes into `after` for those behind them; absent: there are none. */
export interface RosterPage {
  readonly jobs: readonly RosterJob[];
  readonly next?: string;
}

/** The roster at one moment: every seat that was ever taken, and the oldest jobs. */
export interface RosterView extends RosterPage {
  readonly seats: readonly Seat[];
}

/** The answer that a job's state machine waits for goes to this token; `mark` names the enlistment that brought it. */
export interface TaskToken {
  readonly token: string;
  readonly mark: string;
}

/**
 * Jobs that want a scheduler, and the residents that serve them. Every call is one atomic write or consistent read, but
 * `enlist`, which first keeps the token and then the place. What cannot be read of it is left out.
 */
export interface Roster {
  /** Puts a job on the roster, or gives the one that is there another mark, and keeps who has taken it. */
  enlist(job: EnlistedJob, token: string): Promise<void>;
  /** At most `limit` jobs. */
  view(limit: number): Promise<RosterView>;
  /** At most `limit` jobs of those behind a page. */
  after(next: string, limit: number): Promise<RosterPage>;
  find(place: RosterPlace): Promise<RosterJob | undefined>;
  /** Takes a job for a resident, if it is still `from`'s, or nobody's where that is undefined. */
  take(
    place: RosterPlace,
    by: { readonly from: string | undefined; readonly resident: string },
  ): Promise<'taken' | 'stale'>;
  /** Leaves a job to others. No effect if it is not this resident's. */
  giveBack(place: RosterPlace, resident: string): Promise<void>;
  /** Takes a job off the roster; `stale` where it was enlisted anew since `mark`, and of one that is not there. */
  strike(place: RosterPlace, mark: string): Promise<'struck' | 'stale'>;
  /** The newest token of each job that has one. */
  tokens(jobs: readonly JobId[]): Promise<ReadonlyMap<JobId, TaskToken>>;
  /** Takes a seat that is as it was `seen` (undefined: never taken), or already this resident's. */
  sit(seat: TakenSeat, seen: Seat | undefined): Promise<'seated' | 'occupied'>;
  /** Keeps a seat for longer; `lost` where somebody else sits there. */
  stay(seat: TakenSeat): Promise<'seated' | 'lost'>;
  /** No effect where somebody else sits there. */
  leave(seat: TakenSeat): Promise<void>;
  /** Empties a seat of somebody else that is as it was seen; no effect where that has changed. */
  vacate(seen: TakenSeat): Promise<void>;
}
