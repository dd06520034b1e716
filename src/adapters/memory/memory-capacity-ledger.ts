import type { JobId } from '../../contracts/ids.ts';
import { epochMs, type EpochMs, later } from '../../contracts/units.ts';
import type { CloneAdmission, CloneRequest, CloneTerms } from '../../core/model/clone-admission.ts';
import {
  chargedFor,
  chargedSlots,
  cloneHolding,
  type CloneHolding,
  holdClones,
  keepClones,
  type Preemption,
} from '../../core/model/clone-holding.ts';
import { admitWithPreemption, takenFrom } from '../../core/model/clone-preemption.ts';
import type {
  CapacityGrant,
  CapacityLedger,
  CapacityView,
  GrantContext,
} from '../../ports/capacity-ledger.ts';

const noClones: CloneHolding = {};

/** The capacity ledger in memory. */
export class MemoryCapacityLedger implements CapacityLedger {
  private totalSlots = 0;
  private usedSlots = 0;
  private cloneSlots = 0;
  /** No grant runs out before this time, so that most calls need not look at the others. */
  private firstExpiryAt = Infinity;
  private readonly grants = new Map<JobId, CapacityGrant>();

  resize(jobId: JobId, wanted: number, context: GrantContext): Promise<number> {
    this.totalSlots = context.totalSlots;
    if (this.firstExpiryAt < context.now) this.reclaim(jobId, context.now);
    const grant = this.grants.get(jobId);
    const held = grant?.slots ?? 0;
    const free = Math.max(0, context.totalSlots - this.usedSlots);
    const slots = Math.max(0, Math.min(wanted, held + free));
    this.set(jobId, slots, later(context.now, context.length), grant ?? noClones);
    return Promise.resolve(slots);
  }

  admitClones(
    jobId: JobId,
    request: CloneRequest,
    context: GrantContext & CloneTerms,
  ): Promise<CloneAdmission> {
    this.totalSlots = context.totalSlots;
    if (this.firstExpiryAt < context.now) this.reclaim(jobId, context.now);
    const grant = this.grants.get(jobId);
    const charged = chargedFor(grant ?? noClones, request.phase);
    const before = { usedSlots: this.usedSlots - (grant?.slots ?? 0), cloneSlots: this.cloneSlots - charged };
    if (charged > 0) return Promise.resolve({ ...before, units: Math.floor(charged / request.unitSlots) });
    const admission = admitWithPreemption(before, context, request, this.grants);
    if (admission.units > 0) {
      this.preempt(jobId, request, admission);
      const slots = request.besideSlots + admission.units * request.unitSlots;
      const holding = holdClones(grant ?? noClones, request, admission.units);
      this.set(jobId, slots, later(context.now, context.length), holding);
    }
    return Promise.resolve(admission);
  }

  releaseClones(jobId: JobId, phase: string, keepSlots: number, addedSlots = keepSlots): Promise<void> {
    const grant = this.grants.get(jobId);
    if (grant === undefined) return Promise.resolve();
    this.set(jobId, grant.slots, grant.expiresAt, keepClones(grant, phase, { keepSlots, addedSlots }));
    return Promise.resolve();
  }

  preemptions(jobId: JobId): Promise<Readonly<Record<string, Preemption>>> {
    return Promise.resolve(this.grants.get(jobId)?.preempted ?? {});
  }

  release(jobId: JobId): Promise<void> {
    this.set(jobId, 0, epochMs(0), noClones);
    return Promise.resolve();
  }

  view(): Promise<CapacityView> {
    return Promise.resolve({
      totalSlots: this.totalSlots,
      usedSlots: this.usedSlots,
      cloneSlots: this.cloneSlots,
      grants: Object.fromEntries(this.grants),
    });
  }

  /** Takes clones of others away for those of a job; their slots stay theirs. */
  private preempt(jobId: JobId, { jobTasks = 0 }: CloneRequest, { victims = [] }: CloneAdmission): void {
    const taken = takenFrom(victims, { jobId, jobTasks }, (victim) => this.grants.get(victim));
    for (const [victim, { before, after }] of taken) this.set(victim, before.slots, before.expiresAt, after);
  }

  private set(jobId: JobId, slots: number, expiresAt: EpochMs, holding: CloneHolding): void {
    const before = this.grants.get(jobId);
    const clones = slots === 0 ? noClones : cloneHolding(holding);
    this.usedSlots += slots - (before?.slots ?? 0);
    this.cloneSlots += chargedSlots(clones) - chargedSlots(before ?? noClones);
    if (slots === 0) {
      this.grants.delete(jobId);
      return;
    }
    this.grants.set(jobId, { slots, expiresAt, ...clones });
    this.firstExpiryAt = Math.min(this.firstExpiryAt, expiresAt);
  }

  /** Takes back what others held too long, and finds out anew what runs out first. */
  private reclaim(jobId: JobId, now: EpochMs): void {
    this.firstExpiryAt = Infinity;
    for (const [other, grant] of this.grants) {
      if (other !== jobId && grant.expiresAt < now) this.set(other, 0, now, noClones);
      else this.firstExpiryAt = Math.min(this.firstExpiryAt, grant.expiresAt);
    }
  }
}
