import type { EpochMs } from '../contracts/units.ts';
import { addLosses, type LossCounts } from '../core/policy/mantri/loss-rate.ts';

/** Times of losses that are kept of a location, and locations of which anything is kept. */
const timesKept = 16;
const locationsKept = 10_000;

/**
 * What the jobs that a process serves have seen of outputs at each location: how many of those that were read or looked at
 * were lost, and when losses were found of late. Where more locations are seen than are kept, those seen first are forgotten.
 */
export class SharedLosses {
  /** Losses that were ever found: it grows when something is learned. */
  losses = 0;
  private readonly counts: Map<string, LossCounts>;
  private readonly times = new Map<string, EpochMs[]>();

  /** `known`: what was seen before, by location. */
  constructor(known: ReadonlyMap<string, LossCounts> = new Map()) {
    this.counts = new Map(known);
  }

  /** An output was found lost at a location. */
  lose(location: string, now: EpochMs): void {
    this.losses += 1;
    const times = this.times.get(location) ?? [];
    times.push(now);
    if (times.length > timesKept) times.shift();
    this.times.set(location, times);
    forgetFirst(this.times);
  }

  /** When losses were found at a location, oldest first. */
  lostAt(location: string): readonly EpochMs[] {
    return this.times.get(location) ?? [];
  }

  /** Adds what a job that has ended has seen. */
  keep(counts: ReadonlyMap<string, LossCounts>): void {
    for (const [location, each] of this.with(counts)) this.counts.set(location, each);
    forgetFirst(this.counts);
  }

  /** What was seen with what a running job has seen. */
  with(counts: ReadonlyMap<string, LossCounts>): ReadonlyMap<string, LossCounts> {
    const all = new Map(this.counts);
    for (const [location, each] of counts) addLosses(all, location, each);
    return all;
  }
}

function forgetFirst(kept: Map<string, unknown>): void {
  for (const location of kept.keys()) {
    if (kept.size <= locationsKept) return;
    kept.delete(location);
  }
}
