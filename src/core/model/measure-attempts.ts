import type { AttemptState } from '../../contracts/records.ts';
import { elapsedMs, type EpochMs } from '../../contracts/units.ts';
import { isWorking } from './attempt-life.ts';
import type { AttemptView, JobState, StageView, TaskView } from './job-view.ts';
import { wasPickedUp } from './packs.ts';
import { tellInput } from './task-input.ts';
import { keepReport } from './progress-history.ts';
import { recordClaim, recordFinish, recordNode } from './stage-statistics.ts';

/** Takes news of an attempt into the statistics of its stage and node. */
export function measure(
  state: Pick<JobState, 'attempts' | 'nodes'>,
  stage: StageView,
  task: TaskView,
  news: { attempt: AttemptView; before: AttemptState; now: EpochMs },
): void {
  const { attempt, before, now } = news;
  if (attempt.claimedAt === undefined) return;
  tellInput(task, attempt);
  if (before === 'launched') {
    // How long one that rides waits for those before it tells nothing of how long launches take.
    if (!wasPickedUp(state, attempt)) recordClaim(stage.statistics, attempt, now);
    recordNode(state.nodes, attempt);
  }
  if (attempt.progress !== undefined && isWorking(attempt) && !attempt.cancelOrdered) {
    const workedMs = elapsedMs(attempt.claimedAt, attempt.reportedAt ?? attempt.claimedAt);
    keepReport(attempt.reports, { workedMs, bytesRead: attempt.progress.bytesRead });
  }
  measureWinner(state, stage, task);
}

/** A result and the end of its attempt are told apart: whichever comes last completes the measurement. */
export function measureWinner(
  state: Pick<JobState, 'attempts' | 'nodes'>,
  stage: StageView,
  task: TaskView,
): void {
  if (task.measured || task.result === undefined) return;
  const winner = state.attempts.get(task.result.attemptId);
  if (winner?.state !== 'done') return;
  task.measured = true;
  recordFinish(stage.statistics, state.nodes, task, winner);
}
