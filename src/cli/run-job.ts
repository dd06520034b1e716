import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { JobId } from '../contracts/ids.ts';
import { jobPrefix } from '../contracts/keys.ts';
import { finalJobStates, type JobRecord } from '../contracts/records.ts';
import type { InjectedCounts, Injection } from '../local/inject/injection.ts';
import type { ObjectStore } from '../ports/object-store.ts';
import { makeApiClient, type ApiClient } from './api-client.ts';
import type { Console } from './console.ts';
import { dataBucketOf, objectStoreOf, startEmbeddedStack, type EmbeddedStack } from './embedded-stack.ts';
import { downloadOutput } from './output-dir.ts';
import type { PreparedJob } from './prepare-job.ts';
import { planStaging, removeStaged, uploadStaged, withLocalPaths, type StagedSet } from './staging.ts';
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
  /** What went wrong on purpose; undefined where nothing was to. */
  readonly injected: InjectedCounts | undefined;
}

/** What `runJob` starts and reaches; replaced in tests. */
export interface RunDeps {
  readonly console: Console;
  readonly startStack: typeof startEmbeddedStack;
  readonly storeOf: (stack: EmbeddedStack) => ObjectStore;
  readonly clientOf: (stack: EmbeddedStack) => ApiClient;
}

/** The real thing: a stack on this machine, reached over the wire. */
export const runDeps = (console: Console): RunDeps => ({
  console,
  startStack: startEmbeddedStack,
  storeOf: objectStoreOf,
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
  try {
    signal.throwIfAborted();
    const stack = await deps.startStack({
      stateDir: state.path,
      ...(request.slots === undefined ? {} : { slots: request.slots }),
      ...(request.injection === undefined ? {} : { injection: request.injection }),
    });
    try {
      const outcome = await runOnStack(request, stack, deps, { signal, isKept });
      return { ...outcome, stateDir: isKept ? state.path : undefined, injected: stack.injected() };
    } finally {
      await stack.stop();
    }
  } finally {
    await state.release();
  }
}

async function runOnStack(
  request: RunRequest,
  stack: EmbeddedStack,
  deps: RunDeps,
  { signal, isKept }: { readonly signal: AbortSignal; readonly isKept: boolean },
): Promise<Pick<RunOutcome, 'job' | 'output'>> {
  const store = deps.storeOf(stack);
  const client = deps.clientOf(stack);
  const bucket = dataBucketOf(stack);
  const sets = request.job.sets.map((files) => planStaging(bucket, files));
  try {
    for (const set of sets) await uploadStaged(store, set, signal);
    signal.throwIfAborted();
    const job = await submitAndWatch(request, client, sets, deps.console, signal);
    const output =
      job.state === 'succeeded'
        ? await downloadOutput(store, job, request.outputDir, signal, { force: request.force === true })
        : [];
    // The output is home: what is left behind is no reason to fail.
    if (isKept) await awaitCleanUp(store, bucket, job.jobId, signal).catch(() => undefined);
    return { job: inLocalWords(job, sets), output };
  } finally {
    // Data that go with the state directory need no removal of their own.
    if (isKept) for (const set of sets) await removeStaged(store, set).catch(() => undefined);
  }
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

async function submitAndWatch(
  request: RunRequest,
  client: ApiClient,
  sets: readonly StagedSet[],
  console: Console,
  signal: AbortSignal,
): Promise<JobRecord> {
  const spec = request.job.specWith(sets.map(({ uri }) => uri));
  const { jobId } = await client.submit({ spec, clientToken: randomUUID() });
  try {
    return await watchJob(client, jobId, console, { quiet: request.quiet, signal });
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

/** A failure names the user's files, not the keys under which they were uploaded. */
function inLocalWords(job: JobRecord, sets: readonly StagedSet[]): JobRecord {
  if (job.error === undefined) return job;
  return { ...job, error: { ...job.error, message: withLocalPaths(job.error.message, sets) } };
}
