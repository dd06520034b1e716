import type { JobId } from '../contracts/ids.ts';
import type { DurationMs, EpochMs } from '../contracts/units.ts';
import {
  lateAfterMs,
  type LaunchesSeen,
  type ObservedConcurrency,
  observeConcurrency,
  startConcurrency,
} from '../core/capacity/observed-concurrency.ts';
import { fairRoom, type RoomUse, sumOfUses, used } from '../core/capacity/shared-room.ts';

/** Room is held for a late launch for so many times what an attempt ordinarily takes. */
const holdFactor = 2;

/** What one job's tick has seen of its own launches. */
export type OwnLaunches = RoomUse & Pick<LaunchesSeen, 'now' | 'turnedLate' | 'claimLagsMs' | 'throttled'>;

/**
 * What one process has learned of the room for launches, from those of all jobs that it serves: they share one account,
 * so that what one has found out the others need not try again. Each job's tick tells what it sees, and takes its fair
 * part of what there is; it is kept for it until its next tick tells what has become of it.
 */
export class SharedRoom {
  private readonly uses = new Map<JobId, RoomUse>();
  private learned: ObservedConcurrency | undefined;
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

  /** Learns from what a job's tick has seen. Answers how many launches the job may make now, which are kept for it. */
  take(jobId: JobId, { now, turnedLate, claimLagsMs, throttled, ...own }: OwnLaunches): number {
    this.uses.set(jobId, own);
    const all = sumOfUses(this.uses.values());
    const before = this.learned ?? startConcurrency(all.running, now);
    this.learned = observeConcurrency(before, { now, turnedLate, claimLagsMs, throttled, ...all });
    const total = this.learned.known + this.learned.trial;
    const shares = fairRoom(total, [...this.uses.values()]);
    const share = shares[[...this.uses.keys()].indexOf(jobId)] ?? 0;
    const launches = Math.max(0, Math.min(total - used(all), own.owed, share - used(own)));
    this.uses.set(jobId, { ...own, starting: own.starting + launches, owed: own.owed - launches });
    return launches;
  }

  /** Of what is known to have room, what nobody uses, is about to, or is owed. */
  get idle(): number {
    const all = sumOfUses(this.uses.values());
    return (this.learned?.known ?? 0) - used(all) - all.owed;
  }
}
