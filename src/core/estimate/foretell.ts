import { elapsedMs, type EpochMs } from '../../contracts/units.ts';
import type { AttemptView } from '../model/job-view.ts';
import { courseOf } from '../model/progress-history.ts';
import { type ProgressShape, levelOf, reportsAround, shareAt } from '../model/progress-shape.ts';
import { partOf } from '../model/taken-up.ts';
import { ranMs, reportedMs } from './progress-rate.ts';

/** What a stage's finished tasks foretell of one that reads as much; absent where too few have finished. */
export interface Expected {
  readonly ms: number;
  /** Standard deviation of the logarithm. */
  readonly error: number;
}

/** On what terms the end of an attempt is foretold. */
export interface ForetellTerms {
  readonly now: EpochMs;
  readonly shape: ProgressShape;
  readonly expected: Expected | undefined;
  /** The longest time between two reports, of attempts that do not say when they report next. */
  readonly reportMs: number;
}

/** When an attempt will have ended. */
export interface Foretold {
  /** Its whole run time, as likely too long as too short. */
  readonly totalMs: number;
  /** By how much its logarithm may be wrong, as a standard deviation. */
  readonly error: number;
  /** Whether it is told by progress; else by age alone, since what it shows does not change any more. */
  readonly isTold: boolean;
  /** Whether that is only the least that it takes: it has not come to the first level that tells. */
  readonly isLeast?: true;
}

/** A stretch of a task's time, as a share of it, in which its progress does not change, and so tells nothing. */
const silentStretch = 0.25;
/** Shares of time below this are those of the first report, and foretell nothing. */
const leastShare = 0.005;
/** Standard deviations by which an attempt must be late before it counts as one that never ends. */
const lateBy = 2;
/** How wrong at least what others took may be of one of which nobody knows how far it is. */
const leastUnseen = 0.7;
/** Intervals of reports that may be missed before silence counts as no progress. */
const missedReports = 2;

/** How long an attempt had run when it was where it is known to be: while its next report is not due, at the last. */
function knownMs(attempt: AttemptView, { now, reportMs }: ForetellTerms): number {
  const silentMs = elapsedMs(attempt.seenAt, now);
  return silentMs > missedReports * (attempt.nextMs ?? reportMs) ? ranMs(attempt, now) : reportedMs(attempt);
}

/** An attempt is no longer taken to end at its pace before, once that is wrong by more than this. */
const mostPaceError = 0.2;

/** Whether an attempt has run for longer than its like take, for all that they may be wrong. */
export const isOverdue = (ranSoFarMs: number, like: Expected): boolean =>
  ranSoFarMs > like.ms * Math.exp(lateBy * like.error);

/** Whether it has run for longer than its own pace had it do, for all that this may be wrong. */
const isOutlived = (ranSoFarMs: number, { ms, error }: Expected): boolean =>
  isOverdue(ranSoFarMs, { ms, error: Math.min(mostPaceError, error) });

/** What age alone says: it ends when its like do, and once it is late, after as long again as it has run. */
function byAge(ranSoFarMs: number, like: Expected): Foretold {
  if (!isOverdue(ranSoFarMs, like))
    return { totalMs: Math.max(ranSoFarMs, like.ms), error: like.error, isTold: true };
  return { totalMs: ranSoFarMs + Math.max(like.ms, ranSoFarMs), error: 0, isTold: false };
}

interface ReportTerms {
  /** How long it has run. */
  readonly ran: number;
  readonly shape: ProgressShape;
  /** The last level that the attempt has reached; and whether progress stands still from there on for long. */
  readonly level: number;
  readonly isSilent: boolean;
  /** By how much the logarithm of what is foretold from that level may be wrong. */
  readonly error: number;
  /** The whole time of an attempt of which a share has passed after so long. */
  readonly wholeOf: (ms: number, share: number) => number;
}

/**
 * The whole time of an attempt by where it was at its last report. Where progress stands still from there on for long, by
 * when it came there, which nobody saw: at the pace that it had at the report before, and no later than at the next.
 */
function wholeByReports(
  attempt: AttemptView,
  { ran, shape, level, error, isSilent, wholeOf }: ReportTerms,
): number {
  const { bytesRead = 0, bytesTotal = 0 } = attempt.progress ?? {};
  if (!isSilent) return wholeOf(reportedMs(attempt), shareAt(shape, bytesRead, bytesTotal));
  const around = reportsAround(courseOf(attempt), bytesTotal, level);
  const { before, after } = around ?? {};
  const latestMs = wholeOf(after?.workedMs ?? reportedMs(attempt), shape.reachedAt[level] ?? 1);
  const share = shareAt(shape, before?.bytesRead ?? 0, bytesTotal);
  const paceMs = share < leastShare ? latestMs : wholeOf(before?.workedMs ?? 0, share);
  // By a pace that it has outlived it would have ended: it has slowed down since.
  return isOutlived(ran, { ms: paceMs, error }) ? latestMs : Math.min(latestMs, paceMs);
}

/**
 * When a running attempt will have ended, by how far it is and by the shape that progress has in its stage; where its
 * progress stands still for long in every task of the stage (all is read, or nothing is until the end), by what its
 * like take. Undefined where nothing can be told.
 *
 * Source: ours. LATE §4.2 shows what an average rate gets wrong; Mantri §5.5 knows one phase after reading.
 */
export function foretell(attempt: AttemptView, terms: ForetellTerms): Foretold | undefined {
  if (attempt.claimedAt === undefined) return undefined;
  const { shape, expected } = terms;
  const { bytesRead = 0, bytesTotal = 0 } = attempt.progress ?? {};
  const ran = ranMs(attempt, terms.now);
  // Its first report is not due: that nobody has heard of it is no sign, and it tells more before a copy would.
  if (attempt.reports.length === 0 && ran <= (attempt.nextMs ?? 0))
    return expected && { totalMs: Math.max(ran, expected.ms), error: expected.error, isTold: true };
  if (bytesTotal <= 0) return expected && byAge(ran, expected);
  // How long tasks go on after they have read all, none that has finished has shown; this one does so for several times as long.
  if (shape.tasks === 0 && bytesRead >= bytesTotal && expected !== undefined) {
    const like = { ms: expected.ms, error: Math.max(leastUnseen, expected.error) };
    if (isOverdue(ran, like)) return byAge(ran, like);
  }
  const level = levelOf(bytesRead, bytesTotal);
  const [from, until] = [shape.reachedAt[level] ?? 0, shape.reachedAt[level + 1] ?? 1];
  const error = shape.errors[level] ?? 0;
  // What others had done is taken up before a byte is read, which has no part in how reading goes.
  const { takeUpMs } = partOf(attempt);
  const wholeOf = (ms: number, share: number): number => takeUpMs + (ms - takeUpMs) / share;
  const isSilent = until - from >= silentStretch;
  const byLevel =
    level > 0 && from >= leastShare
      ? { ms: wholeByReports(attempt, { ran, shape, level, error, isSilent, wholeOf }), error }
      : undefined;
  if (isSilent) {
    // What its like took it has refuted where it has run for longer than they did: then its own pace tells more, until it has outlived that, too.
    const isRefuted = expected !== undefined && isOverdue(ran, expected);
    const isBetter =
      byLevel === undefined ||
      (expected !== undefined && expected.error < byLevel.error && (!isRefuted || isOutlived(ran, byLevel)));
    const nearer = isBetter ? expected : byLevel;
    return nearer && byAge(ran, nearer);
  }
  const bySlowness = wholeOf(knownMs(attempt, terms), Math.max(leastShare, until));
  // Nothing read: what it does, and for how long, nobody knows.
  if (bytesRead <= 0) {
    if (shape.tasks === 0 && expected === undefined) return undefined;
    const longestMs = ran + Math.max(ran, expected?.ms ?? 0);
    return { totalMs: Math.max(ran, Math.min(longestMs, bySlowness)), error, isTold: false };
  }
  if (byLevel !== undefined && byLevel.ms >= bySlowness)
    return { totalMs: Math.max(ran, byLevel.ms), error, isTold: true };
  const told = { totalMs: Math.max(ran, bySlowness), error: shape.errors[level + 1] ?? error, isTold: true };
  return level === 0 ? { ...told, isLeast: true } : told;
}
