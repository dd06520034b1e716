import { setTimeout as delay } from 'node:timers/promises';
import { finalJobStates, type JobRecord } from '../contracts/records.ts';
import { formatDuration } from '../report/format.ts';
import { deadlineMet } from '../report/job-table.ts';
import { renderBars, renderChanges } from '../report/progress-bars.ts';
import { type ApiClient, saysBusy } from './api-client.ts';
import { writeLines, type Console } from './console.ts';
import { ExitCode, ServiceUnavailableError } from './failures.ts';

export interface WatchOptions {
  /** Shows no progress. */
  readonly quiet: boolean;
  readonly signal: AbortSignal;
  /** Between two questions, by how long the wait has lasted. */
  readonly pollMs?: (waitedMs: number) => number;
  /**
   * Resolves when there may be news, so that nobody waits for the next question, and in any case when the signal has
   * fired. May do so too often, or too late.
   */
  readonly news?: (signal: AbortSignal) => Promise<unknown>;
  /** Whether the service has answered just now, as to the job's submission: then it is there. Default false. */
  readonly hasAnswered?: boolean;
  /** How long a service that has answered may give no answer before the wait ends. Default ten minutes. */
  readonly outageMs?: number;
}

/** Longer than a laptop takes to find its network again, or a service that is busy to have room. */
const defaultOutageMs = 600_000;

const shortestPollMs = 250;
/** Where the end is told: only progress is asked for, and each answer takes four processes some milliseconds. */
const shortestWithNewsMs = 1_000;
const longestPollMs = 30_000;
const pollShare = 1 / 20;

/**
 * How long to wait before a job is asked for again: a twentieth of the wait so far, so that its end is known within
 * that, and a wait of a day takes some thousand questions; from a quarter of a second to half a minute.
 */
export const nextPollMs = (waitedMs: number): number =>
  Math.min(longestPollMs, Math.max(shortestPollMs, Math.round(waitedMs * pollShare)));

/**
 * Asks for a job until it has ended, and shows its progress on the way: bars on a terminal, elsewhere a line
 * for each change. A service that has answered once, be it that it is busy, is asked again where it does not: the job goes on
 * meanwhile. Throws the signal's reason where that fires, and what the API throws.
 */
export async function watchJob(
  client: ApiClient,
  jobId: string,
  console: Console,
  options: WatchOptions,
): Promise<JobRecord> {
  const progress = options.quiet ? undefined : makeProgress(console);
  const began = performance.now();
  const leastMs = options.news === undefined ? 0 : shortestWithNewsMs;
  const pollMs = options.pollMs ?? ((waitedMs: number) => Math.max(leastMs, nextPollMs(waitedMs)));
  const { outageMs = defaultOutageMs, hasAnswered = false } = options;
  let borneUntil = hasAnswered ? began + outageMs : undefined;
  let isAway = false;
  const bear = (error: unknown): undefined => {
    if (!(error instanceof ServiceUnavailableError)) throw error;
    if (saysBusy(error)) borneUntil ??= performance.now() + outageMs;
    if (borneUntil === undefined || performance.now() >= borneUntil) throw error;
    if (!isAway) progress?.tell(`no answer: asked again for up to ${formatDuration(outageMs)}`);
    isAway = true;
    return undefined;
  };
  try {
    for (;;) {
      const job = await client.job(jobId, options.signal).catch(bear);
      if (job !== undefined) {
        borneUntil = performance.now() + outageMs;
        isAway = false;
        progress?.show(job);
        if (finalJobStates.includes(job.state)) return job;
      }
      await pause(pollMs(performance.now() - began), options);
    }
  } finally {
    progress?.clear();
  }
}

/** Exit code of a job that has ended. */
export function exitCodeOfJob(job: JobRecord): number {
  return job.state === 'succeeded' && deadlineMet(job) !== false ? ExitCode.done : ExitCode.jobFailed;
}

interface Progress {
  show(job: JobRecord): void;
  /** A line that stays. */
  tell(line: string): void;
  /** Takes bars away; lines stay. */
  clear(): void;
}

function makeProgress(console: Console): Progress {
  return console.terminalColumns() === undefined ? lineProgress(console) : barProgress(console);
}

function lineProgress(console: Console): Progress {
  let before: JobRecord | undefined;
  return {
    show: (job) => {
      writeLines(console.err, renderChanges(before, job));
      before = job;
    },
    tell: (line) => {
      console.err(`${line}\n`);
    },
    clear: () => undefined,
  };
}

function barProgress(console: Console): Progress {
  let drawn = 0;
  // Cursor up over the old lines, then clear to the end of the screen.
  const back = (): string => (drawn === 0 ? '' : `\u001b[${String(drawn)}A\u001b[0J`);
  const clear = (): void => {
    console.err(back());
    drawn = 0;
  };
  return {
    show: (job) => {
      const lines = renderBars(job, Date.now(), console.terminalColumns() ?? 80, console.errStyle);
      console.err(`${back()}${lines.join('\n')}\n`);
      drawn = lines.length;
    },
    tell: (line) => {
      clear();
      console.err(`${line}\n`);
    },
    clear,
  };
}

async function pause(ms: number, { signal, news }: WatchOptions): Promise<void> {
  signal.throwIfAborted();
  const over = new AbortController();
  const either = AbortSignal.any([signal, over.signal]);
  const waits = [delay(ms, undefined, { signal: either }), ...(news === undefined ? [] : [news(either)])];
  try {
    await Promise.race(waits);
    signal.throwIfAborted();
  } catch (error) {
    signal.throwIfAborted(); // Its reason says more than the timer's own error.
    throw error;
  } finally {
    over.abort();
    for (const wait of waits) wait.catch(() => undefined);
  }
}
