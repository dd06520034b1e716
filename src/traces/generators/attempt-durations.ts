import type { Rng } from '../../lib/rng.ts';
import { redrawsOf } from './redraw.ts';
import type { TimedJob } from './work.ts';
import { drawSlowdown } from './slowdown.ts';
import type { Slowdown } from './slowdown.ts';

/** Which attempt: positions of stage and task, and number of the attempt, all from 0. */
export interface AttemptKey {
  readonly stage: number;
  readonly task: number;
  readonly attempt: number;
}

/**
 * How long attempts take. `recorded`: the first as in the trace; a later one as a task drawn from its stage
 * (Mantri §6: "a restarted task draws from its phase's distribution"), for an input of its size. `slowed`: every
 * attempt its task's work times a slowdown of its own; for traces without stragglers.
 */
export type AttemptModel =
  { readonly kind: 'recorded' } | { readonly kind: 'slowed'; readonly slowdown: Slowdown };

/**
 * Durations of a job's attempts in whole milliseconds, at least 1. They depend on `rng`, job and key alone, not on
 * the order of asking: all policies meet the same luck, so that their difference is theirs.
 * For a key that is not in the job the answer throws `RangeError`.
 */
export function attemptDurations(job: TimedJob, model: AttemptModel, rng: Rng): (key: AttemptKey) => number {
  const ownRng = rng.fork(job.id);
  const redraws = new Map<number, ReturnType<typeof redrawsOf>>();
  return (key) => {
    const tasks = job.stages[key.stage]?.tasks;
    const workMs = tasks?.[key.task]?.workMs;
    if (tasks === undefined || workMs === undefined) throw new RangeError(`no such task in job ${job.id}`);
    if (model.kind === 'recorded' && key.attempt === 0) return wholeMs(workMs);
    const draw = ownRng.fork(`${key.stage}/${key.task}/${key.attempt}`);
    if (model.kind === 'slowed') return wholeMs(workMs * drawSlowdown(model.slowdown, draw));
    const redraw = redraws.get(key.stage) ?? redrawsOf(tasks);
    redraws.set(key.stage, redraw);
    return wholeMs(redraw(key.task, draw));
  };
}

const wholeMs = (ms: number): number => Math.max(1, Math.round(ms));
