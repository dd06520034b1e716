import type { JobId } from '../contracts/ids.ts';
import type { DurationMs, EpochMs } from '../contracts/units.ts';
import type { CloneAdmission, CloneRequest, CloneTerms } from '../core/model/clone-admission.ts';

/** What a job holds. */
export interface CapacityGrant {
  readonly slots: number;
  readonly expiresAt: EpochMs;
  /** Slots charged to the cloning budget, by phase; absent where there are none. */
  readonly clones?: Readonly<Record<string, number>>;
}

/** Slots of all jobs together, and who holds them. */
export interface CapacityView {
  readonly totalSlots: number;
  readonly usedSlots: number;
  /** Slots charged to the cloning budget: the sum over all grants. */
  readonly cloneSlots: number;
  readonly grants: Readonly<Record<string, CapacityGrant>>;
}

/** On whose clock a grant is renewed, for how long, and out of how many slots. */
export interface GrantContext {
  readonly totalSlots: number;
  readonly now: EpochMs;
  readonly length: DurationMs;
}

/** One record for all jobs; each change is a single conditional write, so that nobody can overspend. */
export interface CapacityLedger {
  /**
   * Sets the job's grant to as many of `wanted` slots as are free, renews it, and reclaims grants that ran out
   * before `now`, their clones with them. Returns the slots that the job holds now (0 to `wanted`); never less than
   * `wanted` when the job held that many before. What the job's clones are charged stays, unless it holds nothing
   * any more.
   */
  resize(jobId: JobId, wanted: number, context: GrantContext): Promise<number>;
  /**
   * Admits clones of a phase by `admitUnits`, in the same write makes the job's grant as large as they and the rest
   * of the job need, and renews it. A phase that has been admitted and holds clones yet gets the same answer again
   * and nothing more. Refused, it changes nothing.
   */
  admitClones(
    jobId: JobId,
    request: CloneRequest,
    context: GrantContext & CloneTerms,
  ): Promise<CloneAdmission>;
  /**
   * Lowers what a phase is charged to `keepSlots` as its clones end; 0 ends it. Never raises it, so that a repeated
   * or a late call has no effect. The job's slots stay.
   */
  releaseClones(jobId: JobId, phase: string, keepSlots: number): Promise<void>;
  /** Gives everything back, clones too; a second release has no effect. */
  release(jobId: JobId): Promise<void>;
  view(): Promise<CapacityView>;
}
