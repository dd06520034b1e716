import { invariant } from '../../contracts/errors.ts';
import type { PartitionSplit } from './decision.ts';
import type { JobState, StageView } from './job-view.ts';
import { newTask } from './new-task.ts';

/**
 * What one task reads of a shuffle: a partition, of which input number `input` may be cut, so that of that one it reads
 * what tasks [from, to) of the producing stage have left. Of the other inputs it reads all of the partition.
 */
export interface Share {
  readonly partition: number;
  readonly cut?: { readonly input: number; readonly from: number; readonly to: number };
}

/** The parts of a split, in order: which producing tasks each reads of the input that is cut. */
function partsOf({ task: partition, input, cuts }: PartitionSplit): Share[] {
  const bounds = [0, ...cuts, Infinity];
  return bounds
    .slice(0, -1)
    .map((from, part) => ({ partition, cut: { input, from, to: bounds[part + 1] ?? Infinity } }));
}

/**
 * What each task of a stage reads whose plan has `planned` tasks, one for each partition. The first part of a partition
 * that is split goes by the partition's own number; the others get numbers after those of the plan, split by split.
 * So nobody who knows a task by its number is ever wrong about it.
 */
export function sharesOf(planned: number, splits: readonly PartitionSplit[]): readonly Share[] {
  const shares: Share[] = Array.from({ length: planned }, (_, partition) => ({ partition }));
  for (const split of splits) {
    const [first, ...others] = partsOf(split);
    invariant(first !== undefined && split.task < planned, 'a partition is split that is not there', {
      partition: split.task,
      planned,
    });
    shares[split.task] = first;
    shares.push(...others);
  }
  return shares;
}

/**
 * Takes over that partitions of a stage are read by several tasks each, before it opens; a second time (replay of the
 * log) has no effect. Whoever takes the job over may have known the results of all other tasks before: the stage is done
 * no more.
 */
export function splitStage(state: JobState, stage: StageView, splits: readonly PartitionSplit[]): void {
  if (stage.splits !== undefined || splits.length === 0) return;
  stage.splits = splits;
  const { length } = sharesOf(stage.shape.tasks, splits);
  const added = Array.from({ length: length - stage.shape.tasks }, (_, number) =>
    newTask(stage.index, stage.shape.tasks + number, 0),
  );
  stage.tasks = [...stage.tasks, ...added];
  if (stage.state !== 'done') return;
  stage.state = 'open';
  delete stage.doneAt;
  delete state.doneAt;
}
