import { attemptParts } from '../../contracts/ids.ts';
import type { OutputPlace } from '../../contracts/worker-places.ts';
import { producersOf } from './edge-manifest.ts';
import { type AttemptView, isLive, type JobState, type StageView, type TaskView } from './job-view.ts';

/** Tasks [from, to) of a stage that a task reads. */
export interface Sources {
  readonly producer: StageView;
  readonly from: number;
  readonly to: number;
}

/** What a task reads of each stage that it reads. */
export function sourcesOf(state: JobState, task: TaskView): readonly Sources[] {
  const shape = state.stages[task.stage]?.shape;
  return (shape?.upstream ?? []).flatMap((place, input): readonly Sources[] => {
    const producer = state.stages[place];
    if (shape === undefined || producer === undefined) return [];
    const pattern = shape.patterns?.[input] ?? 'all-to-all';
    const edge = { pattern, producerTasks: producer.tasks.length };
    return [{ producer, ...producersOf(edge, task.index, shape.tasks) }];
  });
}

/** Attempts whose outputs are copies of a task's, by number: the winner's, and then replicas by arrival. */
export const copiesOf = ({ result, replicas }: TaskView): readonly number[] =>
  result === undefined ? [] : [attemptParts(result.attemptId).attempt, ...replicas];

/** Whether an attempt of a task that is done works on, so that it may yet become a replica. */
const mayFollow = (attempt: AttemptView): boolean => isLive(attempt) && !attempt.cancelOrdered;

/** Every task of other stages whose output a task reads. */
export const sourceTasks = (state: JobState, task: TaskView): readonly TaskView[] =>
  sourcesOf(state, task).flatMap(({ producer, from, to }) => producer.tasks.slice(from, to));

const leastOf = (counts: readonly number[]): number => counts.reduce((a, b) => Math.min(a, b), Infinity);

/** Copies of that output among some that has the fewest; of a whole stage by its counts, whatever its size. */
function leastAmong({ producer: { tasks, replicated }, from, to }: Sources): number {
  if (replicated.length === 0) return 1;
  if (to - from < tasks.length) return leastOf(tasks.slice(from, to).map((each) => copiesOf(each).length));
  const ofAll = replicated.findIndex((count) => count < tasks.length);
  return 1 + (ofAll < 0 ? replicated.length : ofAll);
}

/**
 * Copies of that upstream output of a task that has the fewest, where all of them have a result. Infinite where it
 * reads no stage.
 */
export const leastCopies = (state: JobState, task: TaskView): number =>
  leastOf(sourcesOf(state, task).map(leastAmong));

/** Copies that a task's upstream outputs have at least, of those that may yet get another; infinite of none. */
export type AwaitedCopies = (task: TaskView) => number;

/** Counts awaited copies as they are now. Sources that several tasks share are looked through once. */
export function awaitedCopies(state: JobState): AwaitedCopies {
  const known = new Map<string, number>();
  const among = ({ producer, from, to }: Sources): number => {
    const key = `${producer.index}/${from}/${to}`;
    const count =
      known.get(key) ??
      leastOf(
        producer.tasks
          .slice(from, to)
          .filter(({ attempts }) => attempts.some(mayFollow))
          .map((upstream) => copiesOf(upstream).length),
      );
    known.set(key, count);
    return count;
  };
  return (task) => leastOf(sourcesOf(state, task).map(among));
}

/** The number of an attempt that has left a copy, with the place of that, where it is not in the data bucket. */
export type NamedCopy = number | ({ readonly attempt: number } & OutputPlace);

/** Copies that an attempt reads in place of winners' outputs: by stage and task. */
export type NamedCopies = Readonly<Record<string, Readonly<Record<string, NamedCopy>>>>;

/**
 * Which copies attempt `number` of a task reads: the `number`-th of each upstream output, round and round. So every
 * clone has copies of its own where there are enough, readers spread evenly where there are not, and who is launched
 * again because an output is gone reads another. Only those that are not winners' are named.
 *
 * Source: Dolly §4.3 (clone groups); one reader of each copy is its contention avoidance.
 */
export function copiesToRead(state: JobState, task: TaskView, number: number): NamedCopies | undefined {
  if (number === 0) return undefined;
  const named: Record<string, Record<string, NamedCopy>> = {};
  for (const { producer, from, to } of sourcesOf(state, task)) {
    if (producer.replicated.length === 0) continue;
    const ofStage: Record<string, NamedCopy> = {};
    for (const upstream of producer.tasks.slice(from, to)) {
      const copies = copiesOf(upstream);
      const place = number % Math.max(1, copies.length);
      const copy = copies[place];
      if (place === 0 || copy === undefined) continue;
      const at = upstream.replicaPlaces?.get(copy);
      ofStage[upstream.index] = at === undefined ? copy : { attempt: copy, ...at };
    }
    if (Object.keys(ofStage).length > 0) named[producer.shape.name] = ofStage;
  }
  return Object.keys(named).length === 0 ? undefined : named;
}
