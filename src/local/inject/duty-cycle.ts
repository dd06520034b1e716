import { StoppedGroups } from './stopped-groups.ts';

/** A stop and a run together, where the factor leaves room for it. */
const PERIOD_MS = 100;
/** Timers are no finer than a millisecond, so shorter runs would be of any length. */
const SHORTEST_RUN_MS = 5;
/** Far below the heartbeat after which a silent worker counts as lost. */
const LONGEST_STOP_MS = 1_000;

/**
 * Lets a process group run one part in `factor` of the time, by stopping and continuing all of it.
 *
 * A stop is measured against the run before it: a timer that comes late on a busy machine lengthens both.
 */
export class DutyCycle {
  private readonly groups: StoppedGroups;
  private readonly factor: number;
  private timer: NodeJS.Timeout | undefined;
  private continuedAtMs = performance.now();

  constructor(pid: number, factor: number) {
    this.groups = new StoppedGroups(pid);
    this.factor = factor;
    this.run();
  }

  /** Lets the group run freely from here on. */
  end(): void {
    clearTimeout(this.timer);
    this.groups.proceed();
  }

  private run(): void {
    this.continuedAtMs = performance.now();
    const runMs = Math.max(SHORTEST_RUN_MS, PERIOD_MS / this.factor);
    this.timer = setTimeout(() => {
      this.pause();
    }, runMs);
  }

  private pause(): void {
    // A group that is gone needs no more of this.
    if (!this.groups.stop()) return;
    const ranMs = performance.now() - this.continuedAtMs;
    const stopMs = Math.min(LONGEST_STOP_MS, ranMs * (this.factor - 1));
    this.timer = setTimeout(() => {
      if (this.groups.proceed()) this.run();
    }, stopMs);
  }
}
