import { durationMs, type DurationMs, epochMs, type EpochMs, later } from '../../contracts/units.ts';
import type { Rng } from '../../lib/rng.ts';
import type { TickConfig } from '../model/tick-config.ts';
import { foundNoPlace, type TaskView } from '../model/job-view.ts';

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
 * Attempts of a task since the last that began which found no place: no strikes, but each costs a record and a start. The
 * first is made again at once, for another zone may have room.
 */
const inVain = ({ attempts }: TaskView): number =>
  attempts.length - 1 - attempts.findLastIndex((each) => !foundNoPlace(each));

/**
 * The earliest time at which a task may be launched: after the backoff of its last failure, or of launches that found no
 * place, and after the wait that a throttled launch asked for. The jitter hangs on the attempt's id, so every tick finds the same time.
 */
export function readyAt(task: TaskView, config: TickConfig, rng: Rng): EpochMs {
  const last = task.attempts.at(-1);
  const failures = Math.max(task.failures, inVain(task) - 1);
  if (last === undefined || failures <= 0) return task.notBefore;
  const ended = task.attempts.reduce((latest, attempt) => Math.max(latest, attempt.seenAt), 0);
  return epochMs(
    Math.max(task.notBefore, later(epochMs(ended), retryDelayMs(failures, config, rng.fork(last.id)))),
  );
}
