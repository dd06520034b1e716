import { elapsedMs, type EpochMs } from '../../contracts/units.ts';
import { ranMs, reportedMs } from './progress-rate.ts';
import type { AttemptView, ProgressReport } from '../model/job-view.ts';

/** On what terms time left is estimated. */
export interface RemainingTerms {
  readonly now: EpochMs;
  /** Time that tasks of the stage take after all input is read. */
  readonly wrapUpMs: number;
  /** Reports over which the estimate is averaged. */
  readonly window: number;
  /** A longer silence counts as no progress since the last report. */
  readonly deltaMs: number;
}

/** Run time in all that a report foretells: time to read the rest at the average rate so far, and the wrap-up. */
const totalMs = ({ workedMs, bytesRead }: ProgressReport, bytesTotal: number, wrapUpMs: number): number =>
  workedMs + (workedMs * Math.max(0, bytesTotal - bytesRead)) / bytesRead + wrapUpMs;

/** The last reports that show progress; what the attempt says now counts as the last of them. */
function lastReports(attempt: AttemptView, window: number): readonly ProgressReport[] {
  const bytesRead = attempt.progress?.bytesRead ?? 0;
  const workedMs = reportedMs(attempt);
  const before = attempt.reports.filter((report) => report.bytesRead > 0 && report.workedMs < workedMs);
  return bytesRead <= 0
    ? []
    : [...before.slice(Math.max(0, before.length - window + 1)), { workedMs, bytesRead }];
}

/**
 * Mantri's t_rem of an attempt: at its average rate, smoothed over the last reports by averaging when each says that
 * it ends. When reports stop, time goes on without progress, and the estimate rises. Undefined before the first byte.
 *
 * Source: Mantri §5.5; as printed it is the total time, so that the elapsed time is taken off.
 */
export function remainingMs(attempt: AttemptView, terms: RemainingTerms): number | undefined {
  const reports = lastReports(attempt, terms.window);
  const last = reports.at(-1);
  if (last === undefined) return undefined;
  const bytesTotal = attempt.progress?.bytesTotal ?? 0;
  const ran = ranMs(attempt, terms.now);
  const silent = elapsedMs(attempt.seenAt, terms.now) > terms.deltaMs;
  const ends = reports.map((report) =>
    totalMs(silent && report === last ? { ...report, workedMs: ran } : report, bytesTotal, terms.wrapUpMs),
  );
  return Math.max(0, ends.reduce((sum, ms) => sum + ms, 0) / ends.length - ran);
}

/** Milliseconds per byte over an attempt's last reports: how fast it is now. Undefined without two that differ. */
export function recentMsPerByte(attempt: AttemptView, window: number): number | undefined {
  const reports = lastReports(attempt, window + 1);
  const [first, last] = [reports[0], reports.at(-1)];
  if (first === undefined || last === undefined || first === last) return undefined;
  const bytes = last.bytesRead - first.bytesRead;
  return bytes <= 0 ? Infinity : (last.workedMs - first.workedMs) / bytes;
}

/** How long an attempt has reported without having read on. */
function stuckMs({ reports, progress }: AttemptView, workedMs: number): number {
  const since = reports.find(({ bytesRead }) => bytesRead >= (progress?.bytesRead ?? 0));
  return Math.max(0, workedMs - (since?.workedMs ?? workedMs));
}

/**
 * Time left with regard to how fast an attempt is now: what is left to read at a mixture of its rate over the last
 * reports (by `recentWeight`) and its average rate. One that reports and does not read on needs all of its time
 * again, and the time for which it has been stuck. Where reports stop, no less than t_rem. Undefined before the
 * first byte.
 *
 * Source: ours; LATE §4.2 shows what an average alone gets wrong when a task slows down on its way.
 */
export function currentRemainingMs(
  attempt: AttemptView,
  terms: RemainingTerms,
  recentWeight: number,
): number | undefined {
  const average = remainingMs(attempt, { ...terms, window: 1 });
  const recent = recentMsPerByte(attempt, terms.window);
  const { bytesRead = 0, bytesTotal = 0 } = attempt.progress ?? {};
  const left = Math.max(0, bytesTotal - bytesRead);
  if (average === undefined || recent === undefined || left === 0) return average;
  const workedMs = reportedMs(attempt);
  const silentMs = elapsedMs(attempt.seenAt, terms.now);
  const ahead = Number.isFinite(recent)
    ? recent * left
    : (workedMs * bytesTotal) / bytesRead + stuckMs(attempt, workedMs);
  const now = Math.max(silentMs > terms.deltaMs ? average : 0, ahead + terms.wrapUpMs - silentMs);
  return recentWeight * now + (1 - recentWeight) * average;
}
