import { median } from '../../lib/quantiles.ts';
import { countBelowIn } from '../../lib/sorted-numbers.ts';
import { type Bounds, type Mass, medianOf, turnbull } from '../../lib/turnbull.ts';
import type { ProgressReport } from './job-view.ts';

/** When tasks of a stage have got how far, in shares of their whole time. */
export interface ProgressShape {
  /** At place k: the share of its time after which a task has first reached the k-th level of progress. */
  readonly reachedAt: readonly number[];
  /** At place k: by how much the logarithm of the whole time foretold from there has been wrong. */
  readonly errors: readonly number[];
  /** Tasks that this is learnt from; 0 where progress is only supposed to be even. */
  readonly tasks: number;
}

/** A task with what it has reported, and how long it ran, or has run until now. */
export interface Course {
  readonly reports: readonly ProgressReport[];
  readonly bytesTotal: number;
  readonly runMs: number;
}

/** Levels of progress: finer at the beginning, where a straggler is told from its like by little. */
const levels: readonly number[] = [
  ...[0, 0.01, 0.02, 0.03, 0.04, 0.05, 0.075],
  ...Array.from({ length: 19 }, (_, step) => (step + 2) / 20),
];
/** Tasks that must have finished before their shape counts. */
const leastTasks = 3;
/** Nothing is foretold better than this; without anything learnt, not better than that. */
const leastError = 0.05;
const supposedError = 0.3;
/** Of a normal distribution, the standard deviation is so many times the median of the absolute deviations. */
const deviationsPerMedian = 1.4826;

/** What is supposed of tasks before any has finished. */
export const evenShape: ProgressShape = {
  reachedAt: levels,
  errors: levels.map(() => supposedError),
  tasks: 0,
};

/** The last level that a task has reached, by its place, at `bytesRead` of `bytesTotal`. */
export function levelOf(bytesRead: number, bytesTotal: number): number {
  const score = bytesTotal <= 0 ? 0 : bytesRead / bytesTotal;
  return Math.max(0, countBelowIn(levels, score + 1e-9) - 1);
}

/** After what share of its time a task has read so much, straight between two levels. */
export function shareAt({ reachedAt }: ProgressShape, bytesRead: number, bytesTotal: number): number {
  const level = levelOf(bytesRead, bytesTotal);
  const [low, high] = [levels[level] ?? 1, levels[level + 1] ?? 1];
  const [from, until] = [reachedAt[level] ?? 1, reachedAt[level + 1] ?? 1];
  return low >= high ? from : from + ((bytesRead / bytesTotal - low) / (high - low)) * (until - from);
}

/** The last report of a task before one that shows a level, and that one; undefined where none shows it. */
export function reportsAround(
  reports: readonly ProgressReport[],
  bytesTotal: number,
  level: number,
): { readonly before: ProgressReport; readonly after: ProgressReport } | undefined {
  const enough = (levels[level] ?? 1) * bytesTotal * (1 - 1e-9);
  // From the end: who asks where a task is asks for a level that it has reached of late, at each tick.
  let place = reports.length;
  while (place > 0 && (reports[place - 1]?.bytesRead ?? 0) >= enough) place -= 1;
  const after = reports[place];
  return after && { before: reports[place - 1] ?? start, after };
}

const start: ProgressReport = { workedMs: 0, bytesRead: 0 };

/** Of a uniform distribution, the standard deviation is its width over this. */
const widthsPerDeviation = Math.sqrt(12);

/**
 * Between which times a task that reported so has first reached each level that it has reached, and where on a straight line
 * between them; in one pass over its reports. It has begun with nothing.
 */
function crossingsOf(reports: readonly ProgressReport[], bytesTotal: number): readonly Bounds[] {
  const crossings: Bounds[] = [{ from: 0, until: 0, guess: 0, farOff: 0 }];
  let before = start;
  for (const report of reports) {
    const [from, until] = [before.workedMs, Math.max(before.workedMs, report.workedMs)];
    const gained = report.bytesRead - before.bytesRead;
    for (let level = crossings.length; level < levels.length; level++) {
      const wanted = (levels[level] ?? 1) * bytesTotal;
      if (report.bytesRead < wanted * (1 - 1e-9)) break;
      const share = gained <= 0 ? 1 : Math.min(1, Math.max(0, (wanted - before.bytesRead) / gained));
      crossings.push({ from, until, guess: from + share * (until - from), farOff: gained / bytesTotal });
    }
    before = report;
  }
  return crossings;
}

/** The same of a task that has finished, in shares of its time: by its end it has read all. */
function sharesOf({ reports, bytesTotal, runMs }: Course): readonly Bounds[] {
  const shareOf = (ms: number): number => Math.min(1, ms / runMs);
  return crossingsOf([...reports, { workedMs: runMs, bytesRead: bytesTotal }], bytesTotal).map(
    ({ from, until, guess, farOff }) => ({
      ...{ from: shareOf(from), until: shareOf(until) },
      ...{ guess: shareOf(guess), farOff },
    }),
  );
}

/** By how much the time foretold from a level may be wrong: by how far apart tasks come to it, and by what nobody saw of that. */
function errorAt(at: number, masses: readonly Mass[]): number {
  if (at <= 0) return supposedError;
  const off = masses
    .map(({ at: place, share }) => ({ at: Math.abs(Math.log(Math.max(1e-3, place) / at)), share }))
    .sort((a, b) => a.at - b.at);
  let unseen = 0;
  for (const { width, share } of masses) unseen += share * width;
  const doubt = unseen / widthsPerDeviation / at;
  return Math.max(leastError, deviationsPerMedian * medianOf(off), Math.min(supposedError, doubt));
}

/**
 * The shape of progress of a stage, from tasks that have finished: the median of each level, and how far single tasks
 * lie from it. Tasks that ended before they reported anything tell nothing. Of too few it is supposed to be even. Costs the
 * reports of the tasks given, and for each level some rounds of the square of how many there are.
 */
export function shapeOf(courses: readonly Course[]): ProgressShape {
  const known = courses.filter(
    ({ runMs, bytesTotal, reports }) => runMs > 0 && bytesTotal > 0 && reports.length > 0,
  );
  if (known.length < leastTasks) return evenShape;
  const shares = known.map(sharesOf);

  const masses = levels.map((_, level) => turnbull(shares.flatMap((each) => each[level] ?? [])));
  // Each level has its own median, so that they alone might fall.
  let middle = 0;
  const reachedAt = masses.map((each) => (middle = Math.max(middle, medianOf(each))));
  const errors = reachedAt.map((at, level) => errorAt(at, masses[level] ?? []));
  return { reachedAt, errors, tasks: known.length };
}

/**
 * The shape of progress of a stage of which too little has finished, from tasks that run: by how much longer they took to each
 * level than to the one before, in the median of as many as have come there; where those end, it is supposed to be even from
 * there. Where tasks have read all and run on, the whole takes no less than it has by now. So a task is held against others at
 * the level that it has reached, whatever the shape; an average rate takes those that are not past a slow start yet for
 * stragglers as soon as some are.
 */
export function shapeOfRunning(courses: readonly Course[]): ProgressShape {
  const tasks = courses.map((course) => ({
    times: crossingsOf(course.reports, course.bytesTotal).map(({ guess }) => guess),
    ms: course.runMs,
  }));
  // At place k: the time to the k-th level, over that to the first.
  const reached = [0];
  for (let level = 1; level < levels.length; level++) {
    const steps: number[] = [];
    for (const { times } of tasks) {
      const [from, to] = [times[Math.max(1, level - 1)] ?? 0, times[level] ?? 0];
      if (from > 0 && to > 0) steps.push(to / from);
    }
    if (steps.length < leastTasks) break;
    reached.push(level === 1 ? 1 : (reached[level - 1] ?? 1) * (median(steps) ?? 1));
  }
  const last = reached.length - 1;
  if (last === 0) return evenShape;
  const runOn = tasks.flatMap(({ times, ms }) =>
    times.length < levels.length ? [] : [ms / (times[last] ?? ms)],
  );
  const longer = last < levels.length - 1 ? 1 : Math.max(1, median(runOn) ?? 1);
  const whole = ((reached[last] ?? 1) / (levels[last] ?? 1)) * longer;
  const reachedAt = levels.map((level, place) => (place > last ? level : (reached[place] ?? 0) / whole));
  return { ...evenShape, reachedAt };
}
