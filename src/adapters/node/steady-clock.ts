import { type EpochMs, epochMs } from '../../contracts/units.ts';
import { SystemClock } from './system-clock.ts';

/**
 * The time that the machine's clock said when this one was made, put right, and what has passed since: it goes on evenly
 * whatever the machine's clock is set to meanwhile. For whoever reckons by ages and must not go deaf for as long as its
 * machine's clock is set back.
 */
export class SteadyClock extends SystemClock {
  readonly #countMs: () => number;
  /** What the count began with. */
  #beganAt: number;

  /**
   * @param aheadMs - by how many milliseconds the machine's clock is ahead now.
   * @param countMs - milliseconds from any start on, which nobody can set.
   */
  constructor(aheadMs = 0, countMs = (): number => performance.now()) {
    super(aheadMs);
    this.#countMs = countMs;
    this.#beganAt = super.now() - countMs();
  }

  override now(): EpochMs {
    return epochMs(this.#beganAt + this.#countMs());
  }

  /**
   * Takes the machine's clock at its word once more where that is ahead of this one: for a process that has been frozen,
   * with which its count may have stood still, or gone on. Never goes back.
   */
  catchUp(): void {
    this.#beganAt = Math.max(this.#beganAt, super.now() - this.#countMs());
  }
}
