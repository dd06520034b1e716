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

/** What t_redo of tasks is worked out from. */
export interface RedoTerms<Task> {
  /** How long a task takes with all its inputs there. */
  takesMs(task: Task): number;
  /** That none of the copies of its output is left; with replicas the product over all. 0: they cannot be lost. */
  lossProbability(task: Task): number;
  /** What it reads, without sources, which are not made again. Tasks with the same key read the same. */
  inputsOf(task: Task): { readonly key: unknown; readonly tasks: () => readonly Task[] };
}

/**
 * t_redo of tasks, worked out for those that are asked for and what they read; the stall of those that read the same,
 * once. No task may read what reads it.
 *
 * Source: Mantri §5.3, Fig. 7.
 */
export class RedoTimes<Task> {
  private readonly terms: RedoTerms<Task>;
  private readonly times = new Map<Task, number>();
  private readonly stalls = new Map<unknown, number>();

  constructor(terms: RedoTerms<Task>) {
    this.terms = terms;
  }

  of(task: Task): number {
    const known = this.times.get(task);
    if (known !== undefined) return known;
    // Each goes at least one stage back: no deeper than a job has stages.
    const time = this.terms.takesMs(task) + this.stallOf(task);
    this.times.set(task, time);
    return time;
  }

  private stallOf(task: Task): number {
    const { key, tasks } = this.terms.inputsOf(task);
    const inputOf = (each: Task): RedoInput => ({
      redoMs: this.of(each),
      lossProbability: this.terms.lossProbability(each),
    });
    const stall = this.stalls.get(key) ?? stallMs(tasks().map(inputOf));
    this.stalls.set(key, stall);
    return stall;
  }
}
