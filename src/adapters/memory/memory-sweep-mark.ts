import type { EpochMs } from '../../contracts/units.ts';
import type { SweepMark } from '../../ports/sweep-mark.ts';

/** The mark in memory. */
export class MemorySweepMark implements SweepMark {
  private mark: { readonly cursor: string | undefined; readonly at: EpochMs } | undefined;

  load(): Promise<string | undefined> {
    return Promise.resolve(this.mark?.cursor);
  }

  save(cursor: string | undefined, now: EpochMs): Promise<void> {
    if (this.mark === undefined || this.mark.at <= now) this.mark = { cursor, at: now };
    return Promise.resolve();
  }
}
