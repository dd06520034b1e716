import { type DurationMs, type EpochMs, durationMs, epochMs, later } from '../../contracts/units.ts';
import { invariant } from '../../contracts/errors.ts';
import type { Clock } from '../../ports/clock.ts';

interface Sleeper {
  readonly at: EpochMs;
  readonly order: number;
  readonly wake: () => void;
}

/** Microtask turns given to what was woken before the clock moves on. */
const TURNS_PER_WAKE_UP = 96;
const WAKE_UP_LIMIT = 1_000_000;

/** A virtual clock: time moves only by `advance`. */
export class MemoryClock implements Clock {
  private time: EpochMs;
  private order = 0;
  private readonly sleepers = new Set<Sleeper>();

  constructor(start: EpochMs = epochMs(1_700_000_000_000)) {
    this.time = start;
  }

  now(): EpochMs {
    return this.time;
  }

  /** Number of sleeps that have not ended. */
  get sleeping(): number {
    return this.sleepers.size;
  }

  sleep(length: DurationMs, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted === true) return Promise.resolve();
    return new Promise((resolve) => {
      const wake = (): void => {
        this.sleepers.delete(sleeper);
        signal?.removeEventListener('abort', wake);
        resolve();
      };
      const sleeper: Sleeper = { at: later(this.time, length), order: this.order++, wake };
      this.sleepers.add(sleeper);
      signal?.addEventListener('abort', wake);
    });
  }

  /**
   * Moves time on by `ms` and ends the sleeps that are due on the way, in order of time and then of call, each
   * at its own time. What a sleep wakes gets its turn before time moves further, so that a loop of sleeps runs
   * as often as it would in real time. Resolves when all have been woken.
   */
  async advance(ms: number): Promise<void> {
    const end = later(this.time, durationMs(ms));
    for (let wakeUps = 0; ; wakeUps++) {
      invariant(wakeUps < WAKE_UP_LIMIT, 'sleeps without end', { end });
      await turns();
      const next = this.nextDue(end);
      if (next === undefined) break;
      if (next.at > this.time) this.time = next.at;
      next.wake();
    }
    this.time = end;
  }

  private nextDue(end: EpochMs): Sleeper | undefined {
    let first: Sleeper | undefined;
    for (const sleeper of this.sleepers) {
      if (sleeper.at > end) continue;
      if (
        first === undefined ||
        sleeper.at < first.at ||
        (sleeper.at === first.at && sleeper.order < first.order)
      ) {
        first = sleeper;
      }
    }
    return first;
  }
}

async function turns(): Promise<void> {
  for (let turn = 0; turn < TURNS_PER_WAKE_UP; turn++) await Promise.resolve();
}
