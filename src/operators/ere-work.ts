/** Steps between two rests: some tens of milliseconds. */
const stepsBetweenRests = 1_000_000;

/** Counts the steps of a matcher: bytes passed and states visited. */
export class Work {
  /** Steps so far, over all lines. */
  steps = 0;
  #restAt = stepsBetweenRests;

  /** Whether timers and messages should have their turn before matching goes on: once in so many steps. */
  wantsRest(): boolean {
    if (this.steps < this.#restAt) return false;
    this.#restAt = this.steps + stepsBetweenRests;
    return true;
  }
}
