import { setTimeout as delay } from 'node:timers/promises';
import { type DurationMs, type EpochMs, epochMs } from '../../contracts/units.ts';
import type { Clock } from '../../ports/clock.ts';

/** The machine's clock. */
export class SystemClock implements Clock {
  now(): EpochMs {
    return epochMs(Date.now());
  }

  async sleep(length: DurationMs, signal?: AbortSignal): Promise<void> {
    try {
      await delay(length, undefined, signal === undefined ? {} : { signal });
    } catch {
      // Only the signal ends a delay early, and that is no error here.
    }
  }
}
