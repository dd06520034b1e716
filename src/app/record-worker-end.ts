import type { AttemptId } from '../contracts/ids.ts';
import type { AttemptPayload } from '../contracts/payloads.ts';
import type { Failure } from '../contracts/records.ts';
import type { AttemptStore, TaskSpace, WorkerDeath } from '../ports/attempt-store.ts';
import type { EpochMs } from '../contracts/units.ts';
import type { Clock } from '../ports/clock.ts';
import type { JobWords } from '../ports/job-words.ts';
import type { Log } from '../ports/log.ts';

export interface WorkerEndDeps {
  readonly attempts: Pick<AttemptStore, 'recordDeath' | 'read' | 'tell'>;
  readonly words: JobWords;
  readonly clock: Clock;
  readonly log: Log;
}

/** The end of a worker, with what it was launched for. */
export interface WorkerEnd {
  readonly payload: Pick<AttemptPayload, 'jobId' | 'attemptId' | 'shards' | 'access' | 'next' | 'batch'>;
  readonly death: WorkerDeath;
  /** Whether its process ended well, and nobody ended it; absent: it did not. */
  readonly isByItself?: boolean;
}

/**
 * Why an attempt ended that was not the first of its worker: its time was used up by others too, so that it may have
 * enough of it in a worker of its own.
 */
const asRider = ({ cause, message }: Failure): Failure =>
  cause === 'timeout'
    ? { cause: 'interrupted', message: `${message}, of which others had taken some` }
    : { cause, message };

/**
 * Ends the attempt of a worker that the platform says is gone, with why, so that its scheduler need not wait for its
 * silence. Of those that ride together it is the one that the worker was at, and none where it had not claimed any but
 * the first. The word may come late, twice, or of what is no attempt: it has an effect on an attempt that lives and that
 * nobody but this worker has claimed, and on no other. One that does not name its job's word is not believed, since
 * whoever may call the function might have written it.
 */
export async function recordWorkerEnd(
  { attempts, words, clock, log }: WorkerEndDeps,
  end: WorkerEnd,
): Promise<'recorded' | 'refused'> {
  const { payload, death } = end;
  const { jobId, attemptId: first, shards, access, next = [] } = payload;
  const { cause, message } = death.failure;
  const word = await words.wordOf(jobId);
  const space = { jobId, shards };
  let [attemptId, outcome]: [AttemptId, 'recorded' | 'refused'] = [first, 'refused'];
  const isBelieved = word === undefined || word === access;
  if (isBelieved && payload.batch !== undefined) {
    [attemptId, outcome] = await recordEndInBatch(attempts, space, end, clock.now());
  } else if (isBelieved) {
    outcome = await attempts.recordDeath(space, first, death, clock.now());
    const ofRider = { ...death, failure: asRider(death.failure) };
    for (const rider of next) {
      if (outcome === 'recorded' || cause === 'expired') break;
      attemptId = rider.attemptId;
      outcome = await attempts.recordDeath(space, attemptId, ofRider, clock.now(), 'claimed');
    }
    // Also where it was recorded before: whoever did that may have come no further.
    for (const told of [first, ...next.map((rider) => rider.attemptId)])
      await attempts.tell(space, { attemptId: told, kind: 'end' }, clock.now());
  }
  log.info('worker-ended', { jobId, attemptId, cause, message, outcome });
  return outcome;
}

/**
 * Ends the first of these that nobody has. One further behind may not be theirs to take: where fewer workers were started
 * than were asked for, those at the end are launched by another call. A death that is told once more, or whose first writing had lost its answer, finds
 * on the same way the one that it has ended before, and ends no other.
 */
async function endUnclaimed(
  attempts: WorkerEndDeps['attempts'],
  space: TaskSpace,
  ids: readonly AttemptId[],
  { death, now }: { readonly death: WorkerDeath; readonly now: EpochMs },
): Promise<[AttemptId, 'recorded' | 'refused'] | undefined> {
  for (const each of ids) {
    if ((await attempts.recordDeath(space, each, death, now)) === 'recorded') return [each, 'recorded'];
    const [record] = (await attempts.read(space, [each], 'results')).attempts;
    if (record?.invocation === death.invocation) return [each, 'refused'];
  }
  return undefined;
}

/**
 * Ends the attempt that the worker had claimed of those that it might have taken. Where it had claimed none it ends
 * one that nobody has: there is one worker fewer for them. Not where the worker ended by itself, for then all had theirs.
 */
async function recordEndInBatch(
  attempts: WorkerEndDeps['attempts'],
  space: TaskSpace,
  { payload, death, isByItself = false }: WorkerEnd,
  now: EpochMs,
): Promise<[AttemptId, 'recorded' | 'refused']> {
  const ids = [payload, ...(payload.batch ?? [])].map(({ attemptId }) => attemptId);
  const { attempts: records } = await attempts.read(space, ids, 'records');
  const own = records.find(({ invocation }) => invocation === death.invocation)?.attemptId;
  if (own === undefined && isByItself) return [payload.attemptId, 'refused'];
  let ended: [AttemptId, 'recorded' | 'refused'] | undefined;
  // What is read may be older than its claim; what is written is not.
  for (const each of own === undefined ? ids : [own]) {
    if ((await attempts.recordDeath(space, each, death, now, 'claimed')) !== 'recorded') continue;
    ended = [each, 'recorded'];
    break;
  }
  if (own === undefined) ended ??= await endUnclaimed(attempts, space, ids, { death, now });
  ended ??= [own ?? payload.attemptId, 'refused'];
  // Also where it was recorded before: whoever did that may have come no further.
  await attempts.tell(space, { attemptId: ended[0], kind: 'end' }, now);
  return ended;
}
