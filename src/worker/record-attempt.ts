import { zoneOfBucket } from '../contracts/directory-buckets.ts';
import { AccessDeniedError } from '../contracts/errors.ts';
import { attemptParts, taskOf } from '../contracts/ids.ts';
import type { AttemptPayload } from '../contracts/payloads.ts';
import type { Progress } from '../contracts/progress.ts';
import type { AttemptState, Failure, FinalPart, TaskResult } from '../contracts/records.ts';
import type { SavedWork } from '../contracts/saved-work.ts';
import { durationMs } from '../contracts/units.ts';
import { outputPlace, workerOfBucket } from '../contracts/worker-places.ts';
import { addTallies } from '../core/model/request-tally.ts';
import type { TaskSpace } from '../ports/attempt-store.ts';
import type { AttemptMeter } from './attempt-meter.ts';
import { failureOf } from './failure-of.ts';
import type { Leaving } from './hand-over.ts';
import type { ObjectWriter, WrittenObject } from './object-writer.ts';
import type { AttemptDeps, AttemptOutcome } from './run-attempt.ts';
import type { FinishedOutput } from './task-output.ts';
import type { Grace } from './time-limit.ts';

/** Tries to record a result, and the end of the attempt. */
const recordTries = 5;
const firstPauseMs = 200;

/** An attempt that runs. */
export interface Run {
  readonly deps: AttemptDeps;
  readonly payload: AttemptPayload;
  readonly space: TaskSpace;
  readonly meter: AttemptMeter;
  readonly signal: AbortSignal;
  readonly grace: Grace;
  readonly leaving: Leaving;
  /** The attempt whose work it was to take up, and could not. */
  readonly insteadOf?: number;
  /** Ends the attempt as one that was told to stop. */
  readonly cancel: () => void;
}

/** How it ended. */
export interface Ending {
  readonly outcome: Exclude<AttemptOutcome, 'refused' | 'declined'>;
  readonly failure?: Failure;
  readonly saved?: SavedWork;
}

/** Removes what the attempt wrote. What cannot be removed now goes with the job's prefix when the job ends. */
export async function discard({ deps, payload }: Run, writer: ObjectWriter | undefined): Promise<void> {
  try {
    await writer?.discard();
  } catch (error) {
    deps.log.warn('data-left', { jobId: payload.jobId, attemptId: payload.attemptId, error: String(error) });
  }
}

/** Never throws: from here on a cancellation comes too late, and the store alone knows who won. */
export async function commit(run: Run, finished: FinishedOutput, writer: ObjectWriter): Promise<Ending> {
  const { deps, payload, space } = run;
  const place = { zone: zoneOfBucket(writer.bucket), worker: workerOfBucket(writer.bucket) };
  const result = { ...resultOf(run, finished), ...outputPlace(place) };
  // Nobody reads what a final stage leaves, so a second copy of it would be an upload that nobody ends.
  const keep = payload.keepOutput === true && result.final === undefined ? 'replica' : undefined;
  let denial: unknown;
  const outcome = await persistently(
    run,
    'commit-failed',
    () => deps.attempts.commit(space, result, keep, payload.replaces),
    (error) => (denial = error),
  );
  if (denial !== undefined) return { outcome: 'failed', failure: failureOf(denial, 'runtime') };
  if (outcome === undefined) {
    // Perhaps it was recorded all the same: then the data is the task's output and must stay.
    const message = 'the result could not be recorded';
    deps.log.warn('commit-unknown', { jobId: payload.jobId, attemptId: payload.attemptId });
    return { outcome: 'failed', failure: { cause: 'storage', message } };
  }
  if (outcome === 'won') return { outcome: 'done' };
  if (outcome === 'kept') return { outcome: 'replica' };
  await discard(run, writer);
  return { outcome: 'lost-race' };
}

/** What Finish makes the task's part of. */
function finalPartOf(written: WrittenObject): FinalPart {
  if (written.kind === 'inline') return written;
  if (written.kind !== 'upload') return { kind: 'empty' };
  const { upload, parts, sizeBytes } = written;
  return { kind: 'upload', uploadId: upload.uploadId, parts, sizeBytes };
}

function resultOf({ deps, payload, meter }: Run, finished: FinishedOutput): TaskResult {
  const { written, partitions, bytesOut } = finished;
  const { bytesRead, recordsIn, recordsOut } = meter.totals();
  const bytesIn = bytesRead + (meter.takenUp?.bytes ?? 0);
  const final = finalPartOf(written);
  return {
    taskId: taskOf(payload.attemptId),
    attemptId: payload.attemptId,
    committedAt: deps.clock.now(),
    ...(partitions === undefined ? { final } : { partitions }),
    bytesIn,
    bytesOut,
    recordsIn,
    recordsOut,
    counters: meter.counters(),
    progress: withLastWrites(meter.progress(), resultUnits(partitions?.lengths.length ?? 0, final)),
  };
}

/** How an attempt ends in its record. */
const stateOf = {
  done: 'done',
  replica: 'done',
  'lost-race': 'cancelled',
  cancelled: 'cancelled',
  failed: 'failed',
} as const satisfies Record<Ending['outcome'], AttemptState>;

/** Records how the attempt ended, unless its result says that, and has the scheduler look at it. */
export async function recordEnd(run: Run, { outcome, failure, saved }: Ending): Promise<void> {
  const { deps, payload, space, meter } = run;
  const { attemptId } = payload;
  const end = {
    state: stateOf[outcome],
    progress: withLastWrites(meter.progress(), 1),
    ...(failure === undefined ? {} : { failure }),
    ...(saved === undefined ? {} : { saved }),
  };
  if (outcome !== 'done') {
    const told = await persistently(run, 'end-not-recorded', () =>
      deps.attempts.end(space, attemptId, end, deps.clock.now()),
    );
    // It was given up meanwhile, or its job has ended: nobody knows of what it has handed on.
    if (told === 'refused' && saved !== undefined) await removeSaved(run);
  }
  await persistently(run, 'end-not-told', async () => {
    await deps.attempts.tell(space, { attemptId, kind: 'end' }, deps.clock.now());
    return true;
  });
}

async function removeSaved({ deps, payload, leaving }: Run): Promise<void> {
  const { bucket, key } = leaving.deps.ref;
  await deps.objects.remove(bucket, [key]).catch((error: unknown) => {
    deps.log.warn('data-left', { jobId: payload.jobId, attemptId: payload.attemptId, error: String(error) });
  });
}

/** Write units of a result, whose index has 8 bytes for each partition: about, since units are rounded up. */
function resultUnits(partitions: number, final: FinalPart): number {
  const inlineBytes = final.kind === 'inline' ? final.body.byteLength : 0;
  return 1 + Math.floor((partitions * 8 + inlineBytes + 512) / 1_024);
}

/** The write that tells the counts is one of them, and so is the note that has the scheduler look at it. */
const withLastWrites = (progress: Progress, units: number): Progress =>
  progress.requests === undefined
    ? progress
    : { ...progress, requests: addTallies(progress.requests, { calls: 2, writeUnits: units + 1 }) };

/** Tries a write that may be repeated several times, but for want of a right; undefined where it never went through. */
export async function persistently<T>(
  { deps, payload }: Run,
  event: string,
  write: () => Promise<T>,
  onDenied: (error: unknown) => void = () => undefined,
): Promise<T | undefined> {
  const { jobId, attemptId } = payload;
  for (let tries = 0; tries < recordTries; tries++) {
    if (tries > 0) await deps.clock.sleep(durationMs(firstPauseMs * 2 ** (tries - 1)));
    try {
      return await write();
    } catch (error) {
      deps.log.warn(event, { jobId, attemptId, task: attemptParts(attemptId).task, error: String(error) });
      if (error instanceof AccessDeniedError) {
        onDenied(error);
        return undefined; // The next try would be denied alike.
      }
    }
  }
  return undefined;
}
