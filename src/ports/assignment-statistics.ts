import type { EpochMs } from '../contracts/units.ts';
import type { AssignmentTally } from '../core/model/assignment-tally.ts';

/** What jobs have seen of copies and of reading them, by bin of jobs and by the hour. */
export interface AssignmentStatistics {
  /**
   * Adds what a job has seen to the hour of `now`: the first `tallyAddLimit` (16) values of each kind, of which an
   * hour keeps the first `tallyLimit` (256). Not atomic across kinds, and keeps twice what is added twice: good
   * enough for samples.
   */
  add(bin: number, tally: AssignmentTally, now: EpochMs): Promise<void>;
  /** What the hour of `now` has seen so far and the one before; nothing at first. */
  recent(bin: number, now: EpochMs): Promise<AssignmentTally>;
}
