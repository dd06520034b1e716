import { type EpochMs, hourOf } from '../../contracts/units.ts';
import { addTallies, noStragglers, type StragglerTally } from '../../core/model/straggler-tally.ts';
import type { StragglerStatistics } from '../../ports/straggler-statistics.ts';

/** Straggler statistics in memory. */
export class MemoryStragglerStatistics implements StragglerStatistics {
  private readonly hours = new Map<number, StragglerTally>();

  add(tally: StragglerTally, now: EpochMs): Promise<void> {
    const hour = hourOf(now);
    this.hours.set(hour, addTallies(this.of(hour), tally));
    for (const old of this.hours.keys()) if (old < hour - 1) this.hours.delete(old);
    return Promise.resolve();
  }

  recent(now: EpochMs): Promise<StragglerTally> {
    const hour = hourOf(now);
    return Promise.resolve(addTallies(this.of(hour - 1), this.of(hour)));
  }

  private of(hour: number): StragglerTally {
    return this.hours.get(hour) ?? noStragglers;
  }
}
