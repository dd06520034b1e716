import type { TaskResult } from '../contracts/records.ts';
import { producersOf } from '../core/model/edge-manifest.ts';
import type { SimJob, SimStage, SimTask } from './sim-job.ts';

/** The tasks whose outputs a task reads. */
function readBy({ stages }: SimJob, { upstream, scenario }: SimStage, task: number): readonly SimTask[] {
  return upstream.flatMap((place) => {
    const tasks = stages[place]?.tasks ?? [];
    const edge = { pattern: scenario.pattern, producerTasks: tasks.length };
    const { from, to } = producersOf(edge, task, scenario.tasks);
    return tasks.slice(from, to);
  });
}

/** What a reader takes of one of the outputs that it reads: as much of its input as that is of all of them. */
function shareOf({ outputBytes }: SimTask, { inputBytes }: SimTask, all: readonly SimTask[]): number {
  const total = all.reduce((sum, each) => sum + each.outputBytes, 0);
  return Math.round(inputBytes * (total === 0 ? 1 / all.length : outputBytes / total));
}

/** What a task leaves for each partition: one for each task of the first stage that reads all, else one in all. */
function lengthsOf(job: SimJob, stage: SimStage, task: SimTask): readonly number[] {
  const reader = job.stages.find(({ upstream }) => upstream.includes(stage.index));
  if (reader === undefined) return [];
  if (reader.scenario.pattern === 'all-to-all') {
    const all = readBy(job, reader, 0);
    return reader.tasks.map((each) => shareOf(task, each, all));
  }
  for (const each of reader.tasks) {
    const read = readBy(job, reader, each.index);
    if (read.includes(task)) return [shareOf(task, each, read)];
  }
  return [0];
}

/** What a result says of an output that stays with its worker, on a node, for others to read; nothing where none does. */
export function keptBy(
  job: SimJob,
  stage: SimStage,
  task: SimTask,
  node: string,
): Pick<TaskResult, 'partitions' | 'worker'> {
  if (!stage.keepsOutputs) return {};
  const lengths = lengthsOf(job, stage, task);
  if (lengths.length === 0) return {};
  return { partitions: { lengths, crcs: lengths.map(() => 0) }, worker: node };
}
