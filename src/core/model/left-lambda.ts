import type { AttemptView, TaskView } from './job-view.ts';

/**
 * Whether an attempt was stopped since Lambda would have ended it before it was done (`leaveEarly`): by a choice about the time
 * that its task takes, which says nothing of the place where it ran.
 */
export const hasLeft = ({ cancelReason }: Pick<AttemptView, 'cancelReason'>): boolean =>
  cancelReason === 'outlasts-lambda';

/** Whether an attempt of a task ever was, so that its next one runs on Fargate. */
export const hasLeftLambda = ({ attempts }: TaskView): boolean => attempts.some(hasLeft);
