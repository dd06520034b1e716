import { type AttemptId, attemptParts, taskOf } from '../../contracts/ids.ts';
import type { Phase } from '../../contracts/progress.ts';
import type { AttemptRecord } from '../../contracts/records.ts';

/** An attempt as its record and its like tell of it. Times are in milliseconds; those that are unknown are absent. */
export interface AttemptRun {
  readonly attempt: AttemptRecord;
  readonly stage: string;
  readonly task: number;
  readonly number: number;
  /** From launch to claim; `rideMs` of it while its worker was at attempts before it. */
  readonly waitMs?: number;
  readonly rideMs?: number;
  /** From launch until now, or to the job's end, of one that no worker has taken up, though one may or might have. */
  readonly unclaimedMs?: number;
  /** Whether an earlier attempt of the job had run on its node: then nothing had to be started. */
  readonly isWarm?: boolean;
  /** From claim to end; to what was seen last where it did not end. */
  readonly runMs?: number;
  /** From claim to its last report, of one that did not end with its work done: what it had read, it had read by then. */
  readonly reportedMs?: number;
  /**
   * For how long it is known to have worked: `runMs`, but of one that was lost to its last report. Of its death another has told,
   * when that came to know of it. One whose time was up has had it all the same.
   */
  readonly seenMs?: number;
  /** Whether it has read all and ended, so that `runMs` is all that it takes. */
  readonly isFinished: boolean;
  readonly bytes: number;
  /** Records that it has read, of one that has read all: packed inputs have few bytes for many. Else 0. */
  readonly records: number;
  /** How much of its input it has read, in [0, 1]; absent where that is unknown. */
  readonly readShare?: number;
  readonly phaseMs?: Readonly<Record<Phase, number>>;
}

/** Whether an attempt was given up, with nobody having told how it ended. */
export const isGivenUp = ({ state, failure }: AttemptRecord): boolean =>
  state === 'lost' && failure === undefined;

/** When an attempt ended, or was seen last; until when it waited for a worker where it never began, else its launch. */
export const endOf = ({ attempt: { claimedAt, launchedAt }, runMs, unclaimedMs }: AttemptRun): number =>
  claimedAt === undefined ? launchedAt + (unclaimedMs ?? 0) : claimedAt + (runMs ?? 0);

/** Whether an attempt came to nothing, so that another was owed. */
export const hasFailed = ({ attempt: { state } }: AttemptRun): boolean =>
  state === 'failed' || state === 'lost';

interface Seen {
  /** Until when an attempt runs that has not ended; absent where its job has. */
  readonly now?: number;
  /** When an attempt was told to stop, by the clock that its launch is told by; undefined where nobody knows. */
  readonly stoppedAt?: (attemptId: AttemptId) => number | undefined;
}

/** Until when an attempt has worked, as far as anybody saw: by its worker's clock but for one that runs. */
function untilOf(attempt: AttemptRecord, seen: Seen): number | undefined {
  const { endedAt, reportedAt, state, order } = attempt;
  // Of one that was given up, `endedAt` is when that was: of its work, nobody has seen more than it reported.
  if (isGivenUp(attempt)) return reportedAt;
  if (endedAt !== undefined) return endedAt;
  if (state !== 'running') return reportedAt;
  return order === 'continue' ? (seen.now ?? reportedAt) : stoppedOf(attempt, seen);
}

/**
 * One that was told to stop may have ended long ago, since its record is written no more, but had not when it was told: it
 * stood still all the while where it has never reported.
 */
function stoppedOf(
  { attemptId, launchedAt, claimedAt, reportedAt }: AttemptRecord,
  { stoppedAt }: Seen,
): number | undefined {
  const at = stoppedAt?.(attemptId);
  if (at === undefined || claimedAt === undefined) return reportedAt;
  const sinceLaunchMs = at - launchedAt;
  return Math.max(reportedAt ?? claimedAt, claimedAt + sinceLaunchMs - Math.max(0, claimedAt - launchedAt));
}

/** Attempts of one invocation or Fargate task, which ran one after the other, by the end of the one before each. */
function endsBefore(attempts: readonly AttemptRecord[]): ReadonlyMap<AttemptRecord, number> {
  const claimed = attempts
    .filter(({ claimedAt, invocation }) => claimedAt !== undefined && invocation !== undefined)
    .toSorted((a, b) => (a.claimedAt ?? 0) - (b.claimedAt ?? 0));
  const ends = new Map<AttemptRecord, number>();
  const last = new Map<string, number>();
  for (const attempt of claimed) {
    const { invocation = '' } = attempt;
    const before = last.get(invocation);
    if (before !== undefined) ends.set(attempt, before);
    last.set(invocation, untilOf(attempt, {}) ?? attempt.claimedAt ?? 0);
  }
  return ends;
}

/** Attempts on whose node another had run before they began. */
function warmOf(attempts: readonly AttemptRecord[]): ReadonlySet<AttemptRecord> {
  const first = new Map<string, number>();
  for (const { node, claimedAt } of attempts) {
    if (node !== undefined && claimedAt !== undefined)
      first.set(node, Math.min(first.get(node) ?? Infinity, claimedAt));
  }
  return new Set(
    attempts.filter(
      ({ node, claimedAt = 0 }) => node !== undefined && (first.get(node) ?? Infinity) < claimedAt,
    ),
  );
}

/**
 * Launches that still wait for a worker, or waited for one to the end of their job. Such an end orders them to stop: of a
 * task that is not done, the last of them is one that was waited for until then.
 */
function waitingOf(attempts: readonly AttemptRecord[]): ReadonlySet<AttemptRecord> {
  const byTask = Map.groupBy(attempts, ({ attemptId }) => taskOf(attemptId));
  return new Set(
    attempts.filter((attempt) => {
      const { state, order, attemptId, launchedAt } = attempt;
      if (state !== 'launched') return false;
      const number = numberOf(attempt);
      const others = byTask.get(taskOf(attemptId)) ?? [];
      return (
        order === 'continue' ||
        others.every(
          (each) => numberOf(each) <= number && !(each.state === 'done' && endedSince(each, launchedAt)),
        )
      );
    }),
  );
}

const numberOf = ({ attemptId }: AttemptRecord): number => attemptParts(attemptId).attempt;
const endedSince = ({ endedAt }: AttemptRecord, at: number): boolean =>
  endedAt !== undefined && endedAt >= at;

/**
 * The attempts of a job, by launch. Clocks of different machines are compared for waits alone, which are never below 0.
 *
 * @param waitedUntil - until when one waits that no worker has taken up: now, or the job's end.
 */
export function attemptRuns(
  attempts: readonly AttemptRecord[],
  { waitedUntil, ...seen }: Seen & { readonly waitedUntil: number },
): readonly AttemptRun[] {
  const before = endsBefore(attempts);
  const waiting = waitingOf(attempts);
  const warm = warmOf(attempts);
  return attempts
    .map((attempt): AttemptRun => {
      const { stage, task, attempt: number } = attemptParts(attempt.attemptId);
      const { claimedAt, launchedAt, progress } = attempt;
      const waitMs = claimedAt === undefined ? undefined : Math.max(0, claimedAt - launchedAt);
      const until = untilOf(attempt, seen);
      const isFinished = attempt.state === 'done';
      const bytes = Math.max(progress?.bytesTotal ?? 0, isFinished ? (progress?.bytesRead ?? 0) : 0);
      return {
        attempt,
        stage,
        task,
        number,
        isFinished,
        bytes,
        records: isFinished ? (progress?.recordsIn ?? 0) : 0,
        ...(waitMs === undefined
          ? {}
          : {
              waitMs,
              rideMs: Math.min(waitMs, Math.max(0, (before.get(attempt) ?? launchedAt) - launchedAt)),
              isWarm: warm.has(attempt),
            }),
        ...(waiting.has(attempt) ? { unclaimedMs: Math.max(0, waitedUntil - launchedAt) } : {}),
        ...(claimedAt === undefined || until === undefined ? {} : timesOf(attempt, claimedAt, until)),
        ...(progress === undefined ? {} : { phaseMs: progress.phaseMs }),
        ...shareOf(attempt, bytes, isFinished),
      };
    })
    .toSorted((a, b) => a.attempt.launchedAt - b.attempt.launchedAt || a.number - b.number);
}

function timesOf(
  { state, launchedAt, reportedAt, failure }: AttemptRecord,
  claimedAt: number,
  until: number,
): Pick<AttemptRun, 'runMs' | 'reportedMs' | 'seenMs'> {
  const isLost = state === 'lost';
  const toldMs = Math.max(0, until - claimedAt);
  const heardMs = reportedAt === undefined ? undefined : Math.max(0, reportedAt - claimedAt);
  // Its end is not by the clock of its claim: it was no longer than since its launch.
  const runMs = isLost ? Math.max(heardMs ?? 0, Math.min(toldMs, Math.max(0, until - launchedAt))) : toldMs;
  const reportedMs = Math.min(runMs, heardMs ?? runMs);
  return {
    runMs,
    ...(state === 'done' || heardMs === undefined ? {} : { reportedMs }),
    seenMs: isLost && failure?.cause !== 'timeout' ? (heardMs ?? 0) : runMs,
  };
}

function shareOf(
  { progress }: AttemptRecord,
  bytes: number,
  isFinished: boolean,
): Pick<AttemptRun, 'readShare'> {
  if (isFinished) return { readShare: 1 };
  if (progress === undefined || bytes <= 0) return {};
  return { readShare: Math.min(1, progress.bytesRead / bytes) };
}
