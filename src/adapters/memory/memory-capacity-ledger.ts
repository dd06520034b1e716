import type { JobId } from '../../contracts/ids.ts';
import { epochMs, type EpochMs, later } from '../../contracts/units.ts';
import {
  admitUnits,
  type CloneAdmission,
  type CloneRequest,
  type CloneTerms,
} from '../../core/model/clone-admission.ts';
import type {
  CapacityGrant,
  CapacityLedger,
  CapacityView,
  GrantContext,
} from '../../ports/capacity-ledger.ts';

type Clones = Readonly<Record<string, number>>;

const sumOf = (clones: Clones | undefined): number =>
  Object.values(clones ?? {}).reduce((sum, slots) => sum + slots, 0);

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
    this.set(jobId, slots, later(context.now, context.length), grant?.clones);
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
    const charged = grant?.clones?.[request.phase] ?? 0;
    const before = { usedSlots: this.usedSlots - (grant?.slots ?? 0), cloneSlots: this.cloneSlots - charged };
    if (charged > 0) return Promise.resolve({ ...before, units: Math.floor(charged / request.unitSlots) });
    const admission = admitUnits(before, context, request);
    if (admission.units > 0) {
      const charge = admission.units * request.unitSlots;
      const clones = { ...grant?.clones, [request.phase]: charge };
      this.set(jobId, request.besideSlots + charge, later(context.now, context.length), clones);
    }
    return Promise.resolve(admission);
  }

  releaseClones(jobId: JobId, phase: string, keepSlots: number): Promise<void> {
    const grant = this.grants.get(jobId);
    if (grant?.clones === undefined) return Promise.resolve();
    const { [phase]: charged = 0, ...others } = grant.clones;
    const kept = Math.min(charged, Math.max(0, keepSlots));
    this.set(jobId, grant.slots, grant.expiresAt, kept === 0 ? others : { ...grant.clones, [phase]: kept });
    return Promise.resolve();
  }

  release(jobId: JobId): Promise<void> {
    this.set(jobId, 0, epochMs(0), undefined);
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

  private set(jobId: JobId, slots: number, expiresAt: EpochMs, clones: Clones | undefined): void {
    const before = this.grants.get(jobId);
    const charged = slots === 0 ? 0 : sumOf(clones);
    this.usedSlots += slots - (before?.slots ?? 0);
    this.cloneSlots += charged - sumOf(before?.clones);
    if (slots === 0) {
      this.grants.delete(jobId);
      return;
    }
    this.grants.set(jobId, {
      slots,
      expiresAt,
      ...(charged === 0 || clones === undefined ? {} : { clones }),
    });
    this.firstExpiryAt = Math.min(this.firstExpiryAt, expiresAt);
  }

  /** Takes back what others held too long, and finds out anew what runs out first. */
  private reclaim(jobId: JobId, now: EpochMs): void {
    this.firstExpiryAt = Infinity;
    for (const [other, grant] of this.grants) {
      if (other !== jobId && grant.expiresAt < now) this.set(other, 0, now, undefined);
      else this.firstExpiryAt = Math.min(this.firstExpiryAt, grant.expiresAt);
    }
  }
}
