import { invariant } from '../contracts/errors.ts';
import type { AttemptPayload } from '../contracts/payloads.ts';
import { producersOf } from '../core/model/edge-manifest.ts';
import type { Rng } from '../lib/rng.ts';
import { type OutputCopy, otherHome, type SimJob, type SimStage, type SimTask } from './sim-job.ts';

/** Copies that a launch names in place of winners' outputs: by stage and task, the number of the attempt. */
export type NamedCopies = NonNullable<AttemptPayload['copies']>;

/** Who reads: at which endpoint, which copies by order, and what it draws from. */
export interface Reader {
  readonly named?: NamedCopies | undefined;
  readonly here: number;
  readonly rng: Rng;
}

/** Bytes that a task reads from one endpoint. */
export interface EndpointRead {
  readonly endpoint: number;
  readonly sizeBytes: number;
}

/** The winner's copy of a task's output, or the one that `number` names. */
function copyToRead(stage: SimStage, task: SimTask, number: number | undefined): OutputCopy {
  const copies = stage.outputs[task.index] ?? [];
  const copy = number === undefined ? copies[0] : copies.find(({ attempt }) => attempt === number);
  invariant(copy !== undefined, 'an output is read that is not there', {
    stage: stage.scenario.name,
    task: task.index,
    attempt: number,
  });
  return copy;
}

/** Where a reader takes a task's source from: the place where it is, else any of those where that lies. */
function sourceFor({ homes }: SimTask, here: number, rng: Rng): number {
  const [first = here, second] = homes;
  if (second === undefined || homes.includes(here)) return second === undefined ? first : here;
  return rng.next() < 0.5 ? first : second;
}

/**
 * What a task reads from which endpoints, by place of these; outputs that lie together are read as one. Every
 * upstream task has the same share of the input as of the output of all those that are read, and where these have
 * none, all have the same. Empty endpoints are left out. Without upstream stages all comes from the task's source: from
 * where the reader is, if it lies there. The first reader decides where it lies, if the scenario says so.
 */
export function endpointReads(
  job: SimJob,
  stage: SimStage,
  task: SimTask,
  { named = {}, here, rng }: Reader,
): readonly EndpointRead[] {
  if (stage.upstream.length === 0) {
    if (task.homes.length === 0) task.homes.push(here, otherHome(stage, here, rng));
    return [{ endpoint: sourceFor(task, here, rng), sizeBytes: task.inputBytes }];
  }
  const { pattern, tasks } = stage.scenario;
  const sources = stage.upstream.flatMap((place) => {
    const producer = job.stages[place];
    invariant(producer !== undefined, 'a stage reads one that is not there', { place });
    const { from, to } = producersOf({ pattern, producerTasks: producer.tasks.length }, task.index, tasks);
    const numbers = named[producer.scenario.name] ?? {};
    return producer.tasks.slice(from, to).map((upstream) => ({
      endpoint: copyToRead(producer, upstream, numbers[upstream.index]).endpoint,
      weight: upstream.outputBytes,
    }));
  });
  const outputBytes = sources.reduce((sum, { weight }) => sum + weight, 0);
  const weights = new Map<number, number>();
  for (const { endpoint, weight } of sources) {
    weights.set(endpoint, (weights.get(endpoint) ?? 0) + (outputBytes === 0 ? 1 : weight));
  }
  const total = outputBytes === 0 ? sources.length : outputBytes;
  return [...weights]
    .filter(([, weight]) => weight > 0)
    .map(([endpoint, weight]) => ({ endpoint, sizeBytes: (weight / total) * task.inputBytes }))
    .sort((a, b) => a.endpoint - b.endpoint);
}
