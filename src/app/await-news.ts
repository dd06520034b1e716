import { type DurationMs, durationMs, elapsedMs, type EpochMs } from '../contracts/units.ts';
import type { JobState } from '../core/model/job-view.ts';
import { lookPauseMs } from '../core/policy/look-pause.ts';
import type { SchedulerDeps } from './scheduler-deps.ts';
import type { Session } from './scheduler-session.ts';

/** How long to wait before it is looked whether anything of a job has ended; a tick's length where there is no hurry. */
export const pauseBeforeLook = (
  { config }: { readonly config: Pick<SchedulerDeps['config'], 'tickMs'> },
  { state, watch }: { readonly state: JobState; readonly watch: Pick<Session['watch'], 'room'> },
  now: EpochMs,
): DurationMs => lookPauseMs(state, { now, tickMs: config.tickMs, jobs: watch.room.jobs });

/**
 * Waits until the next tick of a job is due: until one of its attempts has ended, or a tick's length is over, or its
 * scheduler is told to leave. Where attempts are short it looks into the job's inbox often; where they take long a
 * tick's length is little beside them, and nothing is asked for. Never throws: what cannot be seen now the tick sees.
 */
export async function untilNextTick(deps: SchedulerDeps, session: Session): Promise<void> {
  const { clock, config } = deps;
  const { jobId, plan, residency } = session;
  const since = clock.now();
  // By what it has slept: a clock that was set back would let no tick be due for as long.
  for (let sleptMs = 0; sleptMs < config.tickMs;) {
    const now = clock.now();
    const leftMs = config.tickMs - Math.max(sleptMs, elapsedMs(since, now));
    const pauseMs = Math.max(0, Math.min(leftMs, pauseBeforeLook(deps, session, now)));
    await clock.sleep(durationMs(pauseMs), residency.signal);
    sleptMs += pauseMs;
    if (pauseMs >= leftMs || residency.signal?.aborted === true) return;
    const inbox = await deps.attempts.told({ jobId, shards: plan.shards }).catch(() => undefined);
    if (inbox !== undefined && inbox.notes.length > 0) return;
  }
}
