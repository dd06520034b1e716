import type { AttemptRecord, FailureCause } from '../../contracts/records.ts';
import type { AttemptView, StageView, TaskView } from './job-view.ts';
import { workerOf } from './stage-worker.ts';

/**
 * Causes that are no strikes against a task. `expired` and `interrupted` are no failures of it. For `out-of-memory`,
 * and `timeout` on Lambda, its next attempt gets a worker that has more, of which there are few; where there is none the
 * job fails at once.
 */
const uncounted: ReadonlySet<FailureCause> = new Set(['expired', 'interrupted', 'out-of-memory']);

/**
 * Whether a failed attempt counts against its task. A clone does not: those run beside the original, so that what
 * strikes all copies at once would leave a task no retry. They are as few as the stage's clones.
 */
function isStrike(stage: StageView, attempt: AttemptView): boolean {
  const { reason, failure } = attempt;
  if (reason === 'clone') return false;
  if (failure?.cause === 'timeout') return workerOf(stage, attempt).kind !== 'lambda';
  return failure === undefined || !uncounted.has(failure.cause);
}

/** Counts a failed or lost attempt against its task, where it is a strike. */
export function countFailure(stage: StageView, task: TaskView, attempt: AttemptView): void {
  if (isStrike(stage, attempt)) task.failures += 1;
}

/**
 * The platform may tell of a death when its attempt was given up already for its silence: then it is why, and a strike
 * that would not have been one is taken back. What was known before stays.
 */
export function explainLoss(
  stage: StageView,
  task: TaskView,
  attempt: AttemptView,
  { failure }: Pick<AttemptRecord, 'failure'>,
): void {
  if (failure === undefined || attempt.failure !== undefined) return;
  const before = isStrike(stage, attempt);
  attempt.failure = failure;
  if (before && !isStrike(stage, attempt)) task.failures -= 1;
}
