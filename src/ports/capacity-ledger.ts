import type { JobId } from '../contracts/ids.ts';
import type { DurationMs, EpochMs } from '../contracts/units.ts';

/** Slots of all jobs together, and who holds them. */
export interface CapacityView {
  readonly totalSlots: number;
  readonly usedSlots: number;
  readonly grants: Readonly<Record<string, { readonly slots: number; readonly expiresAt: EpochMs }>>;
}

/** One record for all jobs; each change is a single conditional write, so that nobody can overspend. */
export interface CapacityLedger {
  /**
   * Sets the job's grant to as many of `wanted` slots as are free, renews it, and reclaims grants that ran out
   * before `now`. Returns the slots that the job holds now (0 to `wanted`); never less than `wanted` when the
   * job held that many before.
   */
  resize(
    jobId: JobId,
    wanted: number,
    context: { totalSlots: number; now: EpochMs; length: DurationMs },
  ): Promise<number>;
  /** Gives everything back; a second release has no effect. */
  release(jobId: JobId): Promise<void>;
  view(): Promise<CapacityView>;
}
