import type { AttemptId } from '../../contracts/ids.ts';
import type { Progress } from '../../contracts/progress.ts';
import { type DurationMs, durationMs } from '../../contracts/units.ts';
import { fnv1a } from '../../contracts/fnv1a.ts';

/** The first report comes between so long and twice that after the claim. */
const firstMs = 750;
/** Each report then comes when the attempt is so many times as old again, up to the longest interval. */
const reportGrowth = 3;
/** Orders are read after this share of its age: an attempt that need not go on should hear of it while it matters. */
const listenShare = 0.25;
const shortestListenMs = 500;
/** It looks at itself after this share of its age, for nothing; what it finds may be reported at once. */
const lookShare = 0.03;
const shortestLookMs = 250;
/** Share of the whole work by which it may be behind or ahead of what its last reports foretell. */
const tolerance = 0.03;

const capped = (ms: number, everyMs: number): DurationMs => durationMs(Math.round(Math.min(everyMs, ms)));

/**
 * When an attempt first reports. Attempts that begin together report at different times, each always at the same.
 */
export const firstReportMs = (attemptId: AttemptId, everyMs: number): DurationMs =>
  capped(firstMs * (1 + fnv1a(attemptId) / 2 ** 32), everyMs);

/** How long an attempt that has run for `ranMs` waits before it reports again at the latest, `everyMs` at most. */
export const nextReportMs = (ranMs: number, everyMs: number): DurationMs =>
  capped(Math.max(firstMs, ranMs * reportGrowth), everyMs);

/** How long after it last heard its orders it reads them. */
export const listenAfterMs = (ranMs: number, everyMs: number): DurationMs =>
  capped(Math.max(shortestListenMs, ranMs * listenShare), everyMs);

/** How long until it next looks at itself. */
export const lookAfterMs = (ranMs: number, everyMs: number): DurationMs =>
  capped(Math.max(shortestLookMs, ranMs * lookShare), everyMs);

/** A report as it foretells the next: how long the attempt had run, and its share of all that it reads. */
export interface Mark {
  readonly ranMs: number;
  readonly share: number;
}

/** Where an attempt is; undefined while it is not known how much there is. */
export function markOf(
  ranMs: number,
  { bytesRead, bytesTotal }: Pick<Progress, 'bytesRead' | 'bytesTotal'>,
): Mark | undefined {
  return bytesTotal <= 0 ? undefined : { ranMs, share: Math.min(1, bytesRead / bytesTotal) };
}

/**
 * Whether an attempt is not where whoever knows its last two reports must think it is: it has slowed down, got stuck
 * or gone on. So ordinary attempts report seldom, and one that becomes a straggler shows at once.
 */
export function isUnforetold([before, last]: readonly [Mark, Mark], now: Mark): boolean {
  const rate = (last.share - before.share) / Math.max(1, last.ranMs - before.ranMs);
  const foretold = Math.min(1, last.share + rate * (now.ranMs - last.ranMs));
  return Math.abs(now.share - foretold) >= tolerance;
}
