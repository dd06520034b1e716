import type { JobId } from '../../contracts/ids.ts';
import { type DurationMs, type EpochMs, epochMs, later } from '../../contracts/units.ts';
import type { AcquiredLease, LeaseStore } from '../../ports/job-store.ts';

interface Lease {
  readonly owner: string;
  readonly epoch: number;
  readonly until: EpochMs;
  /** Whether it was released in order. */
  readonly isOrderly?: boolean;
}

/** Leases in memory. A released lease keeps its epoch, so that the next one's is higher. */
export class MemoryLeaseStore implements LeaseStore {
  private readonly leases = new Map<JobId, Lease>();

  acquire(
    jobId: JobId,
    owner: string,
    now: EpochMs,
    length: DurationMs,
    replaced: string = owner,
  ): Promise<AcquiredLease | { kind: 'held'; until: EpochMs }> {
    const lease = this.leases.get(jobId);
    if (lease !== undefined && lease.until > now && lease.owner !== owner && lease.owner !== replaced) {
      return Promise.resolve({ kind: 'held', until: lease.until });
    }
    const epoch = (lease?.epoch ?? 0) + 1;
    this.leases.set(jobId, { owner, epoch, until: later(now, length) });
    return Promise.resolve({
      kind: 'acquired',
      epoch,
      ...(lease?.isOrderly === true ? { inOrder: true } : {}),
    });
  }

  renew(jobId: JobId, owner: string, epoch: number, until: EpochMs): Promise<'renewed' | 'lost'> {
    if (!this.isHeldBy(jobId, owner, epoch)) return Promise.resolve('lost');
    this.leases.set(jobId, { owner, epoch, until });
    return Promise.resolve('renewed');
  }

  release(jobId: JobId, owner: string, epoch: number, inOrder?: 'in-order'): Promise<void> {
    const isOrderly = inOrder !== undefined;
    if (this.isHeldBy(jobId, owner, epoch))
      this.leases.set(jobId, { owner: '', epoch, until: epochMs(0), isOrderly });
    return Promise.resolve();
  }

  private isHeldBy(jobId: JobId, owner: string, epoch: number): boolean {
    const lease = this.leases.get(jobId);
    return lease?.owner === owner && lease.epoch === epoch;
  }
}
