import { randomUUID } from 'node:crypto';
import { resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { JournalResponse } from '../contracts/api.ts';
import type { JobId } from '../contracts/ids.ts';
import type { JobSpecInput } from '../contracts/job-spec.ts';
import { jobPrefix, type ObjectRef } from '../contracts/keys.ts';
import { finalJobStates, type JobRecord } from '../contracts/records.ts';
import type { InjectedCounts, Injection } from '../local/inject/injection.ts';
import type { ObjectStore } from '../ports/object-store.ts';
import { makeApiClient, type ApiClient } from './api-client.ts';
import { uploadCarried } from './carried.ts';
import { defaultStateDir } from './connection.ts';
import type { Console } from './console.ts';
import { dataBucketOf, startEmbeddedStack, type EmbeddedStack } from './start-stack.ts';
import { downloadOutput, type StoreSource } from './output-dir.ts';
import { localLines } from './local-lines.ts';
import { attemptInLocalWords, jobInLocalWords, lineInLocalWords } from './local-words.ts';
import { type PhaseTimes, Phases } from './phases.ts';
import type { PreparedJob } from './prepare-inputs.ts';
import { keepRun } from './run-records.ts';
import { wholeJournal } from './whole-journal.ts';
import { adoptStaged, planStaging, removeStaged, uploadStaged, type StagedSet } from './staging.ts';
import { makeTemporaryStateDir, openStateDir } from './state-dir.ts';
import { watchJob } from './watch-job.ts';

export interface RunRequest {
  readonly job: PreparedJob;
  /** Absolute path, checked by `checkOutputDir`. */
  readonly outputDir: string;
  /** Whether an earlier output there gives way. */
  readonly force?: boolean;
  readonly slots?: number;
  /** Keeps the stack's data here; without it they lie in a temporary directory. */
  readonly stateDir?: string;
  /** Leaves the temporary directory behind. */
  readonly keepState: boolean;
  readonly quiet: boolean;
  readonly injection?: Injection;
}

/** A job that has ended, and where its parts lie (absolute, in order; none unless it succeeded). */
export interface RunOutcome {
  readonly job: JobRecord;
  readonly output: readonly string[];
  /** Where the stack's data were kept, if they were. */
  readonly stateDir: string | undefined;
  /** State directory that keeps logs, attempts and decisions of the job; undefined where it cannot be written. */
  readonly recordIn: string | undefined;
  /** What the whole time went to. */
  readonly phases: PhaseTimes;
  /** What went wrong on purpose; undefined where nothing was to. */
  readonly injected: InjectedCounts | undefined;
}

/** What `runJob` starts and reaches; replaced in tests. */
export interface RunDeps {
  readonly console: Console;
  readonly startStack: typeof startEmbeddedStack;
  readonly storeOf: (stack: EmbeddedStack) => ObjectStore | Promise<ObjectStore>;
  readonly clientOf: (stack: EmbeddedStack) => ApiClient;
}

/** The real thing: a stack on this machine, reached over the wire. */
export const runDeps = (console: Console): RunDeps => ({
  console,
  startStack: startEmbeddedStack,
  // Loaded where it is needed: most jobs have their inputs and outputs as files.
  storeOf: async (stack) => (await import('./embedded-stack.ts')).objectStoreOf(stack),
  clientOf: makeApiClient,
});

/**
 * Starts a stack, uploads the inputs, runs the job, brings its output, and takes the stack down whatever
 * happens. A failed job is an outcome; throws where the job cannot be started or brought home, and the
 * signal's reason where that fires: then the job is cancelled.
 */
export async function runJob(request: RunRequest, deps: RunDeps, signal: AbortSignal): Promise<RunOutcome> {
  const isKept = request.stateDir !== undefined || request.keepState;
  const state =
    request.stateDir === undefined
      ? await makeTemporaryStateDir(request.keepState)
      : await openStateDir(request.stateDir, deps.console.cwd);
  const phases = new Phases(deps.console, request.quiet);
  phases.enter('starting');
  try {
    signal.throwIfAborted();
    const stack = await deps.startStack({
      stateDir: state.path,
      onPhase: (phase) => {
        phases.enter(phase);
      },
      expectsJob: true,
      learns: isKept,
      ...(request.slots === undefined ? {} : { slots: request.slots }),
      ...(request.injection === undefined ? {} : { injection: request.injection }),
    });
    let ran: Ran;
    try {
      ran = await runOnStack(request, stack, deps, { signal, isKept, phases });
    } finally {
      phases.enter('stopping');
      await stack.stop();
    }
    const { job, output, attempts, journal } = ran;
    const keptIn = isKept ? state.path : resolve(deps.console.cwd, defaultStateDir);
    const lines = (await localLines(state.path, job.jobId)).map((line) => ({
      ...line,
      text: lineInLocalWords(line.text, ran.sets),
    }));
    // Whoever may not write here has the output all the same.
    const recordIn = await keepRun(keptIn, { job, attempts, lines, journal }).catch(() => undefined);
    phases.end();
    return {
      job,
      output,
      recordIn,
      stateDir: isKept ? state.path : undefined,
      injected: stack.injected(),
      phases: phases.times(),
    };
  } finally {
    phases.end();
    await state.release();
  }
}

/** A job that has ended, as long as its stack is up. */
interface Ran {
  readonly job: JobRecord;
  readonly output: readonly string[];
  readonly attempts: Awaited<ReturnType<ApiClient['attempts']>>;
  readonly journal: JournalResponse['pieces'];
  readonly sets: readonly StagedSet[];
}

async function runOnStack(
  request: RunRequest,
  stack: EmbeddedStack,
  deps: RunDeps,
  {
    signal,
    isKept,
    phases,
  }: { readonly signal: AbortSignal; readonly isKept: boolean; readonly phases: Phases },
): Promise<Ran> {
  const store = onFirstUse(async () => deps.storeOf(stack));
  const client = deps.clientOf(stack);
  const bucket = dataBucketOf(stack);
  const sets = request.job.sets.map((files) => planStaging(bucket, files));
  try {
    const files = request.job.sets.flat();
    const onBytes = phases.enterBytes('uploading', totalBytes(files), files.length);
    for (const set of sets) {
      if (stack.objectFiles === undefined) await uploadStaged(await store(), set, signal, onBytes);
      else await adoptStaged(stack.objectFiles, set, signal, onBytes);
    }
    const { carried } = request.job;
    if (carried.length > 0) await uploadCarried(await store(), bucket, carried, { signal });
    signal.throwIfAborted();
    const spec = request.job.specWith(
      sets.map(({ uri }) => uri),
      bucket,
    );
    phases.enter('running');
    const news = stack.executionEnded?.bind(stack);
    const job = await submitAndWatch(request, { client, spec, news }, deps.console, signal);
    const told = await client.attempts(job.jobId).catch(() => ({ attempts: [] }));
    const attempts = { ...told, attempts: told.attempts.map((each) => attemptInLocalWords(each, sets)) };
    const journal = await wholeJournal((cursor) => client.journal(job.jobId, cursor)).catch(() => []);
    const output =
      job.state === 'succeeded'
        ? await bringOutput(request, { stack, store, isKept }, job, { signal, phases })
        : [];
    // The output is home: what is left behind is no reason to fail.
    if (isKept) await awaitCleanUp(await store(), bucket, job.jobId, signal).catch(() => undefined);
    return { job: jobInLocalWords(job, sets), output, attempts, journal, sets };
  } finally {
    // Data that go with the state directory need no removal of their own.
    if (isKept) for (const set of sets) await removeStaged(await store(), set).catch(() => undefined);
  }
}

const totalBytes = (files: readonly { readonly sizeBytes: number }[]): number =>
  files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);

function onFirstUse<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => (made ??= make());
}

/** Where a job's output lies, and whether it is still to be there later. */
interface Place {
  readonly stack: EmbeddedStack;
  readonly store: StoreSource;
  readonly isKept: boolean;
}

function bringOutput(
  { outputDir, force = false }: RunRequest,
  { stack, store, isKept }: Place,
  job: JobRecord,
  { signal, phases }: { readonly signal: AbortSignal; readonly phases: Phases },
): Promise<readonly string[]> {
  const { count, sizeBytes } = job.partTotals ?? {
    count: job.parts.length,
    sizeBytes: totalBytes(job.parts),
  };
  const onBytes = phases.enterBytes('downloading', sizeBytes, count);
  const { objectFiles } = stack;
  // Objects that go with the stack need no copy.
  const bring =
    objectFiles && ((ref: ObjectRef, path: string) => objectFiles.bring(ref, path, { isMoved: !isKept }));
  return downloadOutput(store, job, outputDir, signal, { force, onBytes, ...(bring && { bring }) });
}

/** More than Finish waits at most for copies that lost, with the heartbeats of an embedded stack. */
const cleanUpLimitMs = 15_000;
const cleanUpPollMs = 100;

/**
 * Waits until a job that has ended has removed its intermediate data, which comes last: a stack that is stopped before
 * would leave them in the state directory, and its slots taken. Not for ever, and not where the signal fires. Throws what
 * the store throws.
 */
async function awaitCleanUp(
  store: ObjectStore,
  bucket: string,
  jobId: JobId,
  signal: AbortSignal,
): Promise<void> {
  const limit = performance.now() + cleanUpLimitMs;
  while (!signal.aborted && performance.now() < limit) {
    const { done } = await store
      .list({ bucket, key: jobPrefix(jobId) })
      [Symbol.asyncIterator]()
      .next();
    if (done === true) return;
    await delay(cleanUpPollMs);
  }
}

interface Submission {
  readonly client: ApiClient;
  readonly spec: JobSpecInput;
  /** See `watchJob`. */
  readonly news: ((signal: AbortSignal) => Promise<unknown>) | undefined;
}

async function submitAndWatch(
  request: RunRequest,
  { client, spec, news }: Submission,
  console: Console,
  signal: AbortSignal,
): Promise<JobRecord> {
  const { jobId } = await client.submit({ spec, clientToken: randomUUID() });
  try {
    const options = { quiet: request.quiet, signal, ...(news === undefined ? {} : { news }) };
    return await watchJob(client, jobId, console, options);
  } catch (error) {
    if (signal.aborted) await cancelAndWait(client, jobId);
    throw error;
  }
}

const cancelLimitMs = 5_000;
const cancelPollMs = 100;

/** Best effort: the stack is about to go, and takes with it what did not end in time. */
async function cancelAndWait(client: ApiClient, jobId: string): Promise<void> {
  const limit = performance.now() + cancelLimitMs;
  try {
    let job = await client.cancel(jobId);
    while (!finalJobStates.includes(job.state) && performance.now() < limit) {
      await delay(cancelPollMs);
      job = await client.job(jobId);
    }
  } catch {
    // Nothing is left to be done about it.
  }
}
