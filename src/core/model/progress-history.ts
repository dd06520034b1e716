import type { Progress } from '../../contracts/progress.ts';
import type { AttemptView, ProgressReport } from './job-view.ts';

/** Reports kept of one attempt: the newest in full, older ones thinned out. */
const reportLimit = 24;
/** Of an attempt's bytes, what its worker's record counts by: what it has read fits into three digits. */
const shares = 36 ** 3 - 1;

/** How far a report lies off the straight line between its neighbours, in bytes. */
function offLine(
  before: ProgressReport,
  { workedMs, bytesRead }: ProgressReport,
  after: ProgressReport,
): number {
  const share = (workedMs - before.workedMs) / Math.max(1, after.workedMs - before.workedMs);
  return Math.abs(bytesRead - before.bytesRead - share * (after.bytesRead - before.bytesRead));
}

/** The place of the old report that tells least beside its neighbours; among equals the one that they are nearest to. */
function leastTelling(reports: readonly ProgressReport[]): number {
  let least = { place: 1, off: Infinity, spanMs: Infinity };
  for (let place = 1; place < reportLimit / 2; place++) {
    const [before, report, after] = [reports[place - 1], reports[place], reports[place + 1]];
    if (before === undefined || report === undefined || after === undefined) break;
    // Where progress began to stand still: each that took its place would lie as near, and be later.
    if (before.bytesRead < report.bytesRead && report.bytesRead >= after.bytesRead) continue;
    const [off, spanMs] = [offLine(before, report, after), after.workedMs - before.workedMs];
    if (off < least.off || (off === least.off && spanMs < least.spanMs)) least = { place, off, spanMs };
  }
  return least.place;
}

/**
 * Appends a report unless it repeats the last. Of a long history the old one is dropped that lies nearest to the line
 * between its neighbours: where progress turns it is kept, so that it stays known when a task had read everything.
 */
export function keepReport(reports: ProgressReport[], report: ProgressReport): void {
  const last = reports.at(-1);
  if (last !== undefined && report.workedMs <= last.workedMs) return;
  reports.push(report);
  if (reports.length > reportLimit) reports.splice(leastTelling(reports), 1);
}

/**
 * How an attempt has got on, as its worker tells it: at most 24 reports, each as `<milliseconds since the claim>.<46,655ths of
 * all bytes>` in base 36, with spaces between them; undefined of none, and while it is not known how much there is. At most 250
 * characters of a task that takes less than half an hour.
 */
export function historyOf(reports: readonly ProgressReport[], bytesTotal: number): string | undefined {
  if (reports.length === 0 || bytesTotal <= 0) return undefined;
  return reports
    .map(({ workedMs, bytesRead }) => {
      const share = Math.round(Math.min(1, Math.max(0, bytesRead / bytesTotal)) * shares);
      return `${Math.round(workedMs).toString(36)}.${share.toString(36)}`;
    })
    .join(' ');
}

/** How an attempt gets on, as its worker keeps it, to tell it with each report once more. */
export class ProgressHistory {
  readonly #reports: ProgressReport[] = [];
  #bytesTotal = 0;

  /** As `historyOf` writes it. */
  get text(): string | undefined {
    return historyOf(this.#reports, this.#bytesTotal);
  }

  note(workedMs: number, { bytesRead, bytesTotal }: Pick<Progress, 'bytesRead' | 'bytesTotal'>): void {
    keepReport(this.#reports, { workedMs, bytesRead });
    this.#bytesTotal = bytesTotal;
  }
}

/**
 * What a worker keeps of how its attempt gets on: what it has reported, and finer than that, what it has seen at each look at
 * itself. Looks cost nothing, and a task of two seconds reports once or twice: by its reports alone nobody knows how it began.
 */
export class KeptProgress {
  readonly #reports = new ProgressHistory();
  readonly #looks = new ProgressHistory();

  /** As progress has them. */
  get texts(): Pick<Progress, 'history' | 'looks'> {
    const [history, looks] = [this.#reports.text, this.#looks.text];
    return { ...(history === undefined ? {} : { history }), ...(looks === undefined ? {} : { looks }) };
  }

  /** It has looked at itself when it had run for so long. */
  noteLook(workedMs: number, progress: Pick<Progress, 'bytesRead' | 'bytesTotal'>): void {
    this.#looks.note(workedMs, progress);
  }

  /** It reports, after a look. */
  noteReport(workedMs: number, progress: Pick<Progress, 'bytesRead' | 'bytesTotal'>): void {
    this.#reports.note(workedMs, progress);
  }
}

/** The reports that `historyOf` wrote of so many bytes. What is no report, or of an earlier time than the one before it, is passed over. */
export function reportsIn(history: string | undefined, bytesTotal: number): ProgressReport[] {
  const reports: ProgressReport[] = [];
  for (const text of history === undefined ? [] : history.split(' ', reportLimit)) {
    const [ms, share] = text.split('.', 2).map((number) => Number.parseInt(number, 36));
    if (ms === undefined || share === undefined || !(ms >= 0 && share >= 0 && share <= shares)) continue;
    keepReport(reports, { workedMs: ms, bytesRead: (share / shares) * bytesTotal });
  }
  return reports;
}

/** Progress without how it came about, which is told to who reads an attempt's record first and to nobody after that. */
export const withoutHistory = (progress: Progress): Progress =>
  progress.history === undefined ? progress : { ...progress, history: undefined };

/** The same without its looks, too, which each record tells as they are now. */
export const withoutCourse = (progress: Progress): Progress =>
  progress.looks === undefined ? withoutHistory(progress) : { ...withoutHistory(progress), looks: undefined };

/** How an attempt has got on, as finely as is known: by its looks, or by the reports of a worker that tells none. */
export const courseOf = ({
  looks,
  reports,
}: Pick<AttemptView, 'looks' | 'reports'>): readonly ProgressReport[] => (looks.length > 0 ? looks : reports);
