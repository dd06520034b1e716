import { invariant } from '../../src/contracts/errors.ts';
import { type RedoInput, RedoTimes, stallMs } from '../../src/core/policy/mantri/redo-time.ts';

/** A task of which only what it costs to do it again is told. */
export interface RedoTask {
  readonly takesMs: number;
  readonly lossProbability: number;
  /** Places of the tasks that it reads, each earlier than its own. Tasks that read the same may name the same list. */
  readonly inputs: readonly number[];
}

/** t_redo of a task that takes `takesMs` by itself, of whose inputs that much is known. */
export const redoMs = (takesMs: number, inputs: readonly RedoInput[]): number => takesMs + stallMs(inputs);

/** t_redo of every task, in their order. */
export function redoTimes(tasks: readonly RedoTask[]): readonly number[] {
  for (const [place, { inputs }] of tasks.entries())
    invariant(
      inputs.every((input) => input < place),
      'a task comes before one that it reads',
      { place },
    );
  const times = new RedoTimes<RedoTask>({
    takesMs: (task) => task.takesMs,
    lossProbability: (task) => task.lossProbability,
    inputsOf: ({ inputs }) => ({ key: inputs, tasks: () => inputs.flatMap((place) => tasks[place] ?? []) }),
  });
  return tasks.map((task) => times.of(task));
}
