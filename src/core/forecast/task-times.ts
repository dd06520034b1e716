import { attemptParts } from '../../contracts/ids.ts';
import type { AttemptRecord } from '../../contracts/records.ts';
import { elapsedMs } from '../../contracts/units.ts';
import { ascending } from '../../lib/quantiles.ts';
import type { RunTimes, SlotPast } from './job-profile.ts';

/** What the attempts of a stage tell of it. */
export interface StageTimes {
  /** How long tasks took from their begin to their result, one number a task, all told. */
  readonly times: RunTimes;
  readonly queueMs: readonly number[];
  /** Share of attempts that waited so, above 0: the others rode behind another. */
  readonly queuedShare: number;
  /** Of attempts that began, how many came to nothing, and not even to work that was taken up. Below 1. */
  readonly failureShare: number;
  /** Bytes that a task read in the mean; undefined where nobody knows. */
  readonly taskBytes: number | undefined;
}

type Begun = AttemptRecord & Required<Pick<AttemptRecord, 'claimedAt'>>;
type Ended = Begun & Required<Pick<AttemptRecord, 'endedAt'>>;

/** A stage whose attempts nearly all failed can be forecast no better than this. */
const mostFailures = 0.9;

const hasBegun = (attempt: AttemptRecord): attempt is Begun => attempt.claimedAt !== undefined;
const hasEnded = (attempt: AttemptRecord): attempt is Ended =>
  attempt.claimedAt !== undefined && attempt.endedAt !== undefined;

/** Most attempts of a job that ran at once: the slots that it had. At least 1. */
export function mostAtOnce(attempts: readonly AttemptRecord[]): number {
  const ended = attempts.filter(hasEnded);
  const begins = ascending(ended.map(({ claimedAt }) => claimedAt));
  const ends = ascending(ended.map(({ endedAt }) => endedAt));
  let most = 1;
  let over = 0;
  for (const [place, begin] of begins.entries()) {
    while (over < ends.length && (ends[over] ?? 0) <= begin) over++;
    most = Math.max(most, place + 1 - over);
  }
  return most;
}

/** What each attempt's environment had run before it, by id: of the job, and of its stage. */
function pastsOf(attempts: readonly AttemptRecord[]): ReadonlyMap<string, SlotPast> {
  const pasts = new Map<string, SlotPast>();
  const ran = new Set<string>();
  for (const { attemptId, node } of attempts.filter(hasBegun).toSorted((a, b) => a.claimedAt - b.claimedAt)) {
    if (node === undefined) continue;
    const inStage = JSON.stringify([node, attemptParts(attemptId).stage]);
    pasts.set(attemptId, ran.has(inStage) ? 'later' : ran.has(node) ? 'first' : 'cold');
    ran.add(node).add(inStage);
  }
  return pasts;
}

/** Attempts that another of their invocation came before: those rode behind it, and their wait was its run. */
function ridersOf(attempts: readonly AttemptRecord[]): ReadonlySet<string> {
  const riders = new Set<string>();
  const begun = new Set<string>();
  for (const { attemptId, invocation } of attempts
    .filter(hasBegun)
    .toSorted((a, b) => a.claimedAt - b.claimedAt)) {
    if (invocation === undefined) continue;
    if (begun.has(invocation)) riders.add(attemptId);
    begun.add(invocation);
  }
  return riders;
}

/**
 * How long a task took: its winner, or the copy that straggled for as long until the winner came. A loser may take until
 * its next report to stop, which nobody waits for. Where the winner has taken up what others had done, their time is told
 * with its own.
 */
function taskMs(winner: Ended, copies: readonly AttemptRecord[], takenUp: readonly AttemptRecord[]): number {
  const untilWon = copies
    .filter((copy): copy is Ended => copy.state === 'cancelled' && hasEnded(copy))
    .map(({ claimedAt, endedAt }) => Math.min(endedAt, winner.endedAt) - claimedAt);
  const wholeMs = [winner, ...takenUp.filter(hasEnded)].reduce((sum, each) => sum + ownMs(each), 0);
  return Math.max(wholeMs, ...untilWon);
}

const ownMs = ({ claimedAt, endedAt }: Ended): number => elapsedMs(claimedAt, endedAt);

/** Whose work an attempt has taken up, one after the other: of one task, each earlier than the one before. */
function takenUpBy(attempt: AttemptRecord, copies: readonly AttemptRecord[]): readonly AttemptRecord[] {
  const takenUp: AttemptRecord[] = [];
  for (let later = attempt; later.progress?.takenUp !== undefined;) {
    const number = later.progress.takenUp.attempt;
    const earlier = copies.find((copy) => attemptParts(copy.attemptId).attempt === number);
    if (earlier === undefined || number >= attemptParts(later.attemptId).attempt) break;
    takenUp.push(earlier);
    later = earlier;
  }
  return takenUp;
}

/**
 * How many of the attempts failed or were lost. Those whose work the winner took up are left out: their time is told with its
 * own. So are launches that no worker took up: they cost a wait, and no work.
 */
function failureShareOf(attempts: readonly AttemptRecord[], handedOn: ReadonlySet<AttemptRecord>): number {
  const counted = attempts.filter((each) => hasBegun(each) && !handedOn.has(each));
  const failed = counted.filter(({ state }) => state === 'failed' || state === 'lost').length;
  return Math.min(mostFailures, failed / Math.max(1, counted.length));
}

/** What the attempts of a finished job tell of each of its stages, by name. Stages without a result are missing. */
export function timesOfStages(attempts: readonly AttemptRecord[]): ReadonlyMap<string, StageTimes> {
  const pasts = pastsOf(attempts);
  const riders = ridersOf(attempts);
  const byStage = Map.groupBy(attempts, ({ attemptId }) => attemptParts(attemptId).stage);
  const told = new Map<string, StageTimes>();
  for (const [stage, own] of byStage) {
    const byTask = Map.groupBy(own, ({ attemptId }) => attemptParts(attemptId).task);
    const samples: Record<SlotPast, number[]> = { cold: [], first: [], later: [] };
    const bytes: number[] = [];
    const handedOn = new Set<AttemptRecord>();
    for (const copies of byTask.values()) {
      const winner = copies.find((copy): copy is Ended => copy.state === 'done' && hasEnded(copy));
      if (winner === undefined) continue;
      const earlier = takenUpBy(winner, copies);
      for (const each of earlier) handedOn.add(each);
      samples[pasts.get(winner.attemptId) ?? 'later'].push(taskMs(winner, copies, earlier));
      const { bytesRead, takenUp } = winner.progress ?? {};
      if (bytesRead !== undefined) bytes.push(bytesRead + (takenUp?.bytes ?? 0));
    }
    const times = {
      cold: ascending(samples.cold),
      first: ascending(samples.first),
      later: ascending(samples.later),
    };
    if (times.cold.length + times.first.length + times.later.length === 0) continue;
    const begun = own.filter(hasBegun);
    const queued = begun.filter(({ attemptId }) => !riders.has(attemptId));
    told.set(stage, {
      times,
      queueMs: ascending(queued.map(({ launchedAt, claimedAt }) => elapsedMs(launchedAt, claimedAt))),
      queuedShare: queued.length / begun.length,
      failureShare: failureShareOf(own, handedOn),
      taskBytes: bytes.length === 0 ? undefined : bytes.reduce((sum, each) => sum + each, 0) / bytes.length,
    });
  }
  return told;
}
