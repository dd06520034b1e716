import type { ExecutionRecord } from './execution-log.ts';

/** Tells those that wait for it that an execution has ended; one that ended while nobody waited is told to the next. */
export class ExecutionEnds {
  private next = Promise.withResolvers<undefined>();
  private waiting = 0;
  private isUnheard = false;

  /** Takes an execution that has begun or ended. */
  put({ status }: Pick<ExecutionRecord, 'status'>): void {
    if (status === 'RUNNING') return;
    this.isUnheard = this.waiting === 0;
    this.next.resolve(undefined);
    this.next = Promise.withResolvers();
  }

  /** Resolves when the next execution ends, at once where one has ended since the last wait, and when the signal fires. */
  async wait(signal: AbortSignal): Promise<void> {
    if (this.isUnheard) {
      this.isUnheard = false;
      return;
    }
    const stopped = Promise.withResolvers<undefined>();
    const onAbort = (): void => {
      stopped.resolve(undefined);
    };
    if (signal.aborted) return;
    signal.addEventListener('abort', onAbort, { once: true });
    this.waiting += 1;
    await Promise.race([this.next.promise, stopped.promise]);
    this.waiting -= 1;
    signal.removeEventListener('abort', onAbort);
  }
}
