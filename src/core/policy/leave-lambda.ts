import type { Worker } from '../../contracts/job-spec.ts';
import type { JobState, StageView, TaskView } from '../model/job-view.ts';
import { hasLeftLambda } from '../model/left-lambda.ts';
import { inputOf } from '../model/task-input.ts';
import type { LaunchRoom, TickConfig } from '../model/tick-config.ts';
import { fitWorker } from './fit-workers.ts';
import type { LambdaTime } from './outlasts-lambda.ts';

/** What tells on which worker a task's next attempt is to run. */
export type WorkerTerms = Pick<TickConfig, 'hasFargate' | 'lambdaMs'> & Pick<LambdaTime, 'earlierMs'>;

/** Tasks of a stage that are owed a first attempt. */
function firstsOf({ tasks, order, nextFirst, unstarted }: StageView): readonly TaskView[] {
  const firsts: TaskView[] = [];
  for (let place = nextFirst; place < order.length && firsts.length < unstarted; place++) {
    const task = tasks[order[place] ?? -1];
    if (task?.isFirstOwed === true) firsts.push(task);
  }
  return firsts;
}

/** Of these tasks those for which `holds`, which holds for all that read more than one for which it does. */
function largestThat(tasks: readonly TaskView[], holds: (task: TaskView) => boolean): readonly TaskView[] {
  let largest = tasks[0];
  for (const task of tasks) if (largest === undefined || inputOf(task) > inputOf(largest)) largest = task;
  // As a rule there are none: thousands of tasks are not put in order at each tick.
  if (largest === undefined || !holds(largest)) return [];
  return headThat(
    tasks.toSorted((a, b) => inputOf(b) - inputOf(a)),
    holds,
  );
}

/** The same of tasks in order of what they read, most first, where it holds for the first. */
function headThat(sorted: readonly TaskView[], holds: (task: TaskView) => boolean): readonly TaskView[] {
  let [low, high] = [1, sorted.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    const task = sorted[middle];
    if (task !== undefined && holds(task)) low = middle + 1;
    else high = middle;
  }
  return sorted.slice(0, low);
}

/**
 * The same of the tasks of a stage that are owed a first attempt. Where the largest is launched first, it is the next one: as a rule
 * nobody looks at the others, whatever their number.
 */
function firstsThat(
  { launchOrder }: Pick<JobState, 'launchOrder'>,
  stage: StageView,
  holds: (task: TaskView) => boolean,
): readonly TaskView[] {
  if (launchOrder !== 'largest-first') return largestThat(firstsOf(stage), holds);
  const next = stage.tasks[stage.order[stage.nextFirst] ?? -1];
  if (next === undefined || !holds(next)) return [];
  return headThat(firstsOf(stage), holds);
}

/** Tasks of these stages of which an attempt runs, by the place of their stage. */
function runningOf({ stages, live }: JobState, places: ReadonlySet<number>): ReadonlyMap<number, TaskView[]> {
  const running = new Map(stages.map(({ index }) => [index, [] as TaskView[]]));
  for (const { stage, task: index } of live) {
    const task = places.has(stage) ? stages[stage]?.tasks[index] : undefined;
    if (task !== undefined) running.get(stage)?.push(task);
  }
  return running;
}

/** Whether what became of its attempts tells where the next one runs, whatever it reads. */
const isSettled = (task: TaskView): boolean =>
  hasLeftLambda(task) || task.attempts.some(({ failure }) => failure !== undefined);

/**
 * Tasks of these stages whose next attempt runs on another kind of worker than `kinds`, by what its attempts failed for or
 * since it would outlast Lambda; also of those that run, for copies. What would outlast it is what reads most.
 */
export function tasksElsewhere(
  state: JobState,
  kinds: ReadonlySet<Worker['kind']>,
  { stages }: Pick<LaunchRoom, 'stages'>,
  terms: WorkerTerms,
): ReadonlySet<TaskView> {
  const found = new Set<TaskView>();
  if (terms.hasFargate !== true) return found;
  const running = runningOf(state, stages);
  for (const stage of state.stages) {
    if (!stages.has(stage.index) || stage.state !== 'open') continue;
    const leaves = (task: TaskView): boolean =>
      !kinds.has(fitWorker(stage, task, terms, terms.earlierMs).worker.kind);
    const begun = [...stage.retryable, ...(running.get(stage.index) ?? [])];
    for (const task of begun) if (isSettled(task) && leaves(task)) found.add(task);
    const others = begun.filter((task) => !isSettled(task));
    for (const task of largestThat(others, leaves)) found.add(task);
    for (const task of firstsThat(state, stage, leaves)) found.add(task);
  }
  return found;
}
