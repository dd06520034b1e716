import { type DurationMs, durationMs, elapsedMs, type EpochMs, later } from '../../contracts/units.ts';

/**
 * What a scheduler has learned of how many of its launches run at once, where a launch that finds no room waits unseen
 * (Lambda's queue of asynchronous events). It learns from claims alone: those that come at once show room, those that
 * do not show that there is none.
 */
export interface ObservedConcurrency {
  /** Attempts that have been seen to run at once, less what was given up since others wanted it. */
  readonly known: number;
  /** Further ones that are tried. Claimed, they become known. */
  readonly trial: number;
  /**
   * How many the present trial began with. Once all of them are claimed twice as many are tried, and never more than are
   * known: of what is launched at most half waits.
   */
  readonly step: number;
  /** Launches that were claimed since the present trial began; it counts while none comes late. */
  readonly claimed: number;
  /** When the next trial may begin where there is none. */
  readonly trialAt: EpochMs;
  /** How long after a trial that failed the next one comes; doubles with each, begins anew with each that does not. */
  readonly pauseMs: DurationMs;
  /** How long launches took to be claimed, the newest last. */
  readonly lagsMs: readonly number[];
  /** Until then no more is given up than those tell that were launched with what came late first. */
  readonly calmUntil: EpochMs;
  /** What was known when launches came late first. */
  readonly calmFrom: number;
  /** Launches of which it is known whether they came in time, for as long as one takes to be late; the newest last. */
  readonly fates: readonly LaunchFates[];
}

/** Launches of which it was seen at about one time whether they came in time. */
interface LaunchFates {
  readonly at: EpochMs;
  readonly claimed: number;
  readonly late: number;
}

/** What a tick sees of a job's launches. */
export interface LaunchesSeen {
  readonly now: EpochMs;
  /** Attempts that have begun and not ended. */
  readonly running: number;
  /** Launched, not claimed, and not late yet: on their way to a worker, or in the scheduler's own queue. */
  readonly starting: number;
  /** Unclaimed and late: they wait in Lambda's queue, or were lost. */
  readonly late: number;
  /** Of those, the ones that were not late when it was looked before. */
  readonly turnedLate: number;
  /** From launch to claim, of the claims seen since it was looked before. */
  readonly claimLagsMs: readonly number[];
  /** Launches that the service refused since then for its rate or for want of concurrency. */
  readonly throttled: number;
}

export interface ConcurrencyConfig {
  /** Launches that are tried before anything is known. */
  readonly firstTrial: number;
  readonly shortestPauseMs: DurationMs;
  readonly longestPauseMs: DurationMs;
  /** What of the known concurrency is kept at most where others took some of it. */
  readonly keep: number;
  /** Nothing is tried while more launches are late than this share of the known concurrency, and than so many. */
  readonly lateShare: number;
  readonly leastLate: number;
  /** A launch is late after so many times the usual lag, and not before so long. */
  readonly lateFactor: number;
  readonly leastLateMs: DurationMs;
  /** When it is late as long as nothing was ever claimed. */
  readonly firstLateMs: DurationMs;
}

/** Ticks of a second: claims of a warm environment are seen at the next, those of a cold one a tick or two after. */
export const defaultConcurrencyConfig: ConcurrencyConfig = {
  firstTrial: 4,
  shortestPauseMs: durationMs(5_000),
  longestPauseMs: durationMs(60_000),
  keep: 0.8,
  lateShare: 0.05,
  leastLate: 0,
  lateFactor: 3,
  leastLateMs: durationMs(3_000),
  firstLateMs: durationMs(30_000),
};

/** Lags of so many claims tell how long a launch takes. */
const lagLimit = 33;

/**
 * Before anything was launched, or after a change of schedulers: what runs then is known, and the rest is learned anew
 * in a few ticks.
 */
export const startConcurrency = (
  running: number,
  now: EpochMs,
  config: ConcurrencyConfig = defaultConcurrencyConfig,
): ObservedConcurrency => ({
  known: running,
  trial: config.firstTrial,
  step: config.firstTrial,
  claimed: 0,
  trialAt: now,
  pauseMs: config.shortestPauseMs,
  lagsMs: [],
  calmUntil: now,
  calmFrom: running,
  fates: [],
});

/** Into how many parts the time is cut in which launches are counted together. */
const fateParts = 8;

/** The fates of launches with those that are seen now, and without those of which it was known longer ago than that. */
function withFates(
  fates: readonly LaunchFates[],
  { now, claimLagsMs, turnedLate }: LaunchesSeen,
  spanMs: DurationMs,
): readonly LaunchFates[] {
  const recent = fates.filter(({ at }) => at <= now && elapsedMs(at, now) <= spanMs);
  const seen = { at: now, claimed: claimLagsMs.length, late: turnedLate };
  if (seen.claimed + seen.late === 0) return recent;
  const last = recent.at(-1);
  if (last === undefined || elapsedMs(last.at, now) > spanMs / fateParts) return [...recent, seen];
  const { claimed, late } = seen;
  return [...recent.slice(0, -1), { at: last.at, claimed: last.claimed + claimed, late: last.late + late }];
}

/**
 * Of the launches of which it was seen lately whether they came in time, the share that did. Those that are late now
 * were launched as long ago as a launch takes to be late, and what was claimed since then, with them or after them.
 */
function timelyShare(fates: readonly LaunchFates[]): number {
  let [claimed, late] = [0, 0];
  for (const each of fates) {
    claimed += each.claimed;
    late += each.late;
  }
  return late === 0 ? 1 : claimed / (claimed + late);
}

/** How long after its launch an attempt that was not claimed is late. */
export function lateAfterMs(
  { lagsMs }: Pick<ObservedConcurrency, 'lagsMs'>,
  config: ConcurrencyConfig = defaultConcurrencyConfig,
): DurationMs {
  // The median: those that came out of the queue in the end are few beside those that found room.
  const median = lagsMs.toSorted((a, b) => a - b)[Math.floor(lagsMs.length / 2)];
  if (median === undefined) return config.firstLateMs;
  return durationMs(Math.min(config.firstLateMs, Math.max(config.leastLateMs, median * config.lateFactor)));
}

/** Whether the last trial has failed, and nothing has run since beyond what was known. */
export const hasTrialFailed = (
  { pauseMs }: Pick<ObservedConcurrency, 'pauseMs'>,
  config: ConcurrencyConfig = defaultConcurrencyConfig,
): boolean => pauseMs > config.shortestPauseMs;

/** Late launches beyond which none are tried for the sake of trying. */
export const lateLimit = (known: number, { lateShare, leastLate }: ConcurrencyConfig): number =>
  Math.max(leastLate, Math.floor(known * lateShare));

/** Launches came late: there is no more room than what runs, or others took some of it. */
function afterCongestion(
  before: ObservedConcurrency,
  seen: LaunchesSeen,
  config: ConcurrencyConfig,
): ObservedConcurrency {
  const pauseMs = durationMs(Math.min(config.longestPauseMs, 2 * before.pauseMs));
  const trialAt = later(seen.now, before.pauseMs);
  const failed = { trial: 0, claimed: 0, trialAt };
  // All that was known runs: only the trial has failed.
  if (seen.running >= before.known) return { ...before, ...failed, pauseMs };
  const isCalm = seen.now < before.calmUntil;
  const calmFrom = isCalm ? before.calmFrom : before.known;
  const share = Math.min(config.keep, timelyShare(before.fates));
  const known = Math.min(before.known, Math.max(seen.running, Math.floor(calmFrom * share)));
  if (isCalm) return { ...before, ...failed, known };
  const calmUntil = later(seen.now, lateAfterMs(before, config));
  return { ...before, ...failed, known, calmFrom, pauseMs, calmUntil };
}

/**
 * A launch that is refused waits nowhere, so that asking again costs a request and takes room from nobody. Where nothing
 * runs and none waits, one is asked for at a time: else a fifth less of one would be none, and the pauses between trials,
 * which double up to a minute, all that a job has left.
 */
function withRoomToAsk(after: ObservedConcurrency, seen: LaunchesSeen): ObservedConcurrency {
  const isIdle = seen.running + seen.starting + seen.late === 0 && seen.turnedLate === 0;
  return isIdle && after.known === 0 ? { ...after, known: 1 } : after;
}

/**
 * Takes in what a tick sees. Claims of what is tried make it known, and the next trial is twice as large; launches that
 * come late end it. What is known grows by what is claimed beyond it and by nothing else (but to one where launches are refused and nothing runs), and shrinks by a fifth, once for each time
 * that a launch takes, where launches come late although less runs than is known: others have taken room. So several
 * jobs come to share what there is as senders share a line (additive increase, multiplicative decrease).
 */
export function observeConcurrency(
  before: ObservedConcurrency,
  seen: LaunchesSeen,
  config: ConcurrencyConfig = defaultConcurrencyConfig,
): ObservedConcurrency {
  const claims = seen.claimLagsMs.length;
  const growth = Math.max(0, Math.min(claims, seen.running - before.known));
  const known = before.known + growth;
  const lagsMs = claims === 0 ? before.lagsMs : [...before.lagsMs, ...seen.claimLagsMs].slice(-lagLimit);
  const grown: ObservedConcurrency = {
    ...before,
    known,
    lagsMs,
    trial: Math.max(0, before.trial - growth),
    claimed: before.claimed + claims,
    fates: withFates(before.fates, seen, lateAfterMs({ lagsMs }, config)),
    ...(growth === 0 ? {} : { pauseMs: config.shortestPauseMs }),
  };
  if (seen.turnedLate > 0 || seen.throttled > 0)
    return withRoomToAsk(afterCongestion(grown, seen, config), seen);
  // Where tasks are short, what starts is never seen to run all at once: a whole round of claims says as much.
  const isProven = grown.trial > 0 && grown.claimed >= known + grown.trial && seen.late === 0;
  if (grown.trial > 0 && !isProven) return grown;
  const step = before.trial > 0 ? Math.min(2 * before.step, known) : 1;
  // More runs than was known, and nothing was tried: what waited has found room, so that there may be more.
  const isRoomier = before.trial > 0 || growth > 0;
  const isFull = seen.running + seen.starting >= known;
  const isDue = isFull && seen.now >= grown.trialAt && seen.late <= lateLimit(known, config);
  return isRoomier || isDue ? { ...grown, trial: Math.max(step, grown.trial), step, claimed: 0 } : grown;
}
