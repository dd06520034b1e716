import type { JobId } from '../../contracts/ids.ts';
import {
  type CapacityRule,
  type Holding,
  isAdmittedAlike,
  type Ledger,
  occupiedBy,
} from '../../core/capacity/ledger.ts';
import type { CapacityStore, Changed } from '../../ports/capacity-store.ts';

/** The ledger of slots in memory. */
export class MemoryCapacityStore implements CapacityStore {
  private totalSlots = 0;
  private occupied = 0;
  private readonly holdings = new Map<JobId, Holding>();

  change<T>(rule: CapacityRule<T>): Promise<Changed<T>> {
    const move = rule(this.ledger);
    this.totalSlots = move.totalSlots;
    for (const [jobId, holding] of move.changes) if (this.holdings.has(jobId)) this.put(jobId, holding);
    return Promise.resolve({ answer: move.answer, ledger: this.ledger });
  }

  tell(jobId: JobId, before: Holding | undefined, after: Holding): Promise<'told' | 'stale'> {
    const own = this.holdings.get(jobId);
    if (isSame(own, after)) return Promise.resolve('told');
    if (!isSame(own, before)) return Promise.resolve('stale');
    this.put(jobId, after);
    return Promise.resolve('told');
  }

  own(jobId: JobId): Promise<Holding | undefined> {
    return Promise.resolve(this.holdings.get(jobId));
  }

  strike(jobId: JobId, seen: Holding): Promise<'struck' | 'stale'> {
    if (this.holdings.get(jobId)?.beat !== seen.beat) return Promise.resolve('stale');
    this.put(jobId, undefined);
    return Promise.resolve('struck');
  }

  remove(jobId: JobId): Promise<void> {
    this.put(jobId, undefined);
    return Promise.resolve();
  }

  load(): Promise<Ledger> {
    return Promise.resolve({ ...this.ledger, holdings: new Map(this.holdings) });
  }

  /** Slots that all jobs may be using together. */
  get occupiedSlots(): number {
    return this.occupied;
  }

  /** What a job holds, at once. */
  peek(jobId: JobId): Holding | undefined {
    return this.holdings.get(jobId);
  }

  private put(jobId: JobId, holding: Holding | undefined): void {
    const before = this.holdings.get(jobId);
    this.occupied +=
      (holding === undefined ? 0 : occupiedBy(holding)) - (before === undefined ? 0 : occupiedBy(before));
    if (holding === undefined) this.holdings.delete(jobId);
    else this.holdings.set(jobId, holding);
  }

  /** Rules look at it at once and keep nothing of it: it is not copied. */
  private get ledger(): Ledger {
    return { totalSlots: this.totalSlots, holdings: this.holdings };
  }
}

const isSame = (a: Holding | undefined, b: Holding | undefined): boolean =>
  a?.beat === b?.beat && a?.slots === b?.slots && a?.held === b?.held && isAdmittedAlike(a ?? {}, b ?? {});
