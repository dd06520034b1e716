import type { PolicyConfig } from '../../contracts/policy-config.ts';
import { quantileOf } from '../../lib/sorted-numbers.ts';
import type { Facts, PartitionSplit } from '../model/decision.ts';
import { stageAt } from '../model/job-state.ts';
import type { JobState, StageView } from '../model/job-view.ts';
import { meanMs } from '../model/stage-statistics.ts';
import type { StageSplits } from '../model/tick-config.ts';
import { stagesToBegin } from './stages-to-open.ts';

type SplitConfig = PolicyConfig['split'];

const defaultGainMs = 2_000;

/** What is known beside the job's own state. */
export interface SplitOutlook {
  /** Slots that there are: nothing is to be gained by parts smaller than a slot's share of the stage. */
  readonly slots: number;
  /** What a usual task of each stage took in earlier runs of the job, in ms; absent: nobody knows. */
  readonly earlierMs?: readonly (number | undefined)[];
}

/** What splits of a stage are weighed by. */
interface Scale {
  /** Bytes of a usual partition, and those below which parts bring nothing. */
  readonly usualBytes: number;
  readonly goalBytes: number;
  readonly msPerByte: number;
  /** What it takes a task to begin, once it is decided on. */
  readonly startMs: number;
}

/** Bytes of each partition that the tasks of a stage have left, all of them together. */
function partitionBytes({ tasks }: StageView, partitions: number): Float64Array {
  const sums = new Float64Array(partitions);
  for (const { result } of tasks) {
    const lengths = result?.partitions?.lengths ?? [];
    for (let at = 0; at < partitions; at++) sums[at] = (sums[at] ?? 0) + (lengths[at] ?? 0);
  }
  return sums;
}

/**
 * How long a byte takes: as a usual task of the stage took in earlier runs for what a usual partition holds now; else as
 * the tasks that have written it took for a byte of theirs. Undefined where neither is known.
 */
function msPerByteOf(
  producers: readonly StageView[],
  usualBytes: number,
  earlierMs: number | undefined,
): number | undefined {
  if (earlierMs !== undefined && earlierMs > 0 && usualBytes > 0) return earlierMs / usualBytes;
  const rates = producers.flatMap(({ statistics: { cost, msPerByte } }) => {
    const rate = cost.isLearnt && cost.perByte > 0 ? cost.perByte : quantileOf(msPerByte, 0.5);
    return rate === undefined ? [] : [rate];
  });
  return rates.length === 0 ? undefined : Math.max(...rates);
}

/** The lower median: of two partitions the smaller one is what is usual. */
const usualOf = (bytes: readonly number[]): number =>
  bytes.toSorted((a, b) => a - b)[(bytes.length - 1) >>> 1] ?? 0;

function scaleOf(
  stage: StageView,
  producers: readonly StageView[],
  bytes: readonly number[],
  { slots, earlierMs = [] }: SplitOutlook,
): Scale | undefined {
  const usualBytes = usualOf(bytes);
  const total = bytes.reduce((sum, each) => sum + each, 0);
  const msPerByte = msPerByteOf(producers, usualBytes, earlierMs[stage.index]);
  if (msPerByte === undefined) return undefined;
  return {
    usualBytes,
    goalBytes: Math.max(usualBytes, total / Math.max(1, slots)),
    msPerByte,
    startMs: Math.max(...producers.map(({ statistics }) => meanMs(statistics.lag))),
  };
}

/**
 * Cuts what tasks have left into at most `parts` runs of about the same bytes, none of them empty: after how many tasks,
 * and the bytes of the largest.
 */
export function cutEvenly(
  lengths: readonly number[],
  parts: number,
): { readonly cuts: readonly number[]; readonly largest: number } {
  const total = lengths.reduce((sum, each) => sum + each, 0);
  const cuts: number[] = [];
  let [largest, begun, passed, at] = [0, 0, 0, 0];
  for (let cut = 1; cut < parts; cut++) {
    const goal = (cut * total) / parts;
    // On to where the next task leads farther beyond the even cut than this place is before it.
    for (let next = lengths[at]; next !== undefined; next = lengths[at]) {
      if (passed > begun && passed + next - goal > goal - passed) break;
      passed += next;
      at += 1;
    }
    if (passed >= total) break;
    cuts.push(at);
    largest = Math.max(largest, passed - begun);
    begun = passed;
  }
  return { cuts, largest: Math.max(largest, total - begun) };
}

/** What one input holds of a partition. */
interface PartitionInput {
  /** Of each task that has written it. */
  readonly lengths: readonly number[];
  readonly bytes: number;
  readonly mayBeCut: boolean;
}

/** How a heavy partition is best split; undefined where it had better be read by one task. */
function splitOf(
  partition: number,
  inputs: readonly PartitionInput[],
  scale: Scale,
  config: SplitConfig & { readonly addable: number; readonly slots: number },
): PartitionSplit | undefined {
  const bytes = inputs.reduce((sum, each) => sum + each.bytes, 0);
  // The larger side is cut, of those that may be: the others are read by every part.
  const input = inputs.reduce((best, { bytes: own, mayBeCut }, at) => {
    if (!mayBeCut) return best;
    return own > (inputs[best]?.bytes ?? 0) ? at : best;
  }, -1);
  const { lengths = [], bytes: cutBytes = 0 } = inputs[input] ?? {};
  const wholeBytes = bytes - cutBytes;
  const most = Math.min(config.mostParts, config.addable + 1, Math.max(1, config.slots));
  const { leastGainMs = Math.max(defaultGainMs, scale.startMs) } = config;
  let best: { readonly cuts: readonly number[]; readonly partBytes: number } | undefined;
  for (let parts = 2; parts <= most; parts++) {
    // What the parts read beyond what one task would must not be more than that one reads.
    if ((parts - 1) * wholeBytes > bytes) break;
    const { cuts, largest } = cutEvenly(lengths, parts);
    const partBytes = largest + wholeBytes;
    if (cuts.length > 0 && partBytes < (best?.partBytes ?? bytes)) best = { cuts, partBytes };
    if (partBytes <= scale.goalBytes) break;
  }
  if (best === undefined) return undefined;
  const savedMs = Math.round((bytes - best.partBytes) * scale.msPerByte);
  if (savedMs < leastGainMs) return undefined;
  const facts: Facts = { bytes, usualBytes: scale.usualBytes, largestPartBytes: best.partBytes, savedMs };
  return { task: partition, input, cuts: best.cuts, facts };
}

/** The splits of a stage that is about to open, by partition; the largest ones are split where not all may be. */
function splitsOf(stage: StageView, state: JobState, config: SplitConfig, outlook: SplitOutlook) {
  const { addableTasks = 0, upstream, tasks: partitions, cutInputs } = stage.shape;
  if (addableTasks === 0 || partitions < 2) return [];
  const producers = upstream.map((place) => stageAt(state, place));
  const byInput = producers.map((producer) => partitionBytes(producer, partitions));
  const bytes = Array.from({ length: partitions }, (_, at) =>
    byInput.reduce((sum, sizes) => sum + (sizes[at] ?? 0), 0),
  );
  const scale = scaleOf(stage, producers, bytes, outlook);
  if (scale === undefined) return [];
  const splits: PartitionSplit[] = [];
  let addable = addableTasks;
  for (const partition of bytes
    .keys()
    .toArray()
    .toSorted((a, b) => (bytes[b] ?? 0) - (bytes[a] ?? 0))) {
    if ((bytes[partition] ?? 0) <= config.factor * scale.goalBytes) break;
    const inputs = producers.map(({ tasks }, at) => ({
      lengths: tasks.map(({ result }) => result?.partitions?.lengths[partition] ?? 0),
      bytes: byInput[at]?.[partition] ?? 0,
      mayBeCut: cutInputs?.includes(at) ?? true,
    }));
    const split = splitOf(partition, inputs, scale, { ...config, addable, slots: outlook.slots });
    if (split === undefined) continue;
    addable -= split.cuts.length;
    splits.push(split);
  }
  return splits.toSorted((a, b) => a.task - b.task);
}

/**
 * Partitions that the stages which are about to open had better read by several tasks each: far larger than what is usual
 * in their stage, and than a slot's share of it, so that one task would go on alone at the end, which no copy of it could
 * help; and so large that more is saved than a task takes to start. Such a partition is cut by tasks of the producing
 * stage into parts of about the usual size, each of which reads all of the other side.
 */
export function partitionsToSplit(
  state: JobState,
  config: SplitConfig,
  outlook: SplitOutlook,
): readonly StageSplits[] {
  if (!config.isOn) return [];
  return stagesToBegin(state).flatMap((stage) => {
    const splits = splitsOf(stage, state, config, outlook);
    return splits.length === 0 ? [] : [{ stage: stage.index, splits }];
  });
}
