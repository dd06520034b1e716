import type { AttemptId } from '../../contracts/ids.ts';
import type { RunningTask, StageRuns } from './policy-set.ts';
import { type AttemptView, isLive, type JobState, type TaskView } from '../model/job-view.ts';

/** Attempts of a task that run, were not told to stop, and are not among those that end now, by number. */
function copiesOf(task: TaskView, ending: ReadonlySet<AttemptId>): RunningTask['copies'] | undefined {
  const [first, ...others] = task.attempts.filter(
    (each) => isLive(each) && !each.cancelOrdered && !ending.has(each.id),
  );
  return first === undefined ? undefined : [first, ...others];
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
  return state.stages.flatMap((stage) => {
    const tasks = seen.get(stage.index);
    if (tasks === undefined) return [];
    const ordered = [...tasks].sort((a, b) => a.index - b.index);
    return [
      {
        stage,
        tasks: ordered.flatMap((task): RunningTask[] => {
          const copies = copiesOf(task, ending);
          return copies === undefined ? [] : [{ task, copies }];
        }),
      },
    ];
  });
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
