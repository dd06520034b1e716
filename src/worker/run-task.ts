import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { invariant } from '../contracts/errors.ts';
import { bucketOfZone } from '../contracts/directory-buckets.ts';
import { attemptParts } from '../contracts/ids.ts';
import type { AttemptId } from '../contracts/ids.ts';
import { attemptDataKey, attemptMetadata, partName } from '../contracts/keys.ts';
import { limits } from '../contracts/limits.ts';
import type { StageDescription } from '../contracts/plan.ts';
import { taskFilesOf } from '../contracts/task-files.ts';
import { usualGrace } from '../core/model/time-limit.ts';
import type { Clock } from '../ports/clock.ts';
import type { Log } from '../ports/log.ts';
import type { ObjectStore } from '../ports/object-store.ts';
import type { AttemptMeter } from './attempt-meter.ts';
import type { AttemptPlan } from './attempt-plan.ts';
import { ObjectWriter, type ObjectWriterOptions } from './object-writer.ts';
import { InputCut } from './input-cut.ts';
import { mayResume, openInput, openOutput, wouldResume } from './open-task.ts';
import { BadInputError, CancelledError } from './operator.ts';
import type { EngineSize, JsonState, OperatorRegistry, TaskContext, TaskInput } from './operator.ts';
import type { InputCheck } from './lost-inputs.ts';
import { Gate } from '../lib/gate.ts';
import { guarded } from './task-output.ts';
import type { ClosableOutput, FinishedOutput } from './task-output.ts';
import { describeInputs, layFiles, taskVariables } from './task-files.ts';
import type { Grace } from './time-limit.ts';
import type { CodeRef } from './user-code/bundle.ts';
import { UserTask } from './user-code/user-task.ts';
import type { UserCodeHost } from './user-code/user-task.ts';

/** Ranges of upstream outputs that are read at once: small ones wait for their first byte and little else. */
const readsAtOnce = 32;

/** What user code and programs see of the worker's environment. */
export interface TaskEnvironment {
  /** What all of them see: no credentials. */
  readonly plain: Readonly<Record<string, string>>;
  /**
   * What those see besides whose stage asks for credentials: the job's, for as long as they last. Absent where the
   * deployment gives none.
   */
  readonly credentials?: () => Promise<Readonly<Record<string, string>>>;
}

/** What making a task ready needs of the host. */
export interface TaskHost {
  readonly environment: TaskEnvironment;
  readonly objects: ObjectStore;
  readonly operators: OperatorRegistry;
  readonly sortMemoryBytes: number;
  /** What relational work may use; absent: little. */
  readonly engine?: EngineSize;
  readonly userCode: UserCodeHost;
}

/** One attempt, with all that it works with. */
export interface TaskAttempt {
  readonly attemptId: AttemptId;
  readonly plan: AttemptPlan;
  readonly writer: ObjectWriter;
  readonly meter: AttemptMeter;
  readonly log: Log;
  readonly signal: AbortSignal;
  /** Is told which inputs are lost; absent: nobody asks. */
  readonly check?: InputCheck;
  /** A directory of its own. */
  readonly scratchDir: string;
  /** What the operator has left when another attempt handed on what this one takes up. */
  readonly kept?: unknown;
}

/** A task that is ready to run. */
export interface PreparedTask {
  readonly signal: AbortSignal;
  /** What it reads, for the message of a failure: see `describeInputs`. */
  readonly reads: string;
  /** Runs the operator. Once the attempt is aborted, inputs and output throw. */
  run(): Promise<void>;
  /** Writes what is left of the output; after `run`. */
  finish(): Promise<FinishedOutput>;
  /** Ends what still runs of the task; however it ended, and at least once. */
  close(): Promise<void>;
  /** Whether that ends it whatever it is at, since it runs in a process of its own. */
  readonly isKillable: boolean;
  /** What it takes to end the task early and hand on what was done; absent where its operator does not allow it. */
  readonly handOver?: HandOver;
  /** Whether that is for want of a word of the job's author, who may not know of it. */
  readonly isUnsaid?: boolean;
}

/** A task that can be cut in two. */
export interface HandOver {
  readonly cut: InputCut;
  readonly output: ClosableOutput;
  /** All that was taken up has been put into the output; absent: nobody needs to know. */
  readonly taken?: () => Promise<void>;
  /** What the operator has left to be known, as JSON has it; undefined: nothing. Throws where that cannot be handed on. */
  readonly state: () => unknown;
}

/**
 * Attempts of a task that leave their output in their worker's zone: a zone that takes the beginning of each object, and loses
 * it, would have the others, none of which is a strike, do so for ever. More than one, since clones begin together.
 */
const zonalAttempts = 3;

/**
 * Where the attempt's output goes: an object of its own, on the tier `zonal` in the bucket of its worker's zone, on the tier
 * `worker-local` in the one that stands for its worker (`kept`), or an upload of its part that only Finish completes and that
 * is noted, since it lies where others write too. A part that is small goes with the result, and Finish writes it.
 */
export function writerOf(
  objects: ObjectStore,
  description: StageDescription,
  attemptId: AttemptId,
  {
    noteUpload,
    zone,
    kept,
  }: Required<Pick<ObjectWriterOptions, 'noteUpload'>> & {
    readonly zone?: string | undefined;
    readonly kept?: string | undefined;
  },
): ObjectWriter {
  const { jobId, dataBucket, zonalBuckets = [], outputPrefix, output } = description;
  if (output !== 'final') {
    const standard = { bucket: dataBucket, key: attemptDataKey(jobId, attemptId) };
    if (kept !== undefined)
      return new ObjectWriter(objects, { ...standard, bucket: kept }, { leaveUpload: false });
    const isZonal = attemptParts(attemptId).attempt < zonalAttempts;
    const bucket = isZonal ? bucketOfZone(zonalBuckets, zone) : undefined;
    return bucket === undefined
      ? new ObjectWriter(objects, standard, { leaveUpload: false })
      : new ObjectWriter(objects, { ...standard, bucket }, { leaveUpload: false, fallback: standard });
  }
  const key = outputPrefix.key + partName(attemptParts(attemptId).task);
  const metadata = { [attemptMetadata]: `${jobId}/${attemptId}` };
  const ref = { bucket: outputPrefix.bucket, key };
  return new ObjectWriter(objects, ref, {
    leaveUpload: true,
    inlineBytes: limits.inlinePartBytes,
    metadata,
    noteUpload,
  });
}

/** Loads the operator, checks its options, opens inputs and output. Throws what these throw, and leaves nothing open. */
export async function prepareTask(host: TaskHost, attempt: TaskAttempt): Promise<PreparedTask> {
  const { plan, scratchDir } = attempt;
  const gate = new Gate(readsAtOnce);
  const inputs: TaskInput[] = [];
  const cut = mayResume(host.operators, plan) ? new InputCut() : undefined;
  for (const index of plan.inputs.keys()) {
    const inputDir = await directory(scratchDir, `input-${String(index)}`);
    inputs.push(openInput(host, attempt, { index, gate, scratchDir: inputDir, cut }));
  }
  const task: OpenTask = {
    inputs,
    cut,
    environment: await environmentFor(host.environment, plan.description),
    operatorDir: await directory(scratchDir, 'operator'),
    sortDir: await directory(scratchDir, 'sort'),
  };
  const { code } = plan.description;
  if (code === undefined) return prepareOperator(host, attempt, task);
  return prepareUserCode(host, attempt, { ...task, code, codeDir: await directory(scratchDir, 'code') });
}

/** What operators and user code alike are given. */
interface OpenTask {
  readonly cut: InputCut | undefined;
  readonly inputs: readonly TaskInput[];
  readonly environment: Readonly<Record<string, string>>;
  readonly operatorDir: string;
  readonly sortDir: string;
}

/** A built-in operator runs in this process. */
async function prepareOperator(
  host: TaskHost,
  attempt: TaskAttempt,
  { cut, inputs, environment, operatorDir, sortDir }: OpenTask,
): Promise<PreparedTask> {
  const { plan, attemptId, meter, signal, log } = attempt;
  const { jobId, operator: operatorName, partitions, options } = plan.description;
  invariant(operatorName !== undefined, 'a stage has an operator or code', { attemptId });
  const operator = host.operators[operatorName];
  operator.check(options);
  if (operatorName === 'exec')
    await layFiles(host.userCode.objects, taskFilesOf(options), operatorDir, signal);
  const output = openOutput(host, attempt, operator, sortDir);
  let state: JsonState | undefined;
  const context: TaskContext = {
    ...attemptParts(attemptId),
    print: (stream, text) => {
      log.info('user-output', { jobId, attemptId, stream, text });
    },
    tasks: plan.description.tasks,
    partitions,
    options,
    inputs,
    output: guarded(output, signal),
    scratchDir: operatorDir,
    isFinal: plan.description.output === 'final',
    ...(host.engine === undefined ? {} : { engine: host.engine }),
    environment,
    signal,
    ...(attempt.kept === undefined ? {} : { kept: attempt.kept }),
    keep: (left) => {
      state = left;
    },
    ...tellers(attempt),
  };
  return {
    signal,
    reads: describeInputs(inputs),
    run: async () => {
      await operator.run(context);
      // What a program said on the way; it has read what it has read.
      meter.saidDone = undefined;
    },
    finish: () => output.finish(),
    close: () => Promise.resolve(),
    isKillable: false,
    isUnsaid: cut === undefined && wouldResume(operator, plan),
    ...(cut === undefined ? {} : { handOver: { cut, output, state: () => state } }),
  };
}

/** How an operator tells of its task. */
function tellers({
  plan,
  attemptId,
  meter,
  log,
}: TaskAttempt): Pick<TaskContext, 'count' | 'note' | 'tally' | 'progress'> {
  const { jobId } = plan.description;
  return {
    count: (counter, by) => {
      meter.count(counter, by);
    },
    note: (why) => {
      log.info('slower-way', { jobId, attemptId, why });
    },
    progress: (fraction) => {
      meter.saidDone = Math.max(meter.saidDone ?? 0, fraction);
    },
    tally: (records) => {
      meter.recordsIn += records.in ?? 0;
      meter.recordsOut += records.out ?? 0;
    },
  };
}

/** User code runs in a process of its own, which ends with the attempt. */
async function prepareUserCode(
  host: TaskHost,
  { plan, attemptId, writer, meter, signal, log, kept }: TaskAttempt,
  open: OpenTask & { readonly code: CodeRef; readonly codeDir: string },
): Promise<PreparedTask> {
  const { jobId, name: stage, partitions, options, output } = plan.description;
  const { task, attempt } = attemptParts(attemptId);
  const { cut, inputs, environment, operatorDir, sortDir, code, codeDir } = open;
  const user = await UserTask.open(host.userCode, {
    code,
    codeDir,
    cwd: operatorDir,
    env: { ...environment, TMPDIR: operatorDir, ...taskVariables(stage, attemptParts(attemptId), inputs) },
    onLine: (stream, text) => {
      log.info('user-output', { jobId, attemptId, stream, text });
    },
    start: {
      stage,
      task,
      attempt,
      partitions,
      options,
      output,
      sortMemoryBytes: host.sortMemoryBytes,
      operatorDir,
      sortDir,
      ...(kept === undefined ? {} : { kept }),
    },
    inputs,
    sink: writer,
    meter,
    signal,
  });
  return {
    signal,
    reads: '', // What it throws has the place of its record, where that is known.
    run: () => user.run(),
    finish: () => user.finish(),
    close: () => user.close(),
    isKillable: true,
    isUnsaid: cut !== undefined && !user.resumes && inputs.every(({ kind }) => kind === 'source'),
    ...(cut === undefined || !user.resumes
      ? {}
      : {
          handOver: {
            cut,
            output: user.taken,
            taken: () => user.taken.flush(),
            state: () => user.state(),
          },
        }),
  };
}

/** Checked again here, since a plan may be older than the deployment. */
async function environmentFor(
  { plain, credentials }: TaskEnvironment,
  { name, credentials: isAsked }: StageDescription,
): Promise<Readonly<Record<string, string>>> {
  if (isAsked !== true) return plain;
  if (credentials !== undefined) return { ...plain, ...(await credentials()) };
  throw new BadInputError(`stage ${name} asks for credentials, which this deployment gives to no stage`);
}

async function directory(parent: string, name: string): Promise<string> {
  const path = join(parent, name);
  await mkdir(path);
  return path;
}

/**
 * Runs the operator to its end. When the attempt is aborted it throws the reason, after the operator stopped or its
 * time of grace is over; from then on its inputs and output throw.
 */
export async function runOperator(
  clock: Clock,
  task: PreparedTask,
  grace: Grace = { usual: usualGrace, ordered: usualGrace },
): Promise<void> {
  const { signal } = task;
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
  const work = task.run();
  if ((await Promise.race([work, aborted])) === 'aborted') {
    const stopped = new AbortController();
    const settled = work.catch(() => undefined);
    const isOrdered = task.isKillable && signal.reason instanceof CancelledError;
    const length = isOrdered ? grace.ordered : grace.usual;
    await Promise.race([settled, clock.sleep(length, stopped.signal)]);
    stopped.abort();
    signal.throwIfAborted();
  }
}
