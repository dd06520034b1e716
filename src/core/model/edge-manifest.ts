import { invariant } from '../../contracts/errors.ts';
import { attemptParts } from '../../contracts/ids.ts';
import type { PlannedInput, StageDescription, StageSegment } from '../../contracts/plan.ts';
import type { PartitionIndex, TaskResult } from '../../contracts/records.ts';
import { type OutputPlace, outputPlace } from '../../contracts/worker-places.ts';
import { type Share, sharesOf } from './split-stage.ts';

type UpstreamPlan = Extract<PlannedInput, { kind: 'stage' }>;

/** What one task reads through one input. */
export interface EdgeLine {
  /** Worked out one by one whenever they are gone through: a million segments are never held at once. */
  readonly segments: Iterable<StageSegment>;
}

const lineOf = (segments: () => Iterator<StageSegment>): EdgeLine => ({
  segments: { [Symbol.iterator]: segments },
});

/** A committed output, and where each of its partitions begins. */
interface IndexedOutput {
  readonly task: number;
  readonly attempt: number;
  readonly index: PartitionIndex;
  readonly offsets: Float64Array;
  readonly place: OutputPlace;
}

function indexed(result: TaskResult): IndexedOutput {
  const { attemptId, partitions = { lengths: [], crcs: [] } } = result;
  const { task, attempt } = attemptParts(attemptId);
  const offsets = new Float64Array(partitions.lengths.length);
  for (let partition = 1; partition < offsets.length; partition++) {
    offsets[partition] = (offsets[partition - 1] ?? 0) + (partitions.lengths[partition - 1] ?? 0);
  }
  return { task, attempt, index: partitions, offsets, place: outputPlace(result) };
}

/** What a task says of its columns is never longer; what is has records behind that. */
const mostColumnBytes = 1024 * 1024;

/**
 * The segments of a share of a partition. A part that begins later gets those before its own too, as `head`s: what the first
 * of them says that has records, such as its columns, holds for every part. That cannot be told from here, but where one is
 * long: whoever reads them stops there as well.
 */
function* segmentsOfShare(
  outputs: readonly IndexedOutput[],
  { partition, cut }: Share,
  input: number,
): Generator<StageSegment> {
  const all = segmentsOf(outputs, partition);
  if (cut?.input !== input) {
    yield* all;
    return;
  }
  let mayBeAhead = true;
  for (const segment of all) {
    if (segment.task >= cut.to) return;
    if (segment.task >= cut.from) yield segment;
    else if (mayBeAhead) yield { ...segment, head: true };
    mayBeAhead &&= segment.length < mostColumnBytes;
  }
}

/** The segments of one partition of these outputs, in their order; empty ones are left out. */
function* segmentsOf(outputs: readonly IndexedOutput[], partition: number): Generator<StageSegment> {
  for (const { task, attempt, index, offsets, place } of outputs) {
    const length = index.lengths[partition] ?? 0;
    if (length === 0) continue;
    const crc = index.crcs[partition] ?? 0;
    yield { task, attempt, offset: offsets[partition] ?? 0, length, crc, ...place };
  }
}

/** All segments of these outputs, output by output. */
function* allSegments(outputs: readonly IndexedOutput[], partitions: number): Generator<StageSegment> {
  for (const output of outputs)
    for (let partition = 0; partition < partitions; partition++) yield* segmentsOf([output], partition);
}

/** Which producer tasks consumer task `task` of `tasks` reads, whole or in part. Contiguous groups for many-to-one. */
export function producersOf(
  input: Pick<UpstreamPlan, 'pattern' | 'producerTasks'>,
  task: number,
  tasks: number,
): { readonly from: number; readonly to: number } {
  if (input.pattern === 'all-to-all' || input.pattern === 'broadcast')
    return { from: 0, to: input.producerTasks };
  if (input.pattern === 'one-to-one') return { from: task, to: task + 1 };
  return {
    from: Math.floor((input.producerTasks * task) / tasks),
    to: Math.floor((input.producerTasks * (task + 1)) / tasks),
  };
}

/**
 * What each task of `consumer` reads through `input`: one entry per task, segments in order of producing task;
 * broadcast: a single entry, since all read the same. All-to-all, tasks are those of `read.shares`, as which `input` is
 * number `read.number`; absent: one for each partition.
 * `results` holds the committed result of every task of the producer, in task order: more than its plan has where
 * partitions that it read were split.
 */
export function edgeManifest(
  consumer: StageDescription,
  input: UpstreamPlan,
  results: readonly TaskResult[],
  read: { readonly number: number; readonly shares: readonly Share[] } = {
    number: consumer.inputs.indexOf(input),
    shares: sharesOf(consumer.tasks, []),
  },
): readonly EdgeLine[] {
  invariant(results.length >= input.producerTasks, 'a stage opened before its input was complete', {
    stage: consumer.name,
    input: input.stage,
    results: results.length,
  });
  const outputs = results.map(indexed);
  if (input.pattern === 'broadcast') return [lineOf(() => allSegments(outputs, input.producerPartitions))];
  // Each of many tasks would pass by what is empty for all of them.
  const written = outputs.filter(({ index }) => index.lengths.some((length) => length > 0));
  if (input.pattern === 'all-to-all')
    return read.shares.map((share) => lineOf(() => segmentsOfShare(written, share, read.number)));
  const edge = { pattern: input.pattern, producerTasks: results.length };
  return Array.from({ length: consumer.tasks }, (_, task) => {
    const { from, to } = producersOf(edge, task, consumer.tasks);
    return lineOf(() => allSegments(outputs.slice(from, to), input.producerPartitions));
  });
}

/** Which of so many consumer tasks read producer task `producer`, whole or in part: the other way round as `producersOf`. */
export function readersOf(
  { pattern, producerTasks }: Pick<UpstreamPlan, 'pattern' | 'producerTasks'>,
  producer: number,
  tasks: number,
): { readonly from: number; readonly to: number } {
  if (pattern === 'all-to-all' || pattern === 'broadcast') return { from: 0, to: tasks };
  // The first task whose group ends after it.
  const reader =
    pattern === 'one-to-one' ? producer : Math.ceil(((producer + 1) * tasks) / producerTasks) - 1;
  return { from: reader, to: reader + 1 };
}
