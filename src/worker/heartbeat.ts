import type { AttemptId } from '../contracts/ids.ts';
import { type DurationMs, durationMs, elapsedMs } from '../contracts/units.ts';
import type { AttemptStore, TaskSpace } from '../ports/attempt-store.ts';
import type { Clock } from '../ports/clock.ts';
import type { Log } from '../ports/log.ts';
import type { AttemptMeter } from './attempt-meter.ts';

export interface HeartbeatOptions {
  readonly attempts: AttemptStore;
  readonly clock: Clock;
  readonly log: Log;
  readonly space: TaskSpace;
  readonly attemptId: AttemptId;
  readonly meter: AttemptMeter;
  readonly every: DurationMs;
  /** Called once when the attempt is told to cancel; no report follows. */
  onCancel(): void;
}

/** The first reports come after so long: an attempt that need not go on should hear of it while it matters. */
const firstReportMs = 500;
/** Then after this share of the time that the attempt has run, up to the longest interval. */
const reportShare = 0.25;

/** How long an attempt that has run for `ranMs` waits before it reports again, `everyMs` at most. */
export const reportAfterMs = (ranMs: number, everyMs: number): DurationMs =>
  durationMs(Math.round(Math.min(everyMs, Math.max(firstReportMs, ranMs * reportShare))));

/**
 * Reports progress whatever the data does, until told to cancel or stopped: often at first and then less and less,
 * so that short attempts are seen and stopped in time and long ones write little. A report that fails is left out:
 * the next one says more. `stop` resolves when no report is under way.
 */
export function startHeartbeat(options: HeartbeatOptions): { stop(): Promise<void> } {
  const { attempts, clock, log, space, attemptId, meter } = options;
  const stopped = new AbortController();
  const startedAt = clock.now();
  const beat = async (): Promise<void> => {
    // Ends with the attempt, which has its own limit of time.
    for (;;) {
      await clock.sleep(reportAfterMs(elapsedMs(startedAt, clock.now()), options.every), stopped.signal);
      if (stopped.signal.aborted) return;
      try {
        const order = await attempts.report(space, attemptId, meter.progress(), clock.now());
        if (order === 'cancel') {
          options.onCancel();
          return;
        }
      } catch (error) {
        log.warn('heartbeat-failed', { attemptId, error: String(error) });
      }
    }
  };
  const beating = beat();
  return {
    async stop() {
      stopped.abort();
      await beating;
    },
  };
}
