import type { EpochMs } from '../contracts/units.ts';
import type { AssignmentTally } from '../core/model/assignment-tally.ts';

/** What jobs have seen of copies and of reading them, by bin of jobs and by the hour. */
export interface AssignmentStatistics {
  /** Adds what a job has seen to the hour of `now`. An hour keeps the first `tallyLimit` values of each kind. */
  add(bin: number, tally: AssignmentTally, now: EpochMs): Promise<void>;
  /** What the hour of `now` has seen so far and the one before; nothing at first. */
  recent(bin: number, now: EpochMs): Promise<AssignmentTally>;
}
