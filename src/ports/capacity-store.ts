import type { JobId } from '../contracts/ids.ts';
import type { CapacityRule, Holding, Ledger } from '../core/capacity/ledger.ts';

/** What a rule answered, and the ledger as it has left it. */
export interface Changed<T> {
  readonly answer: T;
  readonly ledger: Ledger;
}

/**
 * The ledger of slots as it is stored. It knows no rule: what a change makes of the ledger is a pure function's to
 * say. Of changes at once each sees the ones before it, so that no order of them spends more than there is.
 */
export interface CapacityStore {
  /**
   * Changes the ledger by a rule, which is asked again where another change came first, `tries` times in all (absent: as
   * often as it takes); then `busy`, and it has changed nothing.
   */
  change<T>(rule: CapacityRule<T>, tries?: number): Promise<Changed<T> | 'busy'>;
  /**
   * Takes down what a job says of itself, which takes nothing from others: its grant may fall, not grow. One small
   * write; a job's first enters it. `stale`: the job's holding is not what `before` says (undefined: that there is
   * none), so that it must be read anew. Said twice it is as it was said once.
   */
  tell(jobId: JobId, before: Holding | undefined, after: Holding): Promise<'told' | 'stale'>;
  /** A job in the ledger; undefined: it holds nothing and asks for nothing. */
  own(jobId: JobId): Promise<Holding | undefined>;
  /** Strikes a job out, clones too, if it has said nothing since `seen` was read: what it says later is `stale`. */
  strike(jobId: JobId, seen: Holding): Promise<'struck' | 'stale'>;
  /** Strikes a job out whatever it says; a second time has no effect. */
  remove(jobId: JobId): Promise<void>;
  load(): Promise<Ledger>;
}
