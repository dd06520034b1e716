import type { JobId } from '../contracts/ids.ts';
import { type DurationMs, elapsedMs, type EpochMs } from '../contracts/units.ts';
import type { Holding } from '../core/capacity/ledger.ts';

/** Looks that lie further apart count as so many parts of the patience, so that no jump of a clock ends it. */
const stepsOfPatience = 4;
/** It is looked so often at most: a look costs more the more jobs there are. */
const looksPerPatience = 16;

interface Seen {
  readonly holding: Holding;
  /** How long one had watched when it changed last. */
  readonly sinceMs: number;
}

/**
 * Which jobs of the ledger have said nothing for long, by the watcher's own clock alone: whose beat has not changed for
 * as long as one has watched. At first sight everybody lives.
 */
export class SilenceWatch {
  private readonly seen = new Map<JobId, Seen>();
  private watchedMs = 0;
  private lookedAt: EpochMs | undefined;

  /** Takes a look at all jobs of the ledger. */
  look(holdings: ReadonlyMap<JobId, Holding>, now: EpochMs, patience: DurationMs): void {
    const isEarly = this.lookedAt !== undefined && now >= this.lookedAt;
    const passedMs = this.passedMs(now, patience);
    if (isEarly && passedMs < patience / looksPerPatience) return;
    this.watchedMs += passedMs;
    this.lookedAt = now;
    for (const jobId of this.seen.keys()) if (!holdings.has(jobId)) this.seen.delete(jobId);
    for (const [jobId, holding] of holdings) {
      const before = this.seen.get(jobId);
      const isSilent = before?.holding.beat === holding.beat;
      this.seen.set(jobId, { holding, sinceMs: isSilent ? before.sinceMs : this.watchedMs });
    }
  }

  /** Since the last look. */
  private passedMs(now: EpochMs, patience: DurationMs): number {
    if (this.lookedAt === undefined) return 0;
    return Math.min(elapsedMs(this.lookedAt, now), patience / stepsOfPatience);
  }

  /** Jobs that have been silent for longer than that, each as it was last seen. */
  silent(now: EpochMs, patience: DurationMs): readonly (readonly [JobId, Holding])[] {
    const watchedMs = this.watchedMs + this.passedMs(now, patience);
    const found: (readonly [JobId, Holding])[] = [];
    for (const [jobId, { holding, sinceMs }] of this.seen)
      if (watchedMs - sinceMs > patience) found.push([jobId, holding]);
    return found;
  }
}
