import type { JobId } from '../contracts/ids.ts';
import type { EpochMs } from '../contracts/units.ts';
import type { JobState } from '../core/model/job-view.ts';
import { mergeZoneBooks, newestOfZones, saysMoreOfZones, type ZoneBook } from '../core/model/zone-book.ts';
import { zoneSigns } from '../core/policy/zone-signs.ts';
import type { Log } from '../ports/log.ts';
import type { ZoneBookStore } from '../ports/zone-book-store.ts';
import { SharedBook } from './shared-book.ts';

/** What jobs tell each other of slow zones, as one process knows it. Never throws. */
export class ZoneBookKeeper {
  private readonly shared: SharedBook<ZoneBook>;
  /** Stages that were done when a job was looked through last: others have nothing to tell. */
  private readonly looked = new Map<JobId, number>();

  constructor(store: ZoneBookStore, log: Log) {
    const rules = { merge: mergeZoneBooks, saysMore: saysMoreOfZones };
    this.shared = new SharedBook(store, { name: 'zone book', empty: [], ...rules }, log);
  }

  /** Reads the book, unless that was done a short while ago, and answers what it tells of each zone, the newest first. */
  async told(now: EpochMs): Promise<ZoneBook> {
    await this.shared.open(now);
    return newestOfZones(this.shared.current, now);
  }

  /** Takes in what a job's stages have found that are done, and writes it if it is time to; of a job that has ended at once. */
  async keep(jobId: JobId, state: JobState, now: EpochMs, isOver: boolean): Promise<void> {
    const done = state.stages.filter((stage) => stage.state === 'done').length;
    if (done !== (this.looked.get(jobId) ?? 0)) this.shared.take(zoneSigns(jobId, state, now), now);
    if (isOver) this.looked.delete(jobId);
    else this.looked.set(jobId, done);
    await this.shared.keep(jobId, now, isOver);
  }
}
