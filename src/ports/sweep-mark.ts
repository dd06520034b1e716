import type { EpochMs } from '../contracts/units.ts';

/** How far the search for stray jobs has come: a cursor of the list of jobs, so that each run goes on where one ended. */
export interface SweepMark {
  /** Undefined: from the newest job on. */
  load(): Promise<string | undefined>;
  /** A run that is older than the last one to save changes nothing. */
  save(cursor: string | undefined, now: EpochMs): Promise<void>;
}
