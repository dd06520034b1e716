import type { JobId } from '../../contracts/ids.ts';
import { type DurationMs, type EpochMs, epochMs, later } from '../../contracts/units.ts';
import type { CapacityLedger, CapacityView } from '../../ports/capacity-ledger.ts';

/** The capacity ledger in memory. */
export class MemoryCapacityLedger implements CapacityLedger {
  private totalSlots = 0;
  private usedSlots = 0;
  /** No grant runs out before this time, so that most calls need not look at the others. */
  private firstExpiryAt = Infinity;
  private readonly grants = new Map<JobId, { readonly slots: number; readonly expiresAt: EpochMs }>();

  resize(
    jobId: JobId,
    wanted: number,
    context: { totalSlots: number; now: EpochMs; length: DurationMs },
  ): Promise<number> {
    this.totalSlots = context.totalSlots;
    if (this.firstExpiryAt < context.now) this.reclaim(jobId, context.now);
    const held = this.grants.get(jobId)?.slots ?? 0;
    const free = Math.max(0, context.totalSlots - this.usedSlots);
    const slots = Math.max(0, Math.min(wanted, held + free));
    this.set(jobId, slots, later(context.now, context.length));
    return Promise.resolve(slots);
  }

  release(jobId: JobId): Promise<void> {
    this.set(jobId, 0, epochMs(0));
    return Promise.resolve();
  }

  view(): Promise<CapacityView> {
    return Promise.resolve({
      totalSlots: this.totalSlots,
      usedSlots: this.usedSlots,
      grants: Object.fromEntries(this.grants),
    });
  }

  private set(jobId: JobId, slots: number, expiresAt: EpochMs): void {
    this.usedSlots += slots - (this.grants.get(jobId)?.slots ?? 0);
    if (slots === 0) {
      this.grants.delete(jobId);
      return;
    }
    this.grants.set(jobId, { slots, expiresAt });
    this.firstExpiryAt = Math.min(this.firstExpiryAt, expiresAt);
  }

  /** Takes back what others held too long, and finds out anew what runs out first. */
  private reclaim(jobId: JobId, now: EpochMs): void {
    this.firstExpiryAt = Infinity;
    for (const [other, grant] of this.grants) {
      if (other !== jobId && grant.expiresAt < now) this.set(other, 0, now);
      else this.firstExpiryAt = Math.min(this.firstExpiryAt, grant.expiresAt);
    }
  }
}
