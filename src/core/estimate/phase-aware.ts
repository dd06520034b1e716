import type { ProgressReport } from '../model/job-view.ts';

/** How far a task is in its phases: time spent in each finished one, then the fraction and time of the current. */
export interface PhaseTimes {
  readonly finishedMs: readonly number[];
  readonly currentFraction: number;
  readonly currentMs: number;
}

/**
 * Time left by phases: the current one at the task's own rate in it, later ones at the mean time that others took.
 * A task that has only just entered a phase has no rate in it yet, so that the others' counts there too.
 * Undefined where nothing is known of a phase ahead.
 *
 * Source: LATE §4.2 (described, not evaluated).
 */
export function phaseAwareTimeLeftMs(
  times: PhaseTimes,
  othersMs: readonly (number | undefined)[],
): number | undefined {
  const current = times.finishedMs.length;
  const { currentFraction: fraction, currentMs } = times;
  let left = 0;
  for (let phase = current; phase < othersMs.length; phase++) {
    const own = phase === current && fraction > 0 ? currentMs / fraction : undefined;
    const whole = own ?? othersMs[phase];
    if (whole === undefined) return undefined;
    left += phase === current ? whole * (1 - fraction) : whole;
  }
  return left;
}

/** When a task that reported so had read `bytes`: between two reports progress is taken as even. */
function crossedAtMs(reports: readonly ProgressReport[], bytes: number): number | undefined {
  let before: ProgressReport = { workedMs: 0, bytesRead: 0 };
  for (const report of reports) {
    if (report.bytesRead >= bytes) {
      const share =
        report.bytesRead === before.bytesRead
          ? 1
          : (bytes - before.bytesRead) / (report.bytesRead - before.bytesRead);
      return before.workedMs + (report.workedMs - before.workedMs) * Math.max(0, share);
    }
    before = report;
  }
  return undefined;
}

/**
 * The phases of a task from its reports. `phaseEnds` are the shares of the input at which phases end, ascending,
 * the last one 1. `ranMs` is its time so far. Once all is read it is at the end of its last phase.
 */
export function phaseTimesOf(
  reports: readonly ProgressReport[],
  task: { readonly bytesTotal: number; readonly ranMs: number },
  phaseEnds: readonly number[],
): PhaseTimes {
  const score = task.bytesTotal <= 0 ? 0 : Math.min(1, (reports.at(-1)?.bytesRead ?? 0) / task.bytesTotal);
  const finishedMs: number[] = [];
  let from = 0;
  let began = 0;
  for (const end of phaseEnds) {
    if (score < end)
      return {
        finishedMs,
        currentFraction: (score - from) / (end - from),
        currentMs: Math.max(0, task.ranMs - began),
      };
    const crossed = crossedAtMs(reports, end * task.bytesTotal) ?? task.ranMs;
    finishedMs.push(Math.max(0, crossed - began));
    began = crossed;
    from = end;
  }
  return { finishedMs, currentFraction: 1, currentMs: 0 };
}

/** Mean time of a whole phase over tasks: those past it count in full, those inside by extrapolation. */
export function meanPhaseMs(tasks: readonly PhaseTimes[], phases: number): readonly (number | undefined)[] {
  return Array.from({ length: phases }, (_, phase) => {
    const times = tasks.flatMap(({ finishedMs, currentFraction, currentMs }) => {
      const done = finishedMs[phase];
      if (done !== undefined) return [done];
      return phase === finishedMs.length && currentFraction > 0 ? [currentMs / currentFraction] : [];
    });
    return times.length === 0 ? undefined : times.reduce((sum, ms) => sum + ms, 0) / times.length;
  });
}
