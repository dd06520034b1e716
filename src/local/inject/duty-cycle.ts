import { childrenOf } from '../lambda/process-children.ts';
import { signalGroup } from '../lambda/signal-group.ts';

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
  private readonly pid: number;
  /** The groups that were stopped with it last. */
  private groups: readonly number[] = [];
  private readonly factor: number;
  private timer: NodeJS.Timeout | undefined;
  private continuedAtMs = performance.now();

  constructor(pid: number, factor: number) {
    this.pid = pid;
    this.factor = factor;
    this.run();
  }

  /** Lets the group run freely from here on. */
  end(): void {
    clearTimeout(this.timer);
    this.proceed();
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
    if (!signalGroup(this.pid, 'SIGSTOP')) return;
    // Stopped, it starts no more. What it has started in groups of their own is as slow as it is.
    this.groups = childrenOf(this.pid); // Those that lead a group can be signalled with it.
    for (const group of this.groups) signalGroup(group, 'SIGSTOP');
    const ranMs = performance.now() - this.continuedAtMs;
    const stopMs = Math.min(LONGEST_STOP_MS, ranMs * (this.factor - 1));
    this.timer = setTimeout(() => {
      if (this.proceed()) this.run();
    }, stopMs);
  }

  /** Whether the group is still there. */
  private proceed(): boolean {
    for (const group of this.groups) signalGroup(group, 'SIGCONT');
    this.groups = [];
    return signalGroup(this.pid, 'SIGCONT');
  }
}
