import type { AttemptRecord, AttemptState } from '../../contracts/records.ts';
import type { AttemptView } from './job-view.ts';

const ended: readonly AttemptState[] = ['done', 'failed', 'cancelled', 'lost'];

/**
 * Whether a record says anything new. One that is read cheaply may be older than what was seen before: its worker had
 * then written less often. And one that is read without the result beside it may still run where that result has
 * ended it.
 */
export function isNews(attempt: AttemptView, record: AttemptRecord): boolean {
  if (record.beat < attempt.beat) return false;
  if (record.beat === attempt.beat && record.state === attempt.state) return false;
  if (attempt.state === 'lost') return record.state === 'done';
  // Told to stop before it was seen to work: it may have claimed itself just before.
  const isUnsure = attempt.state === 'cancelled' && attempt.claimedAt === undefined;
  return isUnsure ? record.state !== 'launched' : !ended.includes(attempt.state);
}
