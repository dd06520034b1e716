import { invariant } from '../../contracts/errors.ts';
import { attemptParts } from '../../contracts/ids.ts';
import type { PlannedInput, StageDescription, StageSegment } from '../../contracts/plan.ts';
import type { TaskResult } from '../../contracts/records.ts';

type UpstreamPlan = Extract<PlannedInput, { kind: 'stage' }>;

/** Segments of the partitions [from, to) of one committed output; empty ones are left out. */
function segmentsOf(result: TaskResult, from: number, to: number): StageSegment[] {
  const { task, attempt } = attemptParts(result.attemptId);
  const { lengths, crcs } = result.partitions ?? { lengths: [], crcs: [] };
  const segments: StageSegment[] = [];
  let offset = 0;
  for (let partition = 0; partition < to; partition++) {
    const length = lengths[partition] ?? 0;
    if (partition >= from && length > 0)
      segments.push({ task, attempt, offset, length, crc: crcs[partition] ?? 0 });
    offset += length;
  }
  return segments;
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
 * broadcast: a single entry, since all read the same.
 * `results` holds the committed result of every task of the producer, in task order.
 */
export function edgeManifest(
  consumer: StageDescription,
  input: UpstreamPlan,
  results: readonly TaskResult[],
): readonly { readonly segments: readonly StageSegment[] }[] {
  invariant(results.length === input.producerTasks, 'a stage opened before its input was complete', {
    stage: consumer.name,
    input: input.stage,
    results: results.length,
  });
  if (input.pattern === 'all-to-all') return shuffleLines(consumer.tasks, results);
  const whole = results.map((result) => segmentsOf(result, 0, input.producerPartitions));
  if (input.pattern === 'broadcast') return [{ segments: whole.flat() }];
  return Array.from({ length: consumer.tasks }, (_, task) => {
    const { from, to } = producersOf(input, task, consumer.tasks);
    return { segments: whole.slice(from, to).flat() };
  });
}

/** One pass over M results fills R lists: M·R steps, not M·R² as partition by partition would cost. */
function shuffleLines(tasks: number, results: readonly TaskResult[]): { segments: StageSegment[] }[] {
  const lines = Array.from({ length: tasks }, () => ({ segments: [] as StageSegment[] }));
  for (const result of results) {
    const { task, attempt } = attemptParts(result.attemptId);
    let offset = 0;
    lines.forEach(({ segments }, partition) => {
      const length = result.partitions?.lengths[partition] ?? 0;
      if (length > 0)
        segments.push({ task, attempt, offset, length, crc: result.partitions?.crcs[partition] ?? 0 });
      offset += length;
    });
  }
  return lines;
}
