import type { AttemptId } from '../contracts/ids.ts';
import type { AttemptPayload } from '../contracts/payloads.ts';
import type { Failure } from '../contracts/records.ts';
import type { AttemptStore, WorkerDeath } from '../ports/attempt-store.ts';
import type { Clock } from '../ports/clock.ts';
import type { JobWords } from '../ports/job-words.ts';
import type { Log } from '../ports/log.ts';

export interface WorkerEndDeps {
  readonly attempts: Pick<AttemptStore, 'recordDeath' | 'tell'>;
  readonly words: JobWords;
  readonly clock: Clock;
  readonly log: Log;
}

/** The end of a worker, with what it was launched for. */
export interface WorkerEnd {
  readonly payload: Pick<AttemptPayload, 'jobId' | 'attemptId' | 'shards' | 'access' | 'next'>;
  readonly death: WorkerDeath;
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
  { payload, death }: WorkerEnd,
): Promise<'recorded' | 'refused'> {
  const { jobId, attemptId: first, shards, access, next = [] } = payload;
  const { cause, message } = death.failure;
  const word = await words.wordOf(jobId);
  const space = { jobId, shards };
  let [attemptId, outcome]: [AttemptId, 'recorded' | 'refused'] = [first, 'refused'];
  if (word === undefined || word === access) {
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
