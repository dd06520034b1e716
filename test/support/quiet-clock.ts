import { type DurationMs, type EpochMs, epochMs, later } from '../../src/contracts/units.ts';
import { Heap } from '../../src/lib/heap.ts';
import type { Clock } from '../../src/ports/clock.ts';

interface Sleeper {
  readonly at: number;
  readonly order: number;
  isOver: boolean;
  readonly wake: () => void;
}

/** Turns of the event loop in a row in which nothing was under way. */
const QUIET_TURNS = 3;
const LONGEST_RUN = 100_000_000;

/**
 * A virtual clock under real input and output: time moves on when nothing is under way any more, to where the next
 * sleeper wakes.
 */
export class QuietClock implements Clock {
  private time: EpochMs;
  private order = 0;
  private readonly sleepers = new Heap<Sleeper>(
    (a, b) => a.at < b.at || (a.at === b.at && a.order < b.order),
  );
  private readonly isBusy: () => boolean;

  /** @param isBusy - whether requests are under way that end without the clock. */
  constructor(isBusy: () => boolean, start: EpochMs = epochMs(1_700_000_000_000)) {
    this.isBusy = isBusy;
    this.time = start;
  }

  now(): EpochMs {
    return this.time;
  }

  sleep(length: DurationMs, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted === true) return Promise.resolve();
    return new Promise((resolve) => {
      const sleeper: Sleeper = {
        at: later(this.time, length),
        order: this.order++,
        isOver: false,
        wake: () => {
          sleeper.isOver = true;
          signal?.removeEventListener('abort', sleeper.wake);
          resolve();
        },
      };
      this.sleepers.push(sleeper);
      signal?.addEventListener('abort', sleeper.wake);
    });
  }

  /** Lets time pass until `work` has ended; answers and throws what it does. */
  async until<T>(work: Promise<T>): Promise<T> {
    const end = { isReached: false };
    const settled = work.finally(() => {
      end.isReached = true;
    });
    settled.catch(() => undefined); // Thrown below, when it is awaited.
    for (let step = 0; step < LONGEST_RUN; step++) {
      await this.quiet();
      if (end.isReached) break;
      const next = this.sleepers.pop();
      if (next === undefined) throw new Error('nothing is left to happen, but the work has not ended');
      if (next.isOver) continue;
      this.time = epochMs(Math.max(this.time, next.at));
      next.wake();
    }
    return settled;
  }

  private async quiet(): Promise<void> {
    for (let turns = 0; turns < QUIET_TURNS;) {
      await new Promise((resolve) => setImmediate(resolve));
      turns = this.isBusy() || filesAreUsed() ? 0 : turns + 1;
    }
  }
}

const filesAreUsed = (): boolean => process.getActiveResourcesInfo().some((name) => name.startsWith('FSReq'));
