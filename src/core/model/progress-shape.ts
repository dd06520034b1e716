import { countBelowIn } from '../../lib/sorted-numbers.ts';
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

const start: ProgressReport = { workedMs: 0, bytesRead: 0 };

/** After how much time a task that reported so, never less than before, had first reached a level: straight between two reports. */
export function reachedMs(
  reports: readonly ProgressReport[],
  bytesTotal: number,
  level: number,
): number | undefined {
  const wanted = (levels[level] ?? 1) * bytesTotal;
  const enough = wanted * (1 - 1e-9);
  // From the end: who asks where a task is asks for a level that it has reached of late, at each tick.
  let place = reports.length;
  while (place > 0 && (reports[place - 1]?.bytesRead ?? 0) >= enough) place -= 1;
  const report = reports[place];
  if (report === undefined) return undefined;
  const before = reports[place - 1] ?? start;
  const gained = report.bytesRead - before.bytesRead;
  const share = gained <= 0 ? 1 : Math.min(1, Math.max(0, (wanted - before.bytesRead) / gained));
  return before.workedMs + share * (report.workedMs - before.workedMs);
}

const middleOf = (values: readonly number[]): number => {
  const sorted = Float64Array.from(values).sort();
  return ((sorted[(sorted.length - 1) >>> 1] ?? 0) + (sorted[sorted.length >>> 1] ?? 0)) / 2;
};

/** After what share of its time a task has reached a level, and by how much that may be wrong, as a standard deviation. */
interface Reached {
  readonly share: number;
  readonly doubt: number;
  /** Its first report, which showed that level and more: by then it had come there, and nobody saw when. */
  readonly byShare?: number;
}

/** Of a uniform distribution, the standard deviation is its width over this. */
const widthsPerDeviation = Math.sqrt(12);

/** When a task has first reached each level that it has reached, in one pass over its reports. */
function timesOf({ reports, bytesTotal }: Course): readonly number[] {
  const times = [0];
  let before = start;
  for (const report of reports) {
    const gained = report.bytesRead - before.bytesRead;
    for (let level = times.length; level < levels.length; level++) {
      const wanted = (levels[level] ?? 1) * bytesTotal;
      if (report.bytesRead < wanted * (1 - 1e-9)) break;
      const share = gained <= 0 ? 1 : Math.min(1, Math.max(0, (wanted - before.bytesRead) / gained));
      times.push(before.workedMs + share * (report.workedMs - before.workedMs));
    }
    before = report;
  }
  return times;
}

/** By level. A task has read all at its end: what it did between its last report and then nobody saw, and is supposed to be even. */
function reachedBy(course: Course): readonly Reached[] {
  const { reports, bytesTotal, runMs } = course;
  const seen = timesOf(course);
  const last = reports.at(-1) ?? start;
  const unseenMs = Math.max(0, runMs - last.workedMs);
  const doubt = unseenMs / runMs / widthsPerDeviation;
  const first = reports[0] ?? start;
  const firstLevel = levelOf(first.bytesRead, bytesTotal);
  return levels.map((level, place) => {
    const seenMs = seen[place];
    if (seenMs !== undefined) {
      const share = Math.min(1, seenMs / runMs);
      const isWatched = place === 0 || place > firstLevel;
      return { share, doubt: 0, ...(!isWatched && { byShare: Math.min(1, first.workedMs / runMs) }) };
    }
    const gained = (level * bytesTotal - last.bytesRead) / (bytesTotal - last.bytesRead);
    return { share: Math.min(1, (last.workedMs + gained * unseenMs) / runMs), doubt };
  });
}

/**
 * After what shares of their times tasks have reached a level. One whose first report shows more than that had come there by
 * then: a straight line from its beginning takes a slow start for even progress, and whoever is still
 * at his looks like a straggler. It counts as the median of those that were seen on their way there and came sooner; by
 * the line where there are none.
 *
 * Source: Efron, "The two sample problem with censored data" (1967): mass goes to where samples are, here to the left.
 */
function sharesAt(level: number, reached: readonly (readonly Reached[])[]): readonly number[] {
  const all = reached.map((each) => each[level] ?? { share: 1, doubt: 0 });
  const watched = Float64Array.from(
    all.flatMap(({ share, byShare }) => (byShare === undefined ? [share] : [])),
  ).sort();
  return all.map(({ share, byShare }) => {
    const sooner = byShare === undefined ? 0 : countBelowIn(watched, byShare);
    return sooner === 0 ? share : (watched[(sooner - 1) >>> 1] ?? share);
  });
}

/**
 * The shape of progress of a stage, from tasks that have finished: the median of each level, and how far single tasks
 * lie from it. Tasks that ended before they reported anything tell nothing. Of too few it is supposed to be even. Costs the
 * reports of the tasks given.
 */
export function shapeOf(courses: readonly Course[]): ProgressShape {
  const known = courses.filter(
    ({ runMs, bytesTotal, reports }) => runMs > 0 && bytesTotal > 0 && reports.length > 0,
  );
  if (known.length < leastTasks) return evenShape;
  const reached = known.map(reachedBy);
  const shares = levels.map((_, level) => sharesAt(level, reached));
  // Who was seen on his way differs by level, so that medians alone might fall.
  let middle = 0;
  const reachedAt = shares.map((each) => (middle = Math.max(middle, middleOf(each))));
  const errors = reachedAt.map((at, level) => {
    if (at <= 0) return supposedError;
    const off = (shares[level] ?? []).map((share) => Math.abs(Math.log(Math.max(1e-3, share) / at)));
    const doubt = middleOf(reached.map((each) => each[level]?.doubt ?? 0)) / at;
    return Math.max(leastError, deviationsPerMedian * middleOf(off), Math.min(supposedError, doubt));
  });
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
  const tasks = courses.map((course) => ({ times: timesOf(course), ms: course.runMs }));
  // At place k: the time to the k-th level, over that to the first.
  const reached = [0];
  for (let level = 1; level < levels.length; level++) {
    const steps: number[] = [];
    for (const { times } of tasks) {
      const [from, to] = [times[Math.max(1, level - 1)] ?? 0, times[level] ?? 0];
      if (from > 0 && to > 0) steps.push(to / from);
    }
    if (steps.length < leastTasks) break;
    reached.push(level === 1 ? 1 : (reached[level - 1] ?? 1) * middleOf(steps));
  }
  const last = reached.length - 1;
  if (last === 0) return evenShape;
  const runOn = tasks.flatMap(({ times, ms }) =>
    times.length < levels.length ? [] : [ms / (times[last] ?? ms)],
  );
  const longer = last < levels.length - 1 ? 1 : Math.max(1, middleOf(runOn));
  const whole = ((reached[last] ?? 1) / (levels[last] ?? 1)) * longer;
  const reachedAt = levels.map((level, place) => (place > last ? level : (reached[place] ?? 0) / whole));
  return { ...evenShape, reachedAt };
}
