import type { JobId } from '../../contracts/ids.ts';
import { type DurationMs, type EpochMs, later } from '../../contracts/units.ts';
import type { CapacityLedger, CapacityView } from '../../ports/capacity-ledger.ts';

/** The capacity ledger in memory. */
export class MemoryCapacityLedger implements CapacityLedger {
  private totalSlots = 0;
  private readonly grants = new Map<JobId, { readonly slots: number; readonly expiresAt: EpochMs }>();

  resize(
    jobId: JobId, wanted: number, context: { totalSlots: number; now: EpochMs; length: DurationMs },
  ): Promise<number> {
    this.totalSlots = context.totalSlots;
    for (const [other, grant] of this.grants) {
      if (other !== jobId && grant.expiresAt < context.now) this.grants.delete(other);
    }
    const held = this.grants.get(jobId)?.slots ?? 0;
    const free = Math.max(0, context.totalSlots - this.usedSlots());
    const slots = Math.max(0, Math.min(wanted, held + free));
    if (slots === 0) this.grants.delete(jobId);
    else this.grants.set(jobId, { slots, expiresAt: later(context.now, context.length) });
    return Promise.resolve(slots);
  }

  release(jobId: JobId): Promise<void> {
    this.grants.delete(jobId);
    return Promise.resolve();
  }

  view(): Promise<CapacityView> {
    return Promise.resolve({
      totalSlots: this.totalSlots,
      usedSlots: this.usedSlots(),
      grants: Object.fromEntries(this.grants),
    });
  }

  private usedSlots(): number {
    return this.grants.values().reduce((sum, { slots }) => sum + slots, 0);
  }
}
