import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { invariant } from '../contracts/errors.ts';
import { attemptParts } from '../contracts/ids.ts';
import type { AttemptId } from '../contracts/ids.ts';
import { attemptDataKey, attemptMetadata, partName } from '../contracts/keys.ts';
import type { StageDescription } from '../contracts/plan.ts';
import { durationMs } from '../contracts/units.ts';
import type { Clock } from '../ports/clock.ts';
import type { ObjectStore } from '../ports/object-store.ts';
import type { AttemptMeter } from './attempt-meter.ts';
import type { AttemptInput, AttemptPlan } from './attempt-plan.ts';
import { ExternalSort } from './external-sort.ts';
import { ObjectWriter } from './object-writer.ts';
import { BadInputError } from './operator.ts';
import type { Operator, OperatorRegistry, TaskContext, TaskInput } from './operator.ts';
import { ReadGate } from './segment-chunks.ts';
import { FinalOutput, guarded, SortedOutput, UnsortedOutput } from './task-output.ts';
import type { ClosableOutput } from './task-output.ts';
import { sourceInput, stageInput } from './task-input.ts';

/** Ranges of upstream outputs that are read at once. */
const readsAtOnce = 16;
/** How long an operator that was told to stop may take to do so. */
const graceMs = 5_000;

/** What user code and programs see of the worker's environment. */
export interface TaskEnvironment {
  /** What all of them see: no credentials. */
  readonly plain: Readonly<Record<string, string>>;
  /** What those see besides whose stage asks for credentials; absent where the deployment gives none. */
  readonly credentials?: Readonly<Record<string, string>>;
}

/** What making a task ready needs of the host. */
export interface TaskHost {
  readonly environment: TaskEnvironment;
  readonly objects: ObjectStore;
  readonly operators: OperatorRegistry;
  readonly sortMemoryBytes: number;
  loadCode(ref: { readonly s3: string; readonly sha256: string }, scratchDir: string): Promise<Operator>;
}

/** One attempt, with all that it works with. */
export interface TaskAttempt {
  readonly attemptId: AttemptId;
  readonly plan: AttemptPlan;
  readonly writer: ObjectWriter;
  readonly meter: AttemptMeter;
  readonly signal: AbortSignal;
  /** A directory of its own. */
  readonly scratchDir: string;
}

/** An operator and what it runs on. */
export interface PreparedTask {
  readonly operator: Operator;
  readonly context: TaskContext;
  readonly output: ClosableOutput;
}

/** Where the attempt's output goes: an object of its own, or an upload of its part that only Finish completes. */
export function writerOf(
  objects: ObjectStore,
  description: StageDescription,
  attemptId: AttemptId,
): ObjectWriter {
  const { jobId, dataBucket, outputPrefix, output } = description;
  if (output !== 'final') {
    return new ObjectWriter(
      objects,
      { bucket: dataBucket, key: attemptDataKey(jobId, attemptId) },
      { leaveUpload: false },
    );
  }
  const key = outputPrefix.key + partName(attemptParts(attemptId).task);
  const metadata = { [attemptMetadata]: `${jobId}/${attemptId}` };
  return new ObjectWriter(objects, { bucket: outputPrefix.bucket, key }, { leaveUpload: true, metadata });
}

/** Loads the operator, checks its options, opens inputs and output. Throws what `check` and `loadCode` throw. */
export async function prepareTask(host: TaskHost, attempt: TaskAttempt): Promise<PreparedTask> {
  const { plan, scratchDir, meter, signal } = attempt;
  const { description } = plan;
  const operatorDir = await directory(scratchDir, 'operator');
  const operator = await operatorOf(host, description, await directory(scratchDir, 'code'));
  operator.check(description.options);
  const gate = new ReadGate(readsAtOnce);
  const inputs: TaskInput[] = [];
  for (const [index, input] of plan.inputs.entries()) {
    inputs.push(openInput(host, attempt, input, gate, await directory(scratchDir, `input-${String(index)}`)));
  }
  const output = openOutput(host, attempt, operator, await directory(scratchDir, 'sort'));
  const context: TaskContext = {
    stage: description.name,
    task: attemptParts(attempt.attemptId).task,
    partitions: description.partitions,
    options: description.options,
    inputs,
    output: guarded(output, signal),
    scratchDir: operatorDir,
    environment: environmentFor(host.environment, description),
    signal,
    count: (name, by) => {
      meter.count(name, by);
    },
  };
  return { operator, context, output };
}

/** Checked again here, since a plan may be older than the deployment. */
function environmentFor(
  { plain, credentials }: TaskEnvironment,
  { name, credentials: isAsked }: StageDescription,
): Readonly<Record<string, string>> {
  if (isAsked !== true) return plain;
  if (credentials !== undefined) return { ...plain, ...credentials };
  throw new BadInputError(`stage ${name} asks for credentials, which this deployment gives to no stage`);
}

async function directory(parent: string, name: string): Promise<string> {
  const path = join(parent, name);
  await mkdir(path);
  return path;
}

async function operatorOf(
  host: TaskHost,
  description: StageDescription,
  scratchDir: string,
): Promise<Operator> {
  if (description.code !== undefined) return host.loadCode(description.code, scratchDir);
  invariant(description.operator !== undefined, 'a stage has an operator or code', {
    stage: description.name,
  });
  return host.operators[description.operator];
}

function openInput(
  host: TaskHost,
  { meter, signal }: TaskAttempt,
  input: AttemptInput,
  gate: ReadGate,
  scratchDir: string,
): TaskInput {
  const { objects, sortMemoryBytes: memoryBytes } = host;
  const onBytes = (count: number): void => {
    meter.bytesRead += count;
  };
  if (isSourceInput(input)) {
    const { format, header, onBadRecord } = input.planned;
    const reading = { objects, signal, onBytes };
    return sourceInput({ format, header, onBadRecord, segments: input.segments, reading, meter });
  }
  const { stage, pattern } = input.planned;
  const fetching = (request: () => Promise<Uint8Array>): Promise<Uint8Array> => meter.fetching(request);
  const reading = { objects, gate, onBytes, fetching, memoryBytes, scratchDir, signal };
  return stageInput({ stage, isMerged: pattern === 'all-to-all', segments: input.segments, reading, meter });
}

const isSourceInput = (
  input: AttemptInput,
): input is Extract<AttemptInput, { planned: { kind: 'source' } }> => input.planned.kind === 'source';

function openOutput(
  host: TaskHost,
  { plan, writer, meter, signal }: TaskAttempt,
  operator: Operator,
  scratchDir: string,
): ClosableOutput {
  const { output, partitions, options } = plan.description;
  switch (output) {
    case 'final':
      return new FinalOutput(writer, meter);
    case 'unsorted':
      return new UnsortedOutput(writer, partitions, meter);
    case 'sorted': {
      const combine = operator.combiner?.(options);
      const sort = new ExternalSort({
        partitions,
        memoryBytes: host.sortMemoryBytes,
        combine,
        scratchDir,
        signal,
      });
      return new SortedOutput(sort, writer, partitions, meter);
    }
  }
}

/**
 * Runs the operator to its end. When the attempt is aborted it throws the reason, after the operator stopped or its
 * time of grace is over; from then on its inputs and output throw.
 */
export async function runOperator(clock: Clock, { operator, context }: PreparedTask): Promise<void> {
  const { signal } = context;
  const aborted = new Promise<'aborted'>((resolve) => {
    if (signal.aborted) resolve('aborted');
    signal.addEventListener(
      'abort',
      () => {
        resolve('aborted');
      },
      { once: true },
    );
  });
  const work = operator.run(context);
  if ((await Promise.race([work, aborted])) === 'aborted') {
    const stopped = new AbortController();
    const settled = work.catch(() => undefined);
    await Promise.race([settled, clock.sleep(durationMs(graceMs), stopped.signal)]);
    stopped.abort();
    signal.throwIfAborted();
  }
}
