import { setTimeout as delay } from 'node:timers/promises';
import { type DurationMs, type EpochMs, epochMs } from '../../contracts/units.ts';
import type { Clock } from '../../ports/clock.ts';

/** The machine's clock, put right where it is known to be ahead or behind. */
export class SystemClock implements Clock {
  readonly #aheadMs: number;

  constructor(aheadMs = 0) {
    this.#aheadMs = aheadMs;
  }

  now(): EpochMs {
    return epochMs(Date.now() - this.#aheadMs);
  }

  async sleep(length: DurationMs, signal?: AbortSignal): Promise<void> {
    try {
      await delay(length, undefined, signal === undefined ? {} : { signal });
    } catch {
      // Only the signal ends a delay early, and that is no error here.
    }
  }
}
