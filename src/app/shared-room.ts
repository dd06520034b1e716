import type { JobId } from '../contracts/ids.ts';
import type { DurationMs, EpochMs } from '../contracts/units.ts';
import {
  hasTrialFailed,
  lateAfterMs,
  type LaunchesSeen,
  type ObservedConcurrency,
  observeConcurrency,
  startConcurrency,
} from '../core/capacity/observed-concurrency.ts';
import { fairRoom, type RoomClaim, type RoomUse, sumOfUses, used } from '../core/capacity/shared-room.ts';

/** Room is held for a late launch for so many times what an attempt ordinarily takes. */
const holdFactor = 2;

/** What one job's tick has seen of its own launches. */
export type OwnLaunches = RoomClaim & Pick<LaunchesSeen, 'now' | 'turnedLate' | 'claimLagsMs' | 'throttled'>;

/**
 * What one process has learned of the room for launches, from those of all jobs that it serves: they share one account,
 * so that what one has found out the others need not try again. Each job's tick tells what it sees, takes its fair part
 * of what there is once it knows how much of it it may use, and gives back what it has not launched; what it has is kept
 * for it until its next tick tells what has become of it.
 */
export class SharedRoom {
  private readonly uses = new Map<JobId, RoomClaim>();
  private learned: ObservedConcurrency | undefined;
  /**
   * Whether a trial failed while all that is known was used and more was wanted, and nothing ran since beyond that. Where
   * nobody wants more, one late launch says nothing of how much there is.
   */
  private isShort = false;
  /** What an attempt ordinarily takes, by the last job that could tell. */
  private runMs: DurationMs | undefined;

  /** How long after its launch an attempt that was not claimed is late, with these lags of claims besides those known. */
  patienceMs(claimLagsMs: readonly number[]): DurationMs {
    return lateAfterMs({ lagsMs: [...(this.learned?.lagsMs ?? []), ...claimLagsMs] });
  }

  /**
   * How long after its launch one that is late is waited for, with room for it left free: twice as long as an attempt
   * ordinarily takes. Lambda's pauses double, so that it waits about as long again as it has waited: to wait for an
   * older one would cost more than another attempt.
   */
  holdMs(runMs: DurationMs | undefined): number {
    this.runMs = runMs ?? this.runMs;
    return this.runMs === undefined ? Infinity : holdFactor * this.runMs;
  }

  /** A job is served from now on; what runs of it is known to have room. */
  enter(jobId: JobId, running: number, now: EpochMs): void {
    this.uses.set(jobId, { running, starting: 0, late: 0, held: 0, owed: 0 });
    const all = sumOfUses(this.uses.values());
    this.learned ??= startConcurrency(all.running, now);
    this.learned = { ...this.learned, known: Math.max(this.learned.known, all.running) };
  }

  /** Jobs that are served. */
  get jobs(): number {
    return this.uses.size;
  }

  /** A job is served no more. */
  leave(jobId: JobId): void {
    this.uses.delete(jobId);
  }

  /**
   * Learns from what a job's tick has seen. Answers how many launches more its part of the room is, also those for which
   * there is none as long as others use more than theirs.
   */
  see(jobId: JobId, { now, turnedLate, claimLagsMs, throttled, ...own }: OwnLaunches): number {
    this.uses.set(jobId, own);
    const all = sumOfUses(this.uses.values());
    const before = this.learned ?? startConcurrency(all.running, now);
    this.learned = observeConcurrency(before, { now, turnedLate, claimLagsMs, throttled, ...all });
    if (!hasTrialFailed(this.learned)) this.isShort = false;
    else if (all.owed > 0 && this.learned.known > 0 && used(all) >= this.learned.known) this.isShort = true;
    return this.partOf(jobId, own);
  }

  /**
   * Answers how many launches the job may make now, which are kept for it. `able`: how many it could make if there were
   * room for all: others may have what it can make no use of.
   */
  take(jobId: JobId, able: number): number {
    const before = this.uses.get(jobId);
    if (before === undefined) return 0;
    const own = { ...before, owed: Math.min(before.owed, able) };
    this.uses.set(jobId, own);
    const free = this.total - used(sumOfUses(this.uses.values()));
    const launches = Math.max(0, Math.min(free, this.partOf(jobId, own)));
    this.uses.set(jobId, { ...own, starting: own.starting + launches, owed: own.owed - launches });
    return launches;
  }

  /** The job has made so many launches fewer than it has taken room for: until its next tick it can make none. */
  giveBack(jobId: JobId, unused: number): void {
    const own = this.uses.get(jobId);
    if (own !== undefined && unused > 0)
      this.uses.set(jobId, { ...own, starting: own.starting - unused, owed: 0 });
  }

  /** The most that a job could have running at once; Infinity as long as more may be found than is known. */
  mostOf(jobId: JobId): number {
    const own = this.uses.get(jobId);
    if (own === undefined || !this.isShort) return Infinity;
    const wide = new Map(this.uses).set(jobId, { ...own, owed: this.total });
    return fairRoom(this.total, wide).get(jobId) ?? Infinity;
  }

  /** Of what is known to have room, what nobody uses, is about to, or is owed. */
  get idle(): number {
    const all = sumOfUses(this.uses.values());
    return (this.learned?.known ?? 0) - used(all) - all.owed;
  }

  /** Places that are known, and those that are tried. */
  private get total(): number {
    return (this.learned?.known ?? 0) + (this.learned?.trial ?? 0);
  }

  /** Launches more that a job's fair part of all places is. */
  private partOf(jobId: JobId, own: RoomUse): number {
    const share = fairRoom(this.total, this.uses).get(jobId) ?? 0;
    return Math.max(0, Math.min(own.owed, share - used(own)));
  }
}
