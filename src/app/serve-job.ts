import { ErrorName, LeaseHeldError, OutriderError } from '../contracts/errors.ts';
import { durationMs, elapsedMs, type EpochMs, epochMs } from '../contracts/units.ts';
import type { RosterJob, RosterPlace } from '../ports/roster.ts';
import type { AnswerOutcome } from '../ports/task-answers.ts';
import type { ResidentDeps } from './resident-deps.ts';
import type { ResidentHome, ServedJob } from './resident-home.ts';
import { runScheduler, takeBackLate } from './run-scheduler.ts';

/** Passing faults in a row, and waits for a lease, before the state machine is asked to try again. */
const mostFaults = 8;
const mostLeaseWaits = 320;
const firstPauseMs = 1_000;
const longestPauseMs = 30_000;
const leasePauseMs = durationMs(3_000);
/** Faults that lie further apart are not in a row. */
const faultMemoryMs = 5 * 60_000;
/** A token may be followed by another while it is answered. */
const mostAnswers = 3;

const passing: ReadonlySet<string> = new Set([ErrorName.StoreUnavailable, ErrorName.LaunchThrottled]);

/** Takes a job off the roster if it has one of these marks. */
export async function strikeAny(
  { roster }: Pick<ResidentDeps, 'roster'>,
  place: RosterPlace,
  marks: readonly (string | undefined)[],
): Promise<boolean> {
  for (const mark of new Set(marks))
    if (mark !== undefined && (await roster.strike(place, mark)) === 'struck') return true;
  return false;
}

/** Whether this resident still has the job on the roster. */
async function isMine(deps: ResidentDeps, home: ResidentHome, job: RosterJob): Promise<boolean> {
  return (await deps.roster.find(job))?.resident === home.owner;
}

/**
 * Answers the job's newest token and takes it off the roster, unless it was enlisted anew meanwhile. Whoever died
 * between the two writes of an enlistment has left a token of another mark than the place: such a place, and one whose
 * token cannot be read, goes by the mark that it had before the token was looked for. True where somebody has heard it.
 */
async function answer(
  deps: ResidentDeps,
  { jobId, createdAt }: RosterJob,
  send: (token: string) => Promise<AnswerOutcome>,
): Promise<boolean> {
  let seen: RosterJob | undefined;
  let isHeard = false;
  for (let answers = 0; answers < mostAnswers; answers++) {
    const token = (await deps.roster.tokens([jobId])).get(jobId);
    if (token !== undefined) {
      const outcome = await send(token.token);
      deps.log.info('answered', { jobId, outcome });
      isHeard ||= outcome === 'answered';
    }
    if (await strikeAny(deps, { jobId, createdAt }, [token?.mark, seen?.mark])) break;
    seen = await deps.roster.find({ jobId, createdAt });
    if (seen === undefined) break;
  }
  return isHeard;
}

async function answerFailure(
  deps: ResidentDeps,
  home: ResidentHome,
  job: RosterJob,
  cause: unknown,
): Promise<void> {
  // Another has taken the job over: it is not ours to end.
  if (!(await isMine(deps, home, job))) return;
  const failure = cause instanceof Error ? cause : new Error(String(cause));
  const told = { errorType: failure.name, errorMessage: failure.message };
  deps.log.warn('job not scheduled', { jobId: job.jobId, ...told });
  await answer(deps, job, (token) =>
    deps.answers.fail(token, { error: failure.name, cause: JSON.stringify(told) }),
  );
}

type Verdict = 'again' | 'not-mine' | 'hopeless';

/** Counts what went wrong of one job, and waits before the next try. */
class Patience {
  /** The end of a lease of another that was not renewed for as long as a lease lasts. */
  outlasted?: EpochMs;
  private faults = 0;
  private leaseWaits = 0;
  /** The lease of another as it was last seen, and since when it is so. */
  private lease: { readonly until: unknown; readonly since: EpochMs } | undefined;

  /** What to make of an error of a try that lasted for `lastedMs`. */
  async judge(
    deps: ResidentDeps,
    home: ResidentHome,
    { job, stop }: ServedJob,
    failed: { readonly cause: unknown; readonly lastedMs: number },
  ): Promise<Verdict> {
    const { cause, lastedMs } = failed;
    if (lastedMs > faultMemoryMs) this.faults = 0;
    if (cause instanceof LeaseHeldError) {
      // Of a scheduler that has died its lease runs out; one that lives has the job on the roster.
      if (!(await isMine(deps, home, job))) return 'not-mine';
      if ((this.leaseWaits += 1) > mostLeaseWaits) return 'hopeless';
      this.watchLease(deps, cause);
      await deps.clock.sleep(leasePauseMs, stop.signal);
      return 'again';
    }
    if (!(cause instanceof OutriderError) || !passing.has(cause.name)) return 'hopeless';
    if ((this.faults += 1) > mostFaults) return 'hopeless';
    const pauseMs = Math.min(longestPauseMs, firstPauseMs * 2 ** (this.faults - 1));
    deps.log.warn('job to be entered again', { jobId: job.jobId, cause: cause.message, pauseMs });
    await deps.clock.sleep(durationMs(pauseMs), stop.signal);
    return 'again';
  }

  /** Its owner's clock may be an hour ahead: a lease is judged as a seat is, by whether it changes under this watch. */
  private watchLease({ clock, config }: ResidentDeps, { details: { until } }: LeaseHeldError): void {
    const now = clock.now();
    if (typeof until !== 'number') return;
    if (this.lease?.until !== until) this.lease = { until, since: now };
    if (elapsedMs(this.lease.since, now) > config.leaseMs) this.outlasted = epochMs(until);
  }
}

/**
 * Serves one job until it is settled and its state machine told, or until it is told to stop, when the job is left to
 * others. Passing faults are borne here, with pauses: each try of the state machine costs. Never rejects: what goes
 * wrong with one job is no matter of the others.
 */
export async function serveJob(deps: ResidentDeps, home: ResidentHome, served: ServedJob): Promise<void> {
  const { job, stop } = served;
  const patience = new Patience();
  const residency = {
    owner: home.owner,
    until: home.until,
    signal: stop.signal,
    ...(job.resident === undefined ? {} : { replaces: job.resident }),
  };
  try {
    while (!stop.signal.aborted) {
      const since = deps.clock.now();
      try {
        const { outlasted } = patience;
        const entered = outlasted === undefined ? residency : { ...residency, outlasted };
        const { outcome } = await runScheduler(deps, job.jobId, entered);
        if (outcome === 'continue') break;
        const isHeard = await answer(deps, job, (token) =>
          deps.answers.succeed(token, { jobId: job.jobId, outcome }),
        );
        // Another has ended the job while this one slept in its last tick, which has taken slots for it.
        if (!isHeard) await takeBackLate(deps, job.jobId);
        return;
      } catch (cause) {
        const lastedMs = elapsedMs(since, deps.clock.now());
        const verdict = await patience.judge(deps, home, served, { cause, lastedMs });
        if (verdict === 'not-mine') return;
        if (verdict === 'hopeless') {
          await answerFailure(deps, home, job, cause);
          return;
        }
      }
    }
    await deps.roster.giveBack(job, home.owner);
  } catch (cause) {
    // It stays ours on the roster until we are gone, and the state machine hears nothing more of it.
    deps.log.warn('job left without an answer', { jobId: job.jobId, cause: String(cause) });
  }
}
