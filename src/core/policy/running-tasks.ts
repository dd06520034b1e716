import type { AttemptId } from '../../contracts/ids.ts';
import type { RunningTask, StageRuns } from './policy-set.ts';
import { type AttemptView, isLive, type JobState, type TaskView } from '../model/job-view.ts';

/** Whether an attempt runs, was not told to stop, and is not among those that end now. */
const isRunning = (each: AttemptView, ending: ReadonlySet<AttemptId>): boolean =>
  isLive(each) && !each.cancelOrdered && (ending.size === 0 || !ending.has(each.id));

/** A task with its attempts that run, by number; undefined where none does. */
function runningOf(task: TaskView, ending: ReadonlySet<AttemptId>): RunningTask | undefined {
  const { attempts } = task;
  const [only] = attempts;
  if (attempts.length === 1 && only !== undefined)
    return isRunning(only, ending) ? { task, copies: [only] } : undefined;
  const [first, ...others] = attempts.filter((each) => isRunning(each, ending));
  return first === undefined ? undefined : { task, copies: [first, ...others] };
}

/**
 * The running tasks of each open stage, stages and tasks in order whatever the order in which attempts were
 * launched. Tasks with a result are left out, and attempts of `ending`, given up or told to stop by this tick. Costs
 * what runs, not what the stage holds.
 */
export function runningTasks(state: JobState, ending: ReadonlySet<AttemptId>): readonly StageRuns[] {
  const seen = new Map<number, Set<TaskView>>();
  for (const stage of state.stages) if (stage.state === 'open') seen.set(stage.index, new Set());
  for (const attempt of state.live) {
    const task = state.stages[attempt.stage]?.tasks[attempt.task];
    if (task !== undefined && task.result === undefined) seen.get(attempt.stage)?.add(task);
  }
  const runs: StageRuns[] = [];
  for (const stage of state.stages) {
    const tasks = seen.get(stage.index);
    if (tasks === undefined) continue;
    const running: RunningTask[] = [];
    for (const task of [...tasks].sort((a, b) => a.index - b.index)) {
      const each = runningOf(task, ending);
      if (each !== undefined) running.push(each);
    }
    runs.push({ stage, tasks: running });
  }
  return runs;
}

/** Whether no task of the job waits for a slot: when most rules begin to copy. */
export const allStarted = (slots: { readonly waiting: number }): boolean => slots.waiting === 0;

/** Backups that run and were not told to stop: what caps on copies count. */
export function runningBackups(runs: readonly StageRuns[]): number {
  const isBackup = ({ reason }: AttemptView): boolean => reason === 'backup';
  return runs.reduce(
    (sum, { tasks }) => tasks.reduce((count, { copies }) => count + copies.filter(isBackup).length, sum),
    0,
  );
}
