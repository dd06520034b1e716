import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { StoreUnavailableError } from '../contracts/errors.ts';
import { attemptParts } from '../contracts/ids.ts';
import { limits } from '../contracts/limits.ts';
import { attemptDataKey } from '../contracts/keys.ts';
import type { AttemptPayload } from '../contracts/payloads.ts';
import type { Failure } from '../contracts/records.ts';
import type { SavedOf, SavedWork } from '../contracts/saved-work.ts';
import { durationMs, elapsedMs, type EpochMs } from '../contracts/units.ts';
import type { AttemptStore, TaskSpace } from '../ports/attempt-store.ts';
import type { Clock } from '../ports/clock.ts';
import type { Log } from '../ports/log.ts';
import type { ObjectStore } from '../ports/object-store.ts';
import type { OutputKeeper } from '../ports/output-keeper.ts';
import type { RequestMeter } from '../ports/request-meter.ts';
import { AttemptMeter } from './attempt-meter.ts';
import { type AttemptPlan, loadAttemptPlan, upstreamOf } from './attempt-plan.ts';
import { decline, isAvoided } from './decline.ts';
import { endOfAborted, endOfStopped, mayPass } from './end-of-stopped.ts';
import { boundedLine, failureOf, failureReading, failureWith } from './failure-of.ts';
import { Leaving, saveWork } from './hand-over.ts';
import { startHeartbeat } from './heartbeat.ts';
import { keptBucket } from './kept-bucket.ts';
import { firstReportMs } from '../core/model/report-cadence.ts';
import { timeLimitOf, usualGrace } from '../core/model/time-limit.ts';
import { CancelledError } from './operator.ts';
import type { EngineSize, OperatorRegistry } from './operator.ts';
import { prepareTask, runOperator, writerOf } from './run-task.ts';
import type { PreparedTask, TaskEnvironment } from './run-task.ts';
import {
  graceOf,
  leaveMs,
  OutOfTimeError,
  PlaceTakenError,
  startNotice,
  startTimeLimit,
} from './time-limit.ts';
import { InputCheck } from './lost-inputs.ts';
import { LostZoneError, type ObjectWriter } from './object-writer.ts';
import { commit, discard, type Ending, persistently, recordEnd, type Run } from './record-attempt.ts';
import { findEarlierWork, NotTakenUpError, takeUp } from './take-up.ts';
import type { UserCodeHost } from './user-code/user-task.ts';

/** What an attempt needs from its host. */
export interface AttemptDeps {
  readonly objects: ObjectStore;
  readonly attempts: AttemptStore;
  readonly clock: Clock;
  readonly log: Log;
  readonly operators: OperatorRegistry;
  /** Bucket of plans and intermediate data. */
  readonly dataBucket: string;
  readonly place: { readonly node: string; readonly zone?: string };
  /** What of the platform runs it, by which the platform tells of its death; see `AttemptRecord`. */
  readonly invocation?: string;
  /** When the platform ends the process, whatever it is at; absent where it does not. */
  readonly endsAt?: EpochMs;
  /** Whether the same invocation has run attempts before, which have used up some of its time. */
  readonly isUsed?: boolean;
  readonly environment: TaskEnvironment;
  /** Directory under which the attempt makes one of its own, and removes it; made if it is not there. */
  readonly scratchRoot: string;
  /** Memory for sorting, and again for merging, which the inputs share. */
  readonly sortMemoryBytes: number;
  /** What relational work may use; absent: little. */
  readonly engine?: EngineSize;
  /** How user code is run. */
  readonly userCode: UserCodeHost;
  /** What keeps outputs for other workers; absent: nothing does. */
  readonly keeper?: OutputKeeper;
  /** Largest resident memory of the process so far; 0 (the default) means unknown. */
  readonly peakMemoryBytes?: () => number;
  /** Processor time of the process so far, in milliseconds; absent: unknown. */
  readonly cpuMs?: () => number;
  /** Counts what the attempt asks for, where that costs something. */
  readonly requests?: RequestMeter;
  /**
   * Fires when the process is being stopped (SIGTERM): the attempt ends at once, as interrupted where the reason is a
   * `PlaceTakenError`, else as if it were told to cancel. Where that gives it time, and its operator allows it, it first hands
   * on what it has done.
   */
  readonly stopSignal?: AbortSignal;
}

/**
 * How an attempt ended. `refused`: it was claimed before, cancelled or lost, and did nothing. `declined`: its launch says
 * to avoid this node, and it did nothing. `lost-race`: another attempt of the task committed first. `replica`: so too, but
 * its data is kept for others to read.
 */
export type AttemptOutcome =
  'done' | 'replica' | 'lost-race' | 'cancelled' | 'failed' | 'refused' | 'declined';

/** How the name of each attempt's scratch directory begins. */
export const scratchPrefix = 'attempt-';

/** What Lambda itself logs of an invocation, and the attempt at its end. */
const platformLogBytes = 700;

/**
 * Executes one attempt: claims it, reads its inputs, runs the operator, writes one object, commits. Of several
 * attempts of a task the first to commit wins; the data of the others is removed, unless their launch says that it is
 * kept. Never throws for what the task does; throws what the claim throws, before any work is done. Stops itself, as
 * failed for want of time, before its environment would be ended. Leaves no scratch files.
 */
export function runAttempt(deps: AttemptDeps, payload: AttemptPayload): Promise<AttemptOutcome> {
  const { requests } = deps;
  if (requests === undefined) return claimAndRun(deps, payload);
  const owner = requestOwner(payload);
  return requests.counting(owner, () => {
    if (deps.isUsed !== true) requests.count({ logBytes: platformLogBytes });
    // What its last write asks for is told by nobody: it goes with the process's memory of the attempt.
    return claimAndRun(deps, payload).finally(() => requests.take(owner));
  });
}

/** For whom an attempt's worker counts what it asks for. */
export const requestOwner = ({ jobId, attemptId }: Pick<AttemptPayload, 'jobId' | 'attemptId'>): string =>
  `${jobId}/${attemptId}`;

async function claimAndRun(deps: AttemptDeps, payload: AttemptPayload): Promise<AttemptOutcome> {
  const { jobId, attemptId, shards } = payload;
  const { attempts, clock, log } = deps;
  const space: TaskSpace = { jobId, shards };
  const place = {
    node: boundedLine(deps.place.node, limits.nodeChars),
    ...(deps.place.zone === undefined ? {} : { zone: boundedLine(deps.place.zone, limits.nodeChars) }),
    ...(deps.invocation === undefined ? {} : { invocation: boundedLine(deps.invocation, limits.nodeChars) }),
  };
  if (isAvoided(payload, place)) return decline(deps, payload, space, place);
  const limit = timeLimitOf(deps.endsAt, clock.now());
  const firstMs = firstReportMs(attemptId, payload.heartbeatMs);
  const claimedAt = clock.now();
  if ((await attempts.claim(space, attemptId, place, claimedAt, firstMs)) === 'refused') {
    log.info('attempt-refused', { jobId, attemptId });
    return 'refused';
  }
  const abort = new AbortController();
  const { signal } = abort;
  const meter = new AttemptMeter(clock, signal, deps.peakMemoryBytes ?? (() => 0));
  const { requests } = deps;
  if (requests !== undefined) meter.takeRequests = () => requests.take(requestOwner(payload));
  const cancel = (): void => {
    abort.abort(new CancelledError('the attempt was told to cancel'));
  };
  const heartbeat = startHeartbeat({
    attempts,
    clock,
    log,
    space,
    attemptId,
    meter,
    claimedAt,
    every: durationMs(payload.heartbeatMs),
    cpuMs: deps.cpuMs,
    onCancel: cancel,
  });
  const timer = startTimeLimit(clock, limit, (error) => {
    abort.abort(error);
  });
  const ref = { bucket: deps.dataBucket, key: attemptDataKey(jobId, attemptId) };
  const leaving = new Leaving({ clock, meter, ref });
  const notice = startNotice(clock, limit, (error, left) => leaving.notice(error, left));
  const grace = graceOf(limit?.grace ?? usualGrace, payload.heartbeatMs);
  const run: Run = { deps, payload, space, meter, signal, cancel, grace, leaving };
  const stops = onStop(deps, leaving, abort);
  const ending = await inScratch(run).finally(() => {
    stops.forget();
    notice.stop();
    timer.stop();
    leaving.end();
    return heartbeat.stop();
  });
  await recordEnd(run, ending);
  log.info('attempt-ended', { jobId, attemptId, ...ending });
  return ending.outcome;
}

/** Ends the attempt when its process is being stopped, at once or when it has had the time to hand on its work. */
function onStop(
  { clock, stopSignal }: AttemptDeps,
  leaving: Leaving,
  abort: AbortController,
): { forget(): void } {
  const over = new AbortController();
  const onAbort = (): void => {
    const reason: unknown = stopSignal?.reason;
    const left = reason instanceof PlaceTakenError ? leaveMs(reason) : durationMs(0);
    if (!(reason instanceof PlaceTakenError) || left <= 0 || !leaving.notice(reason, left)) {
      abort.abort(reason);
      return;
    }
    void clock.sleep(left, over.signal).then(() => {
      if (!over.signal.aborted) abort.abort(reason);
    });
  };
  if (stopSignal?.aborted === true) onAbort();
  stopSignal?.addEventListener('abort', onAbort, { once: true });
  return {
    forget: () => {
      over.abort();
      stopSignal?.removeEventListener('abort', onAbort);
    },
  };
}

/** Runs the attempt in a scratch directory of its own. */
async function inScratch(run: Run): Promise<Ending> {
  const { scratchRoot, log } = run.deps;
  let scratchDir: string;
  try {
    await mkdir(scratchRoot, { recursive: true });
    scratchDir = await mkdtemp(join(scratchRoot, scratchPrefix));
  } catch (error) {
    return { outcome: 'failed', failure: failureOf(error, 'runtime') };
  }
  try {
    return await execute(run, scratchDir);
  } finally {
    await rm(scratchDir, { recursive: true, force: true, maxRetries: 3 }).catch((error: unknown) => {
      log.warn('scratch-left', { scratchDir, error: String(error) });
    });
  }
}

/** Takes up what an earlier attempt has handed on, if the launch says so; begins at the begin where that cannot be. */
async function execute(run: Run, scratchDir: string): Promise<Ending> {
  const { deps, payload } = run;
  const { jobId, attemptId, saved } = payload;
  if (saved === undefined) return executeFrom(run, scratchDir);
  try {
    const takenDir = join(scratchDir, 'taken-up');
    await mkdir(takenDir);
    return await executeFrom(run, takenDir, saved);
  } catch (error) {
    if (!(error instanceof NotTakenUpError)) throw error;
    const why = `it begins at the begin, since what attempt ${String(saved.attempt)} had done cannot be taken up: ${error.message}`;
    deps.log.warn('not-taken-up', { jobId, attemptId, why: boundedLine(why, limits.failureChars) });
    run.meter.recordsOut = 0;
    return executeFrom({ ...run, insteadOf: saved.attempt }, scratchDir);
  }
}

async function executeFrom(run: Run, scratchDir: string, saved?: SavedOf): Promise<Ending> {
  const { deps, payload, meter, signal } = run;
  let writer: ObjectWriter | undefined;
  let task: PreparedTask | undefined;
  let plan: AttemptPlan | undefined;
  let where: 'runtime' | 'operator' = 'runtime';
  const check = new InputCheck();
  try {
    plan = await loadAttemptPlan(deps.objects, deps.dataBucket, payload, signal);
    const reading = { objects: deps.objects, dataBucket: deps.dataBucket, signal };
    const earlier = saved === undefined ? undefined : await findEarlierWork(reading, payload, saved, plan);
    plan = earlier?.plan ?? plan;
    meter.bytesTotal = plan.bytesTotal;
    meter.readsStages = plan.inputs.some(({ planned }) => planned.kind === 'stage');
    writer = await openWriter(run, plan);
    const { attemptId } = payload;
    const kept = earlier?.note.state === undefined ? {} : { kept: earlier.note.state };
    const attempt = { plan, writer, meter, log: deps.log, signal, check, scratchDir, attemptId, ...kept };
    const prepared = await prepareTask(deps, attempt);
    task = prepared;
    if (earlier !== undefined) {
      const beganAt = deps.clock.now();
      const taken = await takeUp(reading, earlier, prepared, meter);
      meter.takenUp = { ...taken, ms: elapsedMs(beganAt, deps.clock.now()) };
      tellTakenUp(run, plan);
    }
    signal.throwIfAborted();
    where = 'operator';
    run.leaving.begin(prepared, writer);
    await runOperator(deps.clock, prepared, run.grace);
    await meter.during('read', () => check.throwIfUnsure(signal)); // Whatever the operator made of that.
    where = 'runtime';
    // Nothing of the user's runs while the result is recorded.
    await prepared.close();
    const left = await leave(run, prepared, plan, writer);
    if (left !== undefined) return left;
    const finished = await meter.during('write', () => prepared.finish());
    return await commit(run, finished, writer);
  } catch (error) {
    await task?.close();
    await discard(run, writer);
    if (signal.aborted) {
      if (task?.isUnsaid === true) tellUnsaid(run);
      return endOfAborted(signal, { isUsed: deps.isUsed === true, mayPass: run.leaving.mayPass });
    }
    if (error instanceof NotTakenUpError) throw error;
    const { reason } = run.leaving;
    // Who fails over an input that ended early may not fail over all of it.
    if (reason !== undefined && task?.handOver?.cut.rest() !== undefined && where === 'operator') {
      tellNotHandedOn(run, error);
      return endOfStopped(reason, { isUsed: deps.isUsed === true, mayPass: false });
    }
    await check.recheck(signal);
    await check.askOthers(deps.objects, upstreamOf(plan), signal, attemptParts(payload.attemptId).task);
    if (error instanceof LostZoneError)
      return { outcome: 'failed', failure: failureWith('interrupted', error.message) };
    const failure = check.failure() ?? failureReading(failureOf(error, where), task?.reads ?? '');
    return { outcome: 'failed', failure };
  }
}

async function openWriter(
  { deps, payload, ...run }: Run,
  { description }: AttemptPlan,
): Promise<ObjectWriter> {
  return writerOf(deps.objects, description, payload.attemptId, {
    noteUpload: uploadNote({ deps, payload, ...run }),
    zone: deps.place.zone,
    kept: await keptBucket(deps.keeper, description, payload.attemptId),
  });
}

const percentOf = (done: number, all: number): string => String(Math.floor((100 * done) / Math.max(1, all)));

/** Says in the job's log where the attempt begins. */
function tellTakenUp({ deps, payload, meter }: Run, { bytesTotal }: AttemptPlan): void {
  const { jobId, attemptId } = payload;
  const { attempt = 0, bytes = 0 } = meter.takenUp ?? {};
  const why = `it took up at ${percentOf(bytes, bytes + bytesTotal)} % what attempt ${String(attempt)} had done when it had to end`;
  deps.log.info('taken-up', { jobId, attemptId, why, bytesDone: bytes, bytesLeft: bytesTotal });
}

/** Says in the job's log what its author could have said, where an attempt has lost its place and its work with it. */
function tellUnsaid({ deps, payload: { jobId, attemptId }, signal: { reason } }: Run): void {
  if (!(reason instanceof PlaceTakenError) && !(reason instanceof OutOfTimeError)) return;
  const why = 'what it had done is not handed on, since its code or stage does not say "resumes": true';
  deps.log.info('not-handed-on', { jobId, attemptId, why });
}

/** Hands on what was done where the input was ended early; undefined where all of it was read: then the task is done. */
async function leave(
  run: Run,
  { handOver }: PreparedTask,
  plan: AttemptPlan,
  writer: ObjectWriter,
): Promise<Ending | undefined> {
  const { deps, meter, leaving, signal, insteadOf } = run;
  const { reason } = leaving;
  if (handOver?.cut.rest() === undefined || reason === undefined) return undefined;
  const isUsed = deps.isUsed === true;
  // Nothing was read in all that time: that is slow, and no large task.
  let isPassing = handOver.cut.bytesBefore === 0;
  try {
    const saved = await meter.during('write', () => saveWork(leaving.deps, handOver, { plan, writer }));
    const instead = insteadOf === undefined ? {} : { insteadOf };
    if (saved !== undefined) {
      const { failure, ...end } = endOfStopped(reason, { isUsed, mayPass: false });
      return { ...end, failure: toldSaved(failure, saved), saved: { ...saved, ...instead } };
    }
  } catch (error) {
    signal.throwIfAborted();
    tellNotHandedOn(run, error);
    isPassing = mayPass(error);
  }
  await discard(run, writer);
  return endOfStopped(reason, { isUsed, mayPass: isPassing });
}

function tellNotHandedOn({ deps, payload: { jobId, attemptId } }: Run, error: unknown): void {
  const why = `what it had done is not handed on: ${failureOf(error, 'operator').message}`;
  deps.log.warn('not-handed-on', { jobId, attemptId, why: boundedLine(why, limits.failureChars) });
}

function toldSaved({ cause, message }: Failure, { bytesDone, bytesTotal }: SavedWork): Failure {
  return failureWith(
    cause,
    `${message}; it hands on the ${percentOf(bytesDone, bytesTotal)} % of its input that it has done`,
  );
}

/** Notes an upload in the attempt's record. Throws where that fails, and where the attempt is told to stop. */
function uploadNote(run: Run): (upload: { readonly uploadId?: string }) => Promise<void> {
  const { deps, payload, space } = run;
  let since = deps.clock.now();
  return async (upload) => {
    if (upload.uploadId === undefined) since = deps.clock.now();
    const note = { since, ...upload };
    const order = await persistently(run, 'upload-not-noted', () =>
      deps.attempts.noteUpload(space, payload.attemptId, note, deps.clock.now()),
    );
    if (order === undefined) throw new StoreUnavailableError('the upload of the output could not be noted');
    if (order === 'cancel') run.cancel();
    run.signal.throwIfAborted();
  };
}
