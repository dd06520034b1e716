import { invariant } from '../contracts/errors.ts';
import { type DurationMs, type EpochMs, epochMs, later } from '../contracts/units.ts';
import type { Clock } from '../ports/clock.ts';
import { cancelEvent, type EventQueue } from './event-queue.ts';

/** The simulation's time, from 0. It moves only when the next event is taken from the queue. */
export class VirtualClock implements Clock {
  private readonly queue: EventQueue;
  private time: EpochMs = epochMs(0);

  constructor(queue: EventQueue) {
    this.queue = queue;
  }

  now(): EpochMs {
    return this.time;
  }

  /** Moves on to the time of an event; never back. */
  advanceTo(at: EpochMs): void {
    invariant(at >= this.time, 'time runs backwards', { at, now: this.time });
    this.time = at;
  }

  sleep(length: DurationMs, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted === true) return Promise.resolve();
    return new Promise((resolve) => {
      const event = this.queue.schedule(later(this.time, length), {
        kind: 'wake',
        subject: '',
        run: resolve,
      });
      signal?.addEventListener('abort', () => {
        cancelEvent(event);
        resolve();
      });
    });
  }
}
