import { type AttemptId } from '../../contracts/ids.ts';
import { type DurationMs, elapsedMs, type EpochMs } from '../../contracts/units.ts';
import { taskAt } from '../model/job-state.ts';
import type { AttemptView, JobState } from '../model/job-view.ts';

/** Which attempts are to be read now, each in one of the lists. */
export interface DueReads {
  /** Their records. */
  readonly records: readonly AttemptId[];
  /** Their records and what their tasks have come to. */
  readonly outputs: readonly AttemptId[];
}

/** By what times it is known when an attempt has something to say. */
export interface ReadTerms {
  readonly now: EpochMs;
  /** Time between two looks of the scheduler. */
  readonly tickMs: DurationMs;
  /** Longest time between two reports of a healthy attempt. */
  readonly reportMs: DurationMs;
}

/** One that waits to begin is read again after this share of the time that it has waited. */
const waitShare = 1 / 8;
/**
 * A report is looked for from the tick on that is nearest to when it is due. It cannot be there a whole tick before,
 * and where it is not yet there, it was paid for twice.
 */
const earlyTicks = 1 / 2;

/** Whether an attempt that has not claimed itself is to be read: the longer it has waited, the less often. */
function isWaitOver({ launchedAt, readAt = launchedAt }: AttemptView, terms: ReadTerms): boolean {
  const pauseMs = Math.min(terms.reportMs, elapsedMs(launchedAt, readAt) * waitShare);
  return elapsedMs(readAt, terms.now) >= pauseMs;
}

/** Since its last word a report is due: what was seen now may have been written any time since the look before. */
const isReportDue = (
  { seenAt, nextMs = 0 as DurationMs }: AttemptView,
  { now, tickMs }: ReadTerms,
): boolean => elapsedMs(seenAt, now) >= nextMs - tickMs * earlyTicks;

/**
 * The live attempts that are to be read: those that wait to begin, and those whose next report is due by what they
 * said of it, every time until it is there; one that does not say is always due. With the result of its task is
 * read whose report is missing, since it may have ended without a word, which was told to stop, since it is given up unless
 * it does, and whose task has had other attempts, which may be at an end that nobody waits for any more. Attempts that were told to stop before they were seen to work are
 * read once. Costs one pass over what lives.
 */
export function dueReads(state: JobState, terms: ReadTerms): DueReads {
  const records: AttemptId[] = [];
  const outputs: AttemptId[] = [...state.unsure].map(({ id }) => id);
  for (const attempt of state.live) {
    const isWaiting = attempt.state === 'launched';
    if (!(isWaiting ? isWaitOver(attempt, terms) : isReportDue(attempt, terms))) continue;
    const { nextMs = terms.reportMs, seenAt } = attempt;
    const isMissing = elapsedMs(seenAt, terms.now) > nextMs + 2 * terms.tickMs;
    const hasSiblings = taskAt(state, attempt.stage, attempt.task).attempts.length > 1;
    (isMissing || hasSiblings || attempt.cancelOrdered ? outputs : records).push(attempt.id);
  }
  return { records, outputs };
}

/** Takes over that attempts were read at a time. */
export function noteReads(
  state: JobState,
  ids: readonly AttemptId[],
  now: EpochMs,
  what: 'records' | 'outputs',
): void {
  for (const id of ids) {
    const attempt = state.attempts.get(id);
    if (attempt === undefined) continue;
    attempt.readAt = now;
    if (what === 'outputs') attempt.outputReadAt = now;
    state.unsure.delete(attempt);
  }
}
