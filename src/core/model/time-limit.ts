import type { Failure } from '../../contracts/records.ts';
import { type DurationMs, durationMs, elapsedMs, type EpochMs } from '../../contracts/units.ts';

/** Lambda ends an invocation after so long. Source: AWS's limits. */
export const longestInvocationMs = 900_000;

/** What an attempt keeps of its environment's time to stop in order: to remove what it wrote, and to say so. */
const spareMs = 20_000;
/** At most this share of it, where the time is short. */
const spareShare = 0.1;
/** What it keeps besides, where it can hand on what it has done, for doing so; at most as long a share of its time. */
const savingMs = 60_000;
/** How long an operator that was told to stop may take to do so. */
const graceMs = 5_000;

/** When an attempt has to be done, and what it may use of the time until then. */
export interface TimeLimit {
  readonly endsAt: EpochMs;
  /** Before its environment ends it. */
  readonly spare: DurationMs;
  /** Of the spare time, for its operator to stop. */
  readonly grace: DurationMs;
  /** Before the spare time, for it to hand on what it has done. */
  readonly saving: DurationMs;
}

const spareOf = (lastsMs: number): DurationMs => durationMs(Math.min(spareMs, lastsMs * spareShare));

/** How long an attempt may work that has an environment which lasts so long to itself, in ms. */
export const mostWorkMs = (lastsMs: number): DurationMs => durationMs(lastsMs - spareOf(lastsMs));

/** The limit of an attempt that begins now in an environment that ends at `endsAt`, if it ever does. */
export function timeLimitOf(endsAt: EpochMs | undefined, now: EpochMs): TimeLimit | undefined {
  if (endsAt === undefined) return undefined;
  const lastsMs = elapsedMs(now, endsAt);
  const spare = spareOf(lastsMs);
  return {
    endsAt,
    spare,
    grace: durationMs(Math.min(graceMs, spare / 2)),
    saving: durationMs(Math.min(savingMs, lastsMs * spareShare)),
  };
}

/** Of an attempt without a limit. */
export const usualGrace = durationMs(graceMs);

/** How long an attempt may still work before it stops itself; below 0 where it should have by now. */
export const workLeftMs = ({ endsAt, spare }: TimeLimit, now: EpochMs): number =>
  elapsedMs(now, endsAt) - spare;

/** Whether enough of an environment's time is left for one more attempt that takes so long. */
export function hasTimeFor(endsAt: EpochMs | undefined, now: EpochMs, takesMs: number): boolean {
  const limit = timeLimitOf(endsAt, now);
  return limit === undefined || workLeftMs(limit, now) >= takesMs;
}

/** What an attempt says that stops itself when only its spare time is left. */
export const stoppedItself = ({ spare }: TimeLimit): string =>
  `it stopped itself ${String(Math.round(spare / 100) / 10)} s before its environment's time was up`;

/** What is known of an attempt that was stopped. */
export interface Stopped {
  /** Whether others had used some of its environment's time: it might have had enough in a worker of its own. */
  readonly isUsed: boolean;
  /**
   * Whether another attempt may well have the time, or hand on what it has done: this one was kept from that by what need not
   * come again. Its operator had not begun until its time was nearly up, or what it handed on could not be written, or not in
   * time.
   */
  readonly mayPass: boolean;
}

/** How an attempt fails that ran out of its environment's time. */
export function outOfTime(message: string, { isUsed, mayPass }: Stopped): Failure {
  if (isUsed)
    return { cause: 'interrupted', message: `${message}, of which attempts before it had taken some` };
  return { cause: 'timeout', message, ...(mayPass ? { mayPass } : {}) };
}
