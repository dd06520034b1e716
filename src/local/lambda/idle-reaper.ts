import type { Environment } from './environment.ts';

export interface IdleReaperOptions {
  /** An environment that was idle for so long is ended. */
  readonly idleMs: number;
  /** At most so many stay idle; those that are idle for longest go first. */
  readonly maxIdle: number;
  /** When an environment has been idle for long enough is looked at so often; a quarter of `idleMs` by default. */
  readonly everyMs?: number;
}

/** Ends environments that nobody has used for a while, as AWS does: each is a process, and holds memory. */
export class IdleReaper {
  private readonly options: IdleReaperOptions;
  /** Since when each is idle, by `performance.now()`; the one that is idle for longest comes first. */
  private readonly since = new Map<Environment, number>();
  private readonly timer: NodeJS.Timeout;

  constructor(options: IdleReaperOptions) {
    this.options = options;
    this.timer = setInterval(
      () => {
        this.reap(performance.now() - options.idleMs);
      },
      options.everyMs ?? Math.max(1, options.idleMs / 4),
    ).unref();
  }

  /** An environment has nothing to do from now on. */
  idle(environment: Environment): void {
    this.since.delete(environment);
    this.since.set(environment, performance.now());
    for (const [oldest] of this.since) {
      if (this.since.size <= this.options.maxIdle) return;
      this.end(oldest);
    }
  }

  /** An environment is used again, or gone. */
  forget(environment: Environment): void {
    this.since.delete(environment);
  }

  close(): void {
    clearInterval(this.timer);
    this.since.clear();
  }

  private reap(before: number): void {
    for (const [environment, since] of this.since) {
      if (since > before) return;
      this.end(environment);
    }
  }

  private end(environment: Environment): void {
    this.since.delete(environment);
    // One that was given an event in the meantime is not idle any more.
    if (environment.state === 'idle') void environment.stop(0);
  }
}
