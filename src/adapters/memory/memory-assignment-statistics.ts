import { type EpochMs, hourOf } from '../../contracts/units.ts';
import {
  addAssignments,
  type AssignmentTally,
  noAssignments,
  tallyAddLimit,
} from '../../core/model/assignment-tally.ts';
import type { AssignmentStatistics } from '../../ports/assignment-statistics.ts';

/** Assignment statistics in memory. */
export class MemoryAssignmentStatistics implements AssignmentStatistics {
  private readonly hours = new Map<number, Map<number, AssignmentTally>>();

  add(bin: number, tally: AssignmentTally, now: EpochMs): Promise<void> {
    const hour = hourOf(now);
    const bins = this.hours.get(hour) ?? new Map<number, AssignmentTally>();
    this.hours.set(hour, bins);
    const taken = addAssignments(noAssignments, tally, tallyAddLimit);
    bins.set(bin, addAssignments(bins.get(bin) ?? noAssignments, taken));
    for (const old of this.hours.keys()) if (old < hour - 1) this.hours.delete(old);
    return Promise.resolve();
  }

  recent(bin: number, now: EpochMs): Promise<AssignmentTally> {
    const hour = hourOf(now);
    const of = (each: number): AssignmentTally => this.hours.get(each)?.get(bin) ?? noAssignments;
    return Promise.resolve(addAssignments(of(hour - 1), of(hour), Infinity));
  }
}
