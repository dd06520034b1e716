import { invariant } from '../../../contracts/errors.ts';

/** One input of a task that would be done again. */
export interface RedoInput {
  /** t_redo of the task that made it. */
  readonly redoMs: number;
  /** That none of its copies is left. */
  readonly lossProbability: number;
}

/** Beyond this probability that no longer input is lost, shorter ones add nothing that counts. */
const negligible = 1e-12;

/**
 * How long a task that is done again is expected to wait for inputs that are lost too: those are made again beside each
 * other, so that it waits for the longest of them. Sorted by t_redo, Σ t_redo(i) · r_i · Π (1 − r_j) over the longer j.
 *
 * Source: Mantri §5.3 and its footnote on tasks with many inputs.
 */
export function stallMs(inputs: readonly RedoInput[]): number {
  let [sum, noneLonger] = [0, 1];
  for (const { redoMs, lossProbability } of inputs.toSorted((a, b) => b.redoMs - a.redoMs)) {
    sum += redoMs * lossProbability * noneLonger;
    noneLonger *= 1 - lossProbability;
    if (noneLonger < negligible) break;
  }
  return sum;
}

/** t_redo of a task that takes `takesMs` by itself: that, and how long it is expected to wait for lost inputs. */
export const redoMs = (takesMs: number, inputs: readonly RedoInput[]): number => takesMs + stallMs(inputs);

/** A task of a job whose output would have to be made again. */
export interface RedoTask {
  /** How long it takes with all its inputs there. */
  readonly takesMs: number;
  /** That none of the copies of its output is left; with replicas the product over all. 0: they cannot be lost. */
  readonly lossProbability: number;
  /**
   * Places of the tasks that it reads, each earlier than its own; none of one that reads sources, which are not made
   * again. Tasks that read the same may name the same list: its stall is worked out once.
   */
  readonly inputs: readonly number[];
}

/**
 * t_redo of every task, in their order, which must have each behind those that it reads.
 *
 * Source: Mantri §5.3, Fig. 7.
 */
export function redoTimes(tasks: readonly RedoTask[]): readonly number[] {
  const stalls = new Map<readonly number[], number>();
  const times: number[] = [];
  const inputAt = (place: number): RedoInput => {
    const [redo, task] = [times[place], tasks[place]];
    invariant(redo !== undefined && task !== undefined, 'a task comes before one that it reads', { place });
    return { redoMs: redo, lossProbability: task.lossProbability };
  };
  for (const { takesMs, inputs } of tasks) {
    const stall = stalls.get(inputs) ?? stallMs(inputs.map(inputAt));
    stalls.set(inputs, stall);
    times.push(takesMs + stall);
  }
  return times;
}
