import { elapsedMs, type EpochMs } from '../../contracts/units.ts';
import { ranMs, reportedMs } from './progress-rate.ts';
import type { AttemptView, ProgressReport } from '../model/job-view.ts';
import { partOf } from '../model/taken-up.ts';

/** On what terms time left is estimated. */
export interface RemainingTerms {
  readonly now: EpochMs;
  /** Time that tasks of the stage take after all input is read, on the mean, and beyond which it is late; 0 while not known. */
  readonly wrapUpMs: number;
  readonly lateWrapUpMs: number;
  /** Reports over which the estimate is averaged. */
  readonly window: number;
  /** A longer silence counts as no progress since the last report. */
  readonly deltaMs: number;
}

/**
 * Run time in all that a report foretells: time to read the rest at the average rate so far, and the wrap-up. What was
 * read by `readMs` is read: the wrap-up counts from there. What was taken up of others' work took `takeUpMs`, in which nothing
 * was read.
 */
function totalMs(
  { workedMs, bytesRead }: ProgressReport,
  task: { readonly bytesTotal: number; readonly readMs: number; readonly takeUpMs: number },
  wrapUpMs: number,
): number {
  const left = Math.max(0, task.bytesTotal - bytesRead);
  return (
    (left === 0
      ? Math.min(workedMs, task.readMs)
      : workedMs + ((workedMs - task.takeUpMs) * left) / bytesRead) + wrapUpMs
  );
}

/** The last reports that show progress; what the attempt says now counts as the last of them. */
function lastReports(attempt: AttemptView, window: number): readonly ProgressReport[] {
  const bytesRead = attempt.progress?.bytesRead ?? 0;
  const workedMs = reportedMs(attempt);
  const before = attempt.reports.filter((report) => report.bytesRead > 0 && report.workedMs < workedMs);
  return bytesRead <= 0
    ? []
    : [...before.slice(Math.max(0, before.length - window + 1)), { workedMs, bytesRead }];
}

/** When an attempt has first shown that all of its input is read; infinite where it has not. */
function readAllMs({ reports, progress }: AttemptView, workedMs: number): number {
  const { bytesRead = 0, bytesTotal = 0 } = progress ?? {};
  if (bytesTotal <= 0 || bytesRead < bytesTotal) return Infinity;
  return Math.min(workedMs, reports.find((report) => report.bytesRead >= bytesTotal)?.workedMs ?? workedMs);
}

/**
 * Mantri's t_rem of an attempt: at its average rate, smoothed over the last reports by averaging when each says that
 * it ends. When reports stop, time goes on without progress, and the estimate rises. Undefined before the first byte,
 * and once all is read and the rest takes longer than it usually does: then nothing tells when it ends.
 *
 * Source: Mantri §5.5. As printed it is the total time, so that the elapsed time is taken off, and the mean wrap-up for
 * ever once all is read.
 */
export function remainingMs(attempt: AttemptView, terms: RemainingTerms): number | undefined {
  const reports = lastReports(attempt, terms.window);
  const last = reports.at(-1);
  if (last === undefined) return undefined;
  const ran = ranMs(attempt, terms.now);
  const readMs = readAllMs(attempt, reportedMs(attempt));
  if (terms.lateWrapUpMs > 0 && ran - readMs > terms.lateWrapUpMs) return undefined;
  const { takeUpMs } = partOf(attempt);
  const task = { bytesTotal: attempt.progress?.bytesTotal ?? 0, readMs, takeUpMs };
  const silent = elapsedMs(attempt.seenAt, terms.now) > Math.max(terms.deltaMs, attempt.nextMs ?? 0);
  const ends = reports.map((report) =>
    totalMs(silent && report === last ? { ...report, workedMs: ran } : report, task, terms.wrapUpMs),
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
