import { durationMs, type DurationMs, epochMs, type EpochMs, later } from '../../contracts/units.ts';
import type { Rng } from '../../lib/rng.ts';
import type { TickConfig } from '../model/tick-config.ts';
import { isLive, type TaskView, unplacedSince } from '../model/job-view.ts';

/**
 * How long a task waits after its `failures`-th failure: exponential with full jitter, so that tasks that failed
 * together do not come back together. Zero failures wait nothing.
 */
export function retryDelayMs(failures: number, config: TickConfig, rng: Rng): DurationMs {
  if (failures <= 0) return durationMs(0);
  const ceiling = Math.min(config.retryCeilingMs, config.retryBaseMs * 2 ** (failures - 1));
  return durationMs(ceiling * rng.next());
}

/**
 * The earliest time at which a task may be launched: after the backoff of its last failure, or of launches that found no
 * place, and after the wait that a throttled launch asked for. The jitter hangs on the attempt's id, so every tick finds the same time.
 */
export function readyAt(task: TaskView, config: TickConfig, rng: Rng): EpochMs {
  const last = task.attempts.at(-1);
  // Launches that found no place are no strikes, but each costs a record and a start. After the first the task is launched again at
  // once, as another zone may have room.
  const failures = Math.max(task.failures, unplacedSince(task.attempts) - 1);
  if (last === undefined || failures <= 0) return task.notBefore;
  // Of one that runs there is news with each report: its copies would wait for ever.
  const ended = task.attempts.reduce(
    (latest, each) => (isLive(each) ? latest : Math.max(latest, each.seenAt)),
    0,
  );
  return epochMs(
    Math.max(task.notBefore, later(epochMs(ended), retryDelayMs(failures, config, rng.fork(last.id)))),
  );
}
