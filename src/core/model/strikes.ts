import { inputOf } from './task-input.ts';
import type { Failure, FailureCause } from '../../contracts/records.ts';
import { hasFailedAlike } from './failed-alike.ts';
import { type AttemptView, isUnclaimed, type JobState, type StageView, type TaskView } from './job-view.ts';
import { workerOf } from './stage-worker.ts';

/**
 * Causes that are no strikes against a task. `expired`, `declined` and `interrupted` are no failures of it, nor is `input-lost`, unless
 * its input is found to be there. For `out-of-memory`,
 * and `timeout` on Lambda, its next attempt gets a worker that has more, of which there are few; where there is none the
 * job fails at once, or after as many that may pass (`hopeless`).
 */
const uncounted: ReadonlySet<FailureCause> = new Set([
  'expired',
  'declined',
  'interrupted',
  'out-of-memory',
  'input-lost',
]);

/**
 * Whether a failed attempt counts against its task. A clone does not: those run beside the original, so that what
 * strikes all copies at once would leave a task no retry. They are as few as the stage's clones. Nor does a launch that
 * nobody has taken up: it waited for room, or was lost on the way. Nor one of which nothing was heard any more once it was told to
 * stop: had it heard that, it would have ended without a word, too.
 */
function isStrike(stage: StageView, attempt: AttemptView): boolean {
  const { reason, failure, state, cancelReason } = attempt;
  if (reason === 'clone' || isUnclaimed(attempt)) return false;
  if (state === 'lost' && cancelReason !== undefined) return false;
  if (failure?.cause === 'timeout') return workerOf(stage, attempt).kind !== 'lambda';
  return failure === undefined || !uncounted.has(failure.cause);
}

/** Takes note of the smallest task that Lambda's time did not suffice for. What may pass tells nothing of its size. */
function noteTimeout({ shape, statistics }: StageView, task: TaskView, attempt: AttemptView): void {
  const { cause, mayPass = false } = attempt.failure ?? {};
  if (cause !== 'timeout' || mayPass || workerOf({ shape }, attempt).kind !== 'lambda') return;
  const { leastTimedOutBytes = Infinity } = statistics;
  statistics.leastTimedOutBytes = Math.min(leastTimedOutBytes, inputOf(task));
}

/** Counts a failed or lost attempt against its task, where it is a strike, and of its present life. */
export function countFailure(stage: StageView, task: TaskView, attempt: AttemptView): void {
  noteTimeout(stage, task, attempt);
  if (attempt.number >= task.since && isStrike(stage, attempt)) task.failures += 1;
}

/**
 * Takes over what is learnt late of an attempt that was given up, and counts it anew. That it was at work may be known to
 * whoever takes the job over from its record alone, which makes a strike of it; the platform may tell of a death when its
 * attempt was given up already for its silence: then it is why, and a strike that would not have been one is taken back.
 */
export function recount(stage: StageView, task: TaskView, attempt: AttemptView, learn: () => void): void {
  const before = isStrike(stage, attempt);
  learn();
  noteTimeout(stage, task, attempt);
  if (attempt.number >= task.since) task.failures += Number(isStrike(stage, attempt)) - Number(before);
}

const isFatal = (failure: Failure): boolean =>
  failure.cause === 'bad-record' || failure.cause === 'bad-input' || failure.cause === 'access-denied';

/** Whether a failed attempt of a task without a result ends the job: no retry can mend it, or it failed so before. */
export function judge(state: JobState, stage: StageView, task: TaskView, attempt: AttemptView): void {
  const { failure } = attempt;
  if (failure === undefined || task.result !== undefined) return;
  const place = { stage: stage.shape.name, task: task.index, failure };
  if (isFatal(failure)) state.fatal ??= place;
  // For want of memory the next attempt gets more: it does not meet the same.
  else if (failure.cause !== 'out-of-memory' && hasFailedAlike(task, attempt, state.nodes))
    state.fatal ??= { ...place, alike: true };
}
