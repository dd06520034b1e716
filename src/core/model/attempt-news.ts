import type { AttemptRecord, AttemptState } from '../../contracts/records.ts';
import type { AttemptView } from './job-view.ts';

const ended: readonly AttemptState[] = ['done', 'failed', 'cancelled', 'lost'];

/**
 * Whether a record says anything new. What is read later was written later, but a record that is read without the
 * result beside it may still run where that result has ended it.
 */
export function isNews(attempt: AttemptView, record: AttemptRecord): boolean {
  if (record.beat === attempt.beat && record.state === attempt.state) return false;
  if (attempt.state === 'lost') return record.state === 'done';
  // Told to stop before it was seen to work: it may have claimed itself just before.
  const isUnsure = attempt.state === 'cancelled' && attempt.claimedAt === undefined;
  return isUnsure ? record.state !== 'launched' : !ended.includes(attempt.state);
}
