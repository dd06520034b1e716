/** Lets events through at a steady rate after a burst (generic cell rate algorithm). */
export class Pacer {
  private readonly stepMs: number;
  private readonly toleranceMs: number;
  /** When the next event would be due if all came at the steady rate. */
  private dueAt = 0;

  /** `burst` events at once, then one each `perMs / events`. */
  constructor(rate: { events: number; perMs: number; burst: number }) {
    this.stepMs = rate.perMs / rate.events;
    this.toleranceMs = this.stepMs * (rate.burst - 1);
  }

  /** How long an event at `now` has to wait, in whole milliseconds; does not take it. */
  waitMs(now: number): number {
    return Math.max(0, Math.ceil(this.dueAt - this.toleranceMs - now - 1e-6));
  }

  /** Takes the next place; answers how long the event has to wait for it. */
  take(now: number): number {
    const wait = this.waitMs(now);
    this.dueAt = Math.max(this.dueAt, now) + this.stepMs;
    return wait;
  }
}
