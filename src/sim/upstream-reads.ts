import { invariant } from '../contracts/errors.ts';
import { attemptIdOf } from '../contracts/ids.ts';
import { limits } from '../contracts/limits.ts';
import type { AttemptPayload } from '../contracts/payloads.ts';
import type { LostOutput } from '../contracts/records.ts';
import { producersOf } from '../core/model/edge-manifest.ts';
import type { Rng } from '../lib/rng.ts';
import {
  type OutputCopy,
  outputCopy,
  otherHome,
  type SimJob,
  type SimStage,
  type SimTask,
} from './sim-job.ts';

/** Copies that a launch names in place of winners' outputs: by stage and task, the number of the attempt. */
export type NamedCopies = NonNullable<AttemptPayload['copies']>;

/** Of each stage that is read, by place among them, the attempts whose outputs its tasks are read from. */
export type InputLists = readonly (readonly (number | undefined)[])[];

/** What an attempt reads: the outputs that its lists name, but for copies that its launch names in their place. */
export interface InputNames {
  readonly lists: InputLists;
  readonly named?: NamedCopies | undefined;
}

/** Who reads: at which endpoint, and what it draws from. */
export interface Reader extends InputNames {
  readonly here: number;
  readonly rng: Rng;
}

/** Bytes that a task reads from one endpoint. */
export interface EndpointRead {
  readonly endpoint: number;
  readonly sizeBytes: number;
}

/** An output that a task reads. */
interface InputCopy {
  readonly producer: SimStage;
  readonly upstream: SimTask;
  readonly copy: OutputCopy;
}

/** The outputs that a task reads of one of the stages that its stage reads, by place. */
function* copiesOf(
  { stages }: SimJob,
  { upstream, scenario: { pattern, tasks } }: SimStage,
  { index }: SimTask,
  { lists, named = {} }: InputNames,
  input: number,
): Generator<InputCopy> {
  const producer = stages[upstream[input] ?? -1];
  invariant(producer !== undefined, 'a stage reads one that is not there', { input });
  const { from, to } = producersOf({ pattern, producerTasks: producer.tasks.length }, index, tasks);
  const numbers = named[producer.scenario.name] ?? {};
  for (const task of producer.tasks.slice(from, to)) {
    const number = numberOf(numbers[task.index]) ?? lists[input]?.[task.index];
    const copy = outputCopy(producer, task.index, number);
    invariant(copy !== undefined, 'an output is read that is not there', {
      stage: producer.scenario.name,
      task: task.index,
      attempt: number,
    });
    yield { producer, upstream: task, copy };
  }
}

/** Of the outputs that a task reads, those that are gone, as its worker reports them: `limits.lostPerReport` at most. */
export function goneInputs(job: SimJob, stage: SimStage, task: SimTask, names: InputNames): LostOutput[] {
  const gone: LostOutput[] = [];
  for (const [input, place] of stage.upstream.entries()) {
    if (job.stages[place]?.copiesGone === 0) continue;
    for (const { producer, upstream, copy } of copiesOf(job, stage, task, names, input)) {
      if (!copy.isGone) continue;
      if (gone.length === limits.lostPerReport) return gone;
      const attemptId = attemptIdOf(producer.scenario.name, upstream.index, copy.attempt);
      gone.push({ attemptId, how: 'missing', offset: 0, length: upstream.outputBytes, crc: 0 });
    }
  }
  return gone;
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
  { here, rng, ...names }: Reader,
): readonly EndpointRead[] {
  if (stage.upstream.length === 0) {
    if (task.homes.length === 0) task.homes.push(here, otherHome(stage, here, rng));
    return [{ endpoint: sourceFor(task, here, rng), sizeBytes: task.inputBytes }];
  }
  const sources = stage.upstream.flatMap((_, input) =>
    [...copiesOf(job, stage, task, names, input)].map(({ upstream, copy }) => ({
      endpoint: copy.endpoint,
      weight: upstream.outputBytes,
    })),
  );
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

const numberOf = (copy: NamedCopies[string][string] | undefined): number | undefined =>
  typeof copy === 'object' ? copy.attempt : copy;
