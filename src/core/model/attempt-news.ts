import type { AttemptRecord, AttemptState } from '../../contracts/records.ts';
import type { AttemptId } from '../../contracts/ids.ts';
import type { Worker } from '../../contracts/job-spec.ts';
import type { EpochMs } from '../../contracts/units.ts';
import type { LaunchReason } from './decision.ts';
import type { AttemptView, TaskView } from './job-view.ts';
import { reportsIn, withoutCourse } from './progress-history.ts';

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

/**
 * What a record does not say stays as it was known. How the attempt came to where it is, is taken of the first record that is
 * read: whoever takes a job over has not read the reports before it. Its looks are taken of each, which tells the earlier ones once more.
 */
export function takeFields(attempt: AttemptView, record: AttemptRecord): void {
  attempt.nextMs = record.nextMs ?? attempt.nextMs;
  attempt.reportedAt = record.reportedAt ?? attempt.reportedAt;
  attempt.claimedAt = record.claimedAt ?? attempt.claimedAt;
  attempt.endedAt = record.endedAt ?? attempt.endedAt;
  attempt.node = record.node ?? attempt.node;
  attempt.zone = record.zone ?? attempt.zone;
  attempt.failure = record.failure ?? attempt.failure;
  attempt.saved = record.saved ?? attempt.saved;
  if (record.progress === undefined) return;
  const { history, looks, bytesTotal } = record.progress;
  if (attempt.reports.length === 0) attempt.reports.push(...reportsIn(history, bytesTotal));
  if (looks !== undefined) attempt.looks = reportsIn(looks, bytesTotal);
  attempt.progress = withoutCourse(record.progress);
}

/** An attempt that was decided on now. All its fields are there from the beginning, so that all attempts are alike. */
export const newAttempt = (decided: {
  readonly id: AttemptId;
  readonly task: TaskView;
  readonly number: number;
  readonly reason: LaunchReason;
  readonly worker: Worker | undefined;
  readonly now: EpochMs;
  readonly hasOwnCopies: boolean;
}): AttemptView => ({
  id: decided.id,
  stage: decided.task.stage,
  task: decided.task.index,
  number: decided.number,
  reason: decided.reason,
  worker: decided.worker,
  behind: undefined,
  place: undefined,
  rodeSince: undefined,
  state: 'launched',
  cancelOrdered: false,
  cancelReason: undefined,
  cancelledAt: undefined,
  launchedAt: decided.now,
  isHeldBack: undefined,
  recordedAt: undefined,
  seenAt: decided.now,
  readAt: undefined,
  outputReadAt: undefined,
  beat: 0,
  nextMs: undefined,
  claimedAt: undefined,
  reportedAt: undefined,
  endedAt: undefined,
  node: undefined,
  zone: undefined,
  keeps: undefined,
  progress: undefined,
  failure: undefined,
  saved: undefined,
  unreadable: undefined,
  reports: [],
  looks: [],
  hasOwnCopies: decided.hasOwnCopies,
});
