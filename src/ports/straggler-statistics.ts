import type { EpochMs } from '../contracts/units.ts';
import type { StragglerTally } from '../core/model/straggler-tally.ts';

/** How often copies straggle, over all jobs, by the hour. */
export interface StragglerStatistics {
  /** Adds what a job has seen to the hour of `now`. Counts twice what is added twice: good enough for a share. */
  add(tally: StragglerTally, now: EpochMs): Promise<void>;
  /** What the hour of `now` has seen so far and the one before; nothing at first. */
  recent(now: EpochMs): Promise<StragglerTally>;
}
