import { InvalidInputError } from '../../contracts/errors.ts';
import { isSource } from '../../contracts/job-spec.ts';
import { limits } from '../../contracts/limits.ts';
import type { GraphStage } from './job-graph.ts';

/** A stage and its number of tasks; undefined where only what it reads could tell. */
export interface CountedStage {
  readonly stage: GraphStage;
  readonly tasks: number | undefined;
}

/** Whether another stage reads the output of this one all-to-all. */
export const isShuffled = (stage: GraphStage | undefined): boolean =>
  stage?.consumers.some(({ pattern }) => pattern === 'all-to-all') ?? false;

/** Into how many partitions a stage cuts what it writes: one where nobody reads it all-to-all. */
export const partitionsOf = (stage: GraphStage | undefined): number =>
  isShuffled(stage) ? (stage?.spec.partitions ?? limits.defaultPartitions) : 1;

/** Where several tasks of a producer go to one: as many as the stage says, and no more than there are. */
function fewerOf(wanted: number, producer: number | undefined): number | undefined {
  if (producer !== undefined) return Math.min(wanted, producer);
  return wanted === 1 ? 1 : undefined;
}

/**
 * The number of tasks of a stage is that of its inputs which are not broadcast; all of them must agree.
 *
 * @param sources - into how many tasks each source input is cut, by its place; undefined where nobody has looked.
 * @param before - the stages that it reads, by name.
 * @returns undefined where only what is not known could tell.
 * @throws InvalidInputError with the field where those that are known differ.
 */
export function taskCountOf(
  { spec, index }: GraphStage,
  sources: readonly (number | undefined)[],
  before: ReadonlyMap<string, CountedStage>,
): number | undefined {
  const counts = spec.inputs.map((input, place) => {
    if (isSource(input)) return sources[place];
    const producer = before.get(input.stage);
    if (input.pattern === 'all-to-all') return partitionsOf(producer?.stage);
    if (input.pattern === 'one-to-one') return producer?.tasks;
    return input.pattern === 'many-to-one' ? fewerOf(spec.tasks ?? 1, producer?.tasks) : undefined;
  });
  const known = counts.filter((count) => count !== undefined);
  const [tasks] = known;
  const other = known.find((count) => count !== tasks);
  if (tasks === undefined || other === undefined) return tasks;
  const field = `stages[${index}].inputs`;
  throw new InvalidInputError(`${field} must agree on the number of tasks, but make ${tasks} and ${other}`, {
    field,
  });
}

/**
 * Checks that the inputs of each stage agree on its number of tasks as far as a spec alone tells: a source's is known once
 * its objects are. Plan asks the same again when all are known.
 *
 * @throws InvalidInputError with the field.
 */
export function checkTaskCounts(graph: readonly GraphStage[]): void {
  const counted = new Map<string, CountedStage>();
  for (const stage of graph) counted.set(stage.spec.name, { stage, tasks: taskCountOf(stage, [], counted) });
}
