import type { AttemptView, TaskView } from './job-view.ts';

/**
 * Bytes that a task reads in all: as its attempts say, or before one has, by its plan. Whoever plans counts bytes of files;
 * but where a file of gzip is one member, the task that has its begin reads all of it, and the others nothing.
 */
export const inputOf = ({ told, inputBytes }: TaskView): number => told?.bytes ?? inputBytes;

/** Whether a task has turned out to have nothing to read, against its plan: what it took tells nothing of others. */
export const isEmptyAfterAll = ({ told, inputBytes }: TaskView): boolean =>
  told?.bytes === 0 && inputBytes > 0;

/**
 * Takes over what an attempt says of its task's input. The one that has read the most knows best; one that
 * does the rest goes on from what was done before it.
 */
export function tellInput(task: TaskView, { progress, state }: AttemptView): void {
  if (progress === undefined) return;
  const before = progress.takenUp?.bytes ?? 0;
  const [bytesRead, bytesTotal] = [before + progress.bytesRead, before + progress.bytesTotal];
  const isTold = bytesTotal > 0 || (state === 'done' && task.inputBytes > 0);
  if (!isTold || bytesRead < (task.told?.readBytes ?? 0)) return;
  task.told = { bytes: bytesTotal, readBytes: bytesRead };
}
