import { type DurationMs, elapsedMs, type EpochMs } from '../contracts/units.ts';
import { lookAfterMs } from '../core/model/report-cadence.ts';
import type { Clock } from '../ports/clock.ts';
import type { AttemptMeter } from './attempt-meter.ts';

export interface StallWatchOptions {
  readonly clock: Clock;
  readonly meter: AttemptMeter;
  readonly claimedAt: EpochMs;
  /** Longest time between two reports of the attempt. */
  readonly every: DurationMs;
  /** Processor time that this process has used, in milliseconds. */
  readonly cpuMs: () => number;
}

/** A worker that wakes so much later than it would, and has used next to no processor time, has stood still. */
const leastStallMs = 500;
const idleShare = 0.05;

/**
 * Notes for how long an attempt's worker stands still, until stopped: by how much it wakes too late, where it was not busy meanwhile. A
 * slow one has turns, and one that computes uses time. It sleeps apart from the heartbeat, whose waits for answers would hide that.
 */
export async function watchStalls(
  { clock, meter, claimedAt, every, cpuMs }: StallWatchOptions,
  stopped: AbortSignal,
): Promise<void> {
  while (!stopped.aborted) {
    const [sleptAt, cpuAt] = [clock.now(), cpuMs()];
    const sleepMs = lookAfterMs(elapsedMs(claimedAt, sleptAt), every);
    await clock.sleep(sleepMs, stopped);
    const sleptMs = elapsedMs(sleptAt, clock.now());
    const lateMs = sleptMs - sleepMs;
    if (lateMs >= leastStallMs && cpuMs() - cpuAt <= idleShare * sleptMs) meter.stalledMs += lateMs;
  }
}
