import { isLive, type StageView, type TaskView } from './job-view.ts';

/** Without a sign that anybody works or has worked on it: also one whose launch was withdrawn may have come to a result. */
const isUntouched = ({ attempts, result }: TaskView): boolean =>
  attempts.length === 0 && result === undefined;

/** Moves the cursor past tasks that are owed no first attempt; each place is passed once, whatever the number of ticks. */
function advanceCursor(stage: StageView): void {
  for (; stage.nextFirst < stage.order.length; stage.nextFirst++)
    if (stage.tasks[stage.order[stage.nextFirst] ?? -1]?.isFirstOwed === true) return;
}

/**
 * Keeps true what a task is owed, after any change of it or of its attempts: another attempt, where nothing of its present
 * life works and it has no result; a first one, where its stage is open and nobody has begun it.
 */
export function settleOwed(stage: StageView, task: TaskView): void {
  const works = task.attempts.some((each) => each.number >= task.since && isLive(each));
  if (task.result === undefined && task.attempts.length > 0 && !works) stage.retryable.add(task);
  else stage.retryable.delete(task);
  const isFirstOwed = stage.openedAt !== undefined && isUntouched(task);
  if (isFirstOwed === task.isFirstOwed) return;
  task.isFirstOwed = isFirstOwed;
  stage.unstarted += isFirstOwed ? 1 : -1;
  if (isFirstOwed) stage.nextFirst = Math.min(stage.nextFirst, stage.order.indexOf(task.index));
  else advanceCursor(stage);
}

/** What is owed first of a stage that has just opened, in the order that it has now. */
export function oweFirsts(stage: StageView): void {
  for (const task of stage.tasks) task.isFirstOwed = isUntouched(task);
  stage.unstarted = stage.tasks.filter(({ isFirstOwed }) => isFirstOwed).length;
  stage.nextFirst = 0;
  advanceCursor(stage);
}
