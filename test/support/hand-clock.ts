import type { PaceHost } from '../../src/adapters/aws/read-pace.ts';

/** A clock that goes as tests say, and wakes whoever sleeps. */
export class HandClock implements PaceHost {
  private time = 0;
  private readonly sleepers = new Set<{ readonly at: number; readonly wake: () => void }>();

  now(): number {
    return this.time;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal?.aborted === true) {
        resolve();
        return;
      }
      const sleeper = { at: this.time + ms, wake: resolve };
      this.sleepers.add(sleeper);
      signal?.addEventListener('abort', () => {
        resolve();
      });
    });
  }

  random(): number {
    return 0;
  }

  pass(ms: number): void {
    this.time += ms;
    for (const sleeper of this.sleepers) {
      if (sleeper.at > this.time) continue;
      this.sleepers.delete(sleeper);
      sleeper.wake();
    }
  }
}
