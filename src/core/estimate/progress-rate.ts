import { elapsedMs, type EpochMs, later } from '../../contracts/units.ts';
import type { AttemptView, ProgressReport } from '../model/job-view.ts';

/** How far an attempt is in [0, 1]: the share of its input that it has read. Undefined while its input is unknown. */
export function scoreOf({ progress }: AttemptView): number | undefined {
  if (progress === undefined || progress.bytesTotal <= 0) return undefined;
  return Math.min(1, Math.max(0, progress.bytesRead / progress.bytesTotal));
}

/**
 * How long an attempt has run: by its worker's clock up to its last report, and by ours since we saw that. So two
 * clocks that differ are never subtracted. 0 before it has claimed itself: waiting is not running.
 */
export function ranMs(attempt: AttemptView, now: EpochMs): number {
  if (attempt.claimedAt === undefined) return 0;
  return reportedMs(attempt) + elapsedMs(attempt.seenAt, now);
}

/** How long an attempt had run when it last reported. */
export function reportedMs(attempt: AttemptView): number {
  const { claimedAt, reportedAt } = attempt;
  return claimedAt === undefined || reportedAt === undefined ? 0 : elapsedMs(claimedAt, reportedAt);
}

/**
 * When the launch of an attempt was made, or that of the pack in which it rode. Where the log alone tells of it, the decision may
 * have waited for its turn: its record is written just before the launch.
 */
export function launchMadeAt({ launchedAt, rodeSince, place, recordedAt }: AttemptView): EpochMs {
  const decidedAt = place === 'own' ? launchedAt : (rodeSince ?? launchedAt);
  return recordedAt === undefined || recordedAt < decidedAt ? decidedAt : recordedAt;
}

/** Time that an attempt has occupied a worker; 0 before it has claimed itself. */
export function workerMsOf(attempt: AttemptView, now: EpochMs): number {
  const { claimedAt, reportedAt, endedAt, seenAt, launchedAt, rodeSince = launchedAt } = attempt;
  if (claimedAt === undefined) return 0;
  if (endedAt === undefined) return ranMs(attempt, now);
  // Ended by another than its worker, whose clock may differ: no longer than it was waited for.
  const waitedUntil = endedAt === reportedAt ? seenAt : later(seenAt, elapsedMs(seenAt, endedAt));
  return Math.min(elapsedMs(claimedAt, endedAt), elapsedMs(rodeSince, waitedUntil));
}

/**
 * Time of its worker that an attempt is billed at most: one that keeps its output stays, for as long as its job goes on. How
 * long that is by its claim, whose clock may differ from ours: no longer than since its launch, and no shorter than it ran
 * and then was seen to have ended.
 */
export function billedMsOf(attempt: AttemptView, now: EpochMs): number {
  const ms = workerMsOf(attempt, now);
  const { keeps, claimedAt, endedAt, seenAt, launchedAt, rodeSince = launchedAt } = attempt;
  if (keeps !== true || claimedAt === undefined) return ms;
  const seenMs = endedAt === undefined ? ms : ms + elapsedMs(seenAt, now);
  return Math.max(seenMs, Math.min(elapsedMs(claimedAt, now), elapsedMs(rodeSince, now)));
}

/**
 * Time left of an attempt with `score` after `ms`, at its average rate so far: infinite without progress.
 *
 * Source: LATE §4, (1 − P) / (P / T).
 */
export const timeLeftMs = (score: number, ms: number): number =>
  score <= 0 ? Infinity : (ms * (1 - score)) / score;

/** What a task that reported so had read after `ms`: straight between two reports, and no more than the last says. */
export function readBy(reports: readonly ProgressReport[], ms: number): number {
  let before: ProgressReport = { workedMs: 0, bytesRead: 0 };
  for (const report of reports) {
    if (report.workedMs >= ms) {
      const share = (ms - before.workedMs) / Math.max(1, report.workedMs - before.workedMs);
      return before.bytesRead + share * (report.bytesRead - before.bytesRead);
    }
    before = report;
  }
  return before.bytesRead;
}
