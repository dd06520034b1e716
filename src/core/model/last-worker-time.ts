import type { Prices } from '../../contracts/prices.ts';
import { attemptParts } from '../../contracts/ids.ts';
import type { AttemptRecord, JobRecord, StageSummary } from '../../contracts/records.ts';
import { elapsedMs } from '../../contracts/units.ts';
import { moreDollars } from './cost.ts';

/** An attempt as its record leaves it, as far as its worker's time goes. */
type TimedAttempt = Pick<AttemptRecord, 'attemptId' | 'launchedAt' | 'claimedAt' | 'endedAt' | 'reportedAt'>;

/** Time in milliseconds that an attempt has occupied a worker; of one that works on, until its last report. */
function workedMs({ launchedAt, claimedAt, endedAt, reportedAt }: TimedAttempt): number {
  const until = endedAt ?? reportedAt;
  if (claimedAt === undefined || until === undefined) return 0;
  if (endedAt === undefined || endedAt === reportedAt) return elapsedMs(claimedAt, until);
  // Ended by another than its worker, whose clock may differ: no longer than since its launch.
  return Math.min(elapsedMs(claimedAt, until), elapsedMs(launchedAt, until));
}

/** What the workers of a job have come to. */
export interface WorkerTime {
  readonly stages: readonly StageSummary[];
  readonly workerMs: number;
  /** Dollars. */
  readonly compute: number;
}

/**
 * The worker time of a job whose attempts have stopped, from what they have told; of each stage no less than its record
 * says. A job's last summary is as old as the end of its last task, and copies that lost work on after that. What they
 * cost is added to `compute` at the price of their stage's worker: records do not tell which size an attempt ran on.
 */
export function lastWorkerTime(
  { spec, stages, workerMs }: Pick<JobRecord, 'spec' | 'stages' | 'workerMs'>,
  compute: number,
  attempts: readonly TimedAttempt[],
  prices?: Prices,
): WorkerTime {
  const told = new Map<string, number>();
  for (const attempt of attempts) {
    const { stage } = attemptParts(attempt.attemptId);
    told.set(stage, (told.get(stage) ?? 0) + workedMs(attempt));
  }
  const last = stages.map((stage) => ({
    ...stage,
    workerMs: Math.max(stage.workerMs, told.get(stage.name) ?? 0),
  }));
  const moreMs = last.map((stage, place) => stage.workerMs - (stages[place]?.workerMs ?? 0));
  return {
    stages: last,
    workerMs: moreMs.reduce((sum, ms) => sum + ms, workerMs),
    compute: last.reduce((sum, { name }, place) => {
      const worker = spec.stages.find((stage) => stage.name === name)?.worker;
      return worker === undefined ? sum : sum + moreDollars(worker, moreMs[place] ?? 0, prices);
    }, compute),
  };
}
