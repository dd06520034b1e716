import type { AttemptId } from '../contracts/ids.ts';
import type { DurationMs } from '../contracts/units.ts';
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

/**
 * Reports progress at a fixed rhythm, whatever the data does, until told to cancel or stopped. A report that fails
 * is left out: the next one says more. `stop` resolves when no report is under way.
 */
export function startHeartbeat(options: HeartbeatOptions): { stop(): Promise<void> } {
  const { attempts, clock, log, space, attemptId, meter } = options;
  const stopped = new AbortController();
  const beat = async (): Promise<void> => {
    // Ends with the attempt, which has its own limit of time.
    for (;;) {
      await clock.sleep(options.every, stopped.signal);
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
