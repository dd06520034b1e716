import { randomUUID } from 'node:crypto';
import { resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { JournalResponse } from '../contracts/api.ts';
import type { JobId } from '../contracts/ids.ts';
import type { JobSpecInput } from '../contracts/job-spec.ts';
import { jobPrefix } from '../contracts/keys.ts';
import { finalJobStates, type JobRecord } from '../contracts/records.ts';
import type { InjectedCounts, Injection } from '../local/inject/injection.ts';
import type { ObjectStore } from '../ports/object-store.ts';
import { oneLine } from '../report/format.ts';
import { makeApiClient, type ApiClient } from './api-client.ts';
import { isWithin } from './apart.ts';
import { uploadCarried } from './carried.ts';
import { defaultStateDir, quote } from './connection.ts';
import { writeLines, type Console } from './console.ts';
import { badInput, LeftBehindError } from './failures.ts';
import {
  dataBucketOf,
  failureOf,
  refusedStart,
  startEmbeddedStack,
  warningsOf,
  type EmbeddedStack,
} from './start-stack.ts';
import { downloadOutput, type Bringing, type StoreSource } from './output-dir.ts';
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
  /** What was asked for; undefined where nothing was. */
  readonly asked: Injection | undefined;
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
 * signal's reason where that fires: then the job is cancelled. Of a job that cannot be brought home the stack's data stay.
 */
export async function runJob(request: RunRequest, deps: RunDeps, signal: AbortSignal): Promise<RunOutcome> {
  const isKept = request.stateDir !== undefined || request.keepState;
  const state =
    request.stateDir === undefined
      ? await makeTemporaryStateDir(request.keepState)
      : await openStateDir(request.stateDir, deps.console.cwd);
  const phases = new Phases(deps.console, request.quiet);
  phases.enter('starting');
  let unbrought: Error | undefined;
  try {
    const { stack, ran } = await startAndRun(request, state.path, deps, { signal, isKept, phases });
    const keptIn = isKept ? state.path : resolve(deps.console.cwd, defaultStateDir);
    // Whoever may not write here has the output all the same.
    const recordIn = await keepRecord(request, ran, state.path, keptIn).catch(() => undefined);
    phases.end();
    if ('failure' in ran.brought) {
      unbrought = notBrought(ran.job, state.path, ran.brought.failure);
      throw unbrought;
    }
    return {
      job: ran.job,
      output: ran.brought.output,
      recordIn,
      stateDir: isKept ? state.path : undefined,
      injected: stack.injected(),
      asked: request.injection,
      phases: phases.times(),
    };
  } catch (error) {
    phases.end();
    // Who wanted the data wants them now; nothing else tells the name of a temporary directory.
    if (request.keepState && request.stateDir === undefined && unbrought === undefined)
      deps.console.err(`state     ${state.path}\n`);
    // A signal takes the place of what is thrown, and nothing else tells where a whole output lies.
    if (unbrought !== undefined && signal.aborted) deps.console.err(`${unbrought.message}\n`);
    throw error;
  } finally {
    await state.release(unbrought === undefined ? {} : { keep: true });
  }
}

/** A job that has succeeded and whose output lies in the stack's data alone. */
function notBrought({ jobId }: JobRecord, stateDir: string, failure: unknown): Error {
  const why = failure instanceof Error ? oneLine(failure.message) : String(failure);
  const place = quote(stateDir);
  // "outrider get" would find these missing.
  if (failure instanceof LeftBehindError && failure.details['parts'] !== 0)
    return badInput(
      `job ${jobId} has succeeded, and its output could not be brought: ${why}; all else of it is kept in ${stateDir}`,
      failure,
    );
  return badInput(
    `job ${jobId} has succeeded, and its output is kept in ${stateDir}, since it could not be brought: ${why}; ` +
      `"outrider local --state-dir ${place}" and then "outrider get ${jobId} <directory> --state-dir ${place}" bring it`,
    failure,
  );
}

async function startAndRun(
  request: RunRequest,
  stateDir: string,
  deps: RunDeps,
  work: Work,
): Promise<{ readonly stack: EmbeddedStack; readonly ran: Ran }> {
  const { signal, isKept, phases } = work;
  signal.throwIfAborted();
  const starting = deps.startStack({
    stateDir,
    onPhase: (phase) => {
      phases.enter(phase);
    },
    expectsJob: true,
    learns: isKept,
    ...(request.slots === undefined ? {} : { slots: request.slots }),
    ...(request.injection === undefined ? {} : { injection: request.injection }),
  });
  const stack = await starting.catch((error: unknown) => refusedStart(error, stateDir));
  const warnings = warningsOf(stack);
  if (warnings.length > 0) phases.end();
  writeLines(deps.console.err, warnings);
  const broken = new AbortController();
  failureOf(stack, stateDir).catch((error: unknown) => {
    broken.abort(error);
  });
  const either = AbortSignal.any([signal, broken.signal]);
  try {
    return { stack, ran: await runOnStack(request, stack, deps, { ...work, either }) };
  } catch (error) {
    // Whatever broke after that broke because of it.
    broken.signal.throwIfAborted();
    throw error;
  } finally {
    phases.enter('stopping');
    await stack.stop();
  }
}

/** What goes through a run. */
interface Work {
  /** By which whoever runs the command ends it. */
  readonly signal: AbortSignal;
  /** Whether the stack's data are to stay. */
  readonly isKept: boolean;
  readonly phases: Phases;
}

interface WorkOnStack extends Work {
  /** Fires as well where the stack cannot go on. */
  readonly either: AbortSignal;
}

/** Keeps what is known of a job, and returns where; undefined where nothing is kept. */
async function keepRecord(
  { outputDir }: RunRequest,
  { job, attempts, journal, sets, brought }: Ran,
  stateDir: string,
  keptIn: string,
): Promise<string | undefined> {
  // A directory for an output holds that alone.
  if (await isWithin(keptIn, outputDir)) return undefined;
  const lines = (await localLines(stateDir, job.jobId)).map((line) => ({
    ...line,
    text: lineInLocalWords(line.text, sets),
  }));
  const isBrought = job.state === 'succeeded' && 'output' in brought;
  return keepRun(keptIn, { job, attempts, lines, journal, ...(isBrought ? { outputDir } : {}) });
}

/** A job that has ended, as long as its stack is up. */
interface Ran {
  readonly job: JobRecord;
  /** Where its parts are; or why they could not be brought. */
  readonly brought: { readonly output: readonly string[] } | { readonly failure: unknown };
  readonly attempts: Awaited<ReturnType<ApiClient['attempts']>>;
  readonly journal: JournalResponse['pieces'];
  readonly sets: readonly StagedSet[];
}

async function runOnStack(
  request: RunRequest,
  stack: EmbeddedStack,
  deps: RunDeps,
  { signal, either, isKept, phases }: WorkOnStack,
): Promise<Ran> {
  const store = onFirstUse(async () => deps.storeOf(stack));
  const client = deps.clientOf(stack);
  const bucket = dataBucketOf(stack);
  const sets = request.job.sets.map((files) => planStaging(bucket, files));
  let isToStay = isKept;
  try {
    const files = request.job.sets.flat();
    const onBytes = phases.enterBytes('uploading', totalBytes(files), files.length);
    for (const set of sets) {
      if (stack.objectFiles === undefined) await uploadStaged(await store(), set, either, onBytes);
      else await adoptStaged(stack.objectFiles, set, either, onBytes);
    }
    const { carried } = request.job;
    if (carried.length > 0) await uploadCarried(await store(), bucket, carried, { signal: either });
    either.throwIfAborted();
    const spec = request.job.specWith(
      sets.map(({ uri }) => uri),
      bucket,
    );
    phases.enter('running');
    const news = stack.executionEnded?.bind(stack);
    const job = await submitAndWatch(request, { client, spec, news }, deps.console, either);
    const told = await client.attempts(job.jobId).catch(() => ({ attempts: [] }));
    const attempts = { ...told, attempts: told.attempts.map((each) => attemptInLocalWords(each, sets)) };
    const journal = await wholeJournal((cursor) => client.journal(job.jobId, cursor)).catch(() => []);
    const brought = await bringOutput(request, { stack, store, isKept }, job, { signal, phases }).then(
      (output) => ({ output }),
      (failure: unknown) => {
        if (signal.aborted) throw failure;
        isToStay = true;
        return { failure };
      },
    );
    // The job has ended: what is left behind is no reason to fail.
    if (isToStay) await awaitCleanUp(await store(), bucket, job.jobId, either).catch(() => undefined);
    return { job: jobInLocalWords(job, sets), brought, attempts, journal, sets };
  } finally {
    // Data that go with the state directory need no removal of their own.
    if (isToStay) for (const set of sets) await removeStaged(await store(), set).catch(() => undefined);
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

/** Paths of the parts; none unless the job has succeeded. */
async function bringOutput(
  { outputDir, force = false }: RunRequest,
  { stack, store, isKept }: Place,
  job: JobRecord,
  { signal, phases }: Pick<Work, 'signal' | 'phases'>,
): Promise<readonly string[]> {
  if (job.state !== 'succeeded') return [];
  const { count, sizeBytes } = job.partTotals ?? {
    count: job.parts.length,
    sizeBytes: totalBytes(job.parts),
  };
  const onBytes = phases.enterBytes('downloading', sizeBytes, count);
  const { objectFiles } = stack;
  // Objects that go with the stack need no copy.
  const bringing: Bringing | undefined = objectFiles && {
    bring: (ref, path) => objectFiles.bring(ref, path, { isMoved: !isKept }),
    giveBack: (ref, path) => objectFiles.giveBack(ref, path),
  };
  return downloadOutput(store, job, outputDir, signal, { force, onBytes, ...(bringing && { bringing }) });
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
    // A stack in this process does not come back.
    const options = { quiet: request.quiet, signal, outageMs: 0, ...(news === undefined ? {} : { news }) };
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
