import type { JobId } from '../contracts/ids.ts';
import type { DurationMs, EpochMs } from '../contracts/units.ts';
import type { CloneAdmission, CloneRequest, CloneTerms } from '../core/model/clone-admission.ts';
import type { CloneHolding, Preemption } from '../core/model/clone-holding.ts';

/** What a job holds: slots until a time, and of them those that clones take. */
export interface CapacityGrant extends CloneHolding {
  readonly slots: number;
  readonly expiresAt: EpochMs;
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
   * Admits clones of a phase by `admitWithPreemption`, in the same write makes the job's grant as large as they and
   * the rest of the job need, and renews it. Where others' clones have to make room, that write takes their charge
   * away and marks their phases; their slots stay theirs until they give them back. A phase that has been admitted
   * and holds clones yet gets the same answer again (without victims) and nothing more. Refused, it changes nothing.
   */
  admitClones(
    jobId: JobId,
    request: CloneRequest,
    context: GrantContext & CloneTerms,
  ): Promise<CloneAdmission>;
  /**
   * Lowers what a phase is charged to `keepSlots` as its clones end, of which `addedSlots` (absent: all) are for
   * copies beside one of each task; 0 ends it, and the mark of clones that were taken away. Never raises it, so that
   * a repeated or a late call has no effect. The job's slots stay.
   */
  releaseClones(jobId: JobId, phase: string, keepSlots: number, addedSlots?: number): Promise<void>;
  /**
   * The job's phases that have lost their clones to smaller jobs: theirs are charged nothing any more and must stop.
   * A phase stays among them until `releaseClones` to 0, until it is admitted anew, or until the grant ends.
   */
  preemptions(jobId: JobId): Promise<Readonly<Record<string, Preemption>>>;
  /** Gives everything back, clones too; a second release has no effect. */
  release(jobId: JobId): Promise<void>;
  view(): Promise<CapacityView>;
}
