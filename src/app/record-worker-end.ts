import type { AttemptPayload } from '../contracts/payloads.ts';
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
  readonly payload: Pick<AttemptPayload, 'jobId' | 'attemptId' | 'shards' | 'access'>;
  readonly death: WorkerDeath;
}

/**
 * Ends the attempt of a worker that the platform says is gone, with why, so that its scheduler need not wait for its
 * silence. The word may come late, twice, or of what is no attempt: it has an effect on an attempt that lives and that
 * nobody but this worker has claimed, and on no other. One that does not name its job's word is not believed, since
 * whoever may call the function might have written it.
 */
export async function recordWorkerEnd(
  { attempts, words, clock, log }: WorkerEndDeps,
  { payload, death }: WorkerEnd,
): Promise<'recorded' | 'refused'> {
  const { jobId, attemptId, shards, access } = payload;
  const { cause, message } = death.failure;
  const word = await words.wordOf(jobId);
  const isBelieved = word === undefined || word === access;
  const space = { jobId, shards };
  const outcome = isBelieved ? await attempts.recordDeath(space, attemptId, death, clock.now()) : 'refused';
  // Also where it was recorded before: whoever did that may have come no further.
  if (isBelieved) await attempts.tell(space, { attemptId, kind: 'end' }, clock.now());
  log.info('worker-ended', { jobId, attemptId, cause, message, outcome });
  return outcome;
}
