import type { PolicyName } from '../../src/contracts/policy-names.ts';
import type { JobOutcome } from '../../src/sim/outcome.ts';
import { parseScenario } from '../../src/sim/scenario.ts';
import { simulate } from '../../src/sim/simulate.ts';
import type { AdversarialStage } from './adversarial-stages.ts';

/** Backups of a task by the arbiter's bound, and restarts by Mantri's, whatever becomes of them. */
const mostBackups = 6;
const mostRestarts = 3;
/** Beside the original and the newest of its copies, Mantri keeps one more. */
const mostAtOnce = 3;
/** A policy may take so many times as long as no copies at all. */
const mostTimes = 1.5;
/** Runs of a stage that differ by luck alone: by the seed of what fails, and by which time a task's next attempt draws. */
const lucks = [0, 1, 2, 3, 4];

/** The same attempts of each task, the later ones in another order: a second attempt takes what a third did. */
function redrawn({ scenario }: AdversarialStage, luck: number): AdversarialStage['scenario'] {
  const rotated = ([first = 0, ...later]: readonly number[]): number[] => {
    const by = later.length === 0 ? 0 : luck % later.length;
    return [first, ...later.slice(by), ...later.slice(0, by)];
  };
  return {
    ...scenario,
    jobs: scenario.jobs.map((job) => ({
      ...job,
      stages: job.stages.map(({ attemptsMs = [], ...stage }) => ({
        ...stage,
        attemptsMs: attemptsMs.map(rotated),
      })),
    })),
  };
}

/** The only job of a stage under a policy. Rejects where it does not end. */
export async function outcomeOf(stage: AdversarialStage, policy: PolicyName, luck = 0): Promise<JobOutcome> {
  const scenario = redrawn(stage, luck);
  const jobs = scenario.jobs.map((job) => ({ ...job, policy, launchOrder: 'largest-first' as const }));
  const [job] = (await simulate(parseScenario({ ...scenario, jobs }), { seed: String(luck + 1) })).jobs;
  if (job === undefined) throw new Error('no job');
  return job;
}

const mean = (values: readonly number[]): number =>
  values.reduce((sum, each) => sum + each, 0) / Math.max(1, values.length);

/** What a stage takes without copies, by luck: once where none decides; undefined where it may not succeed. */
export async function timesWithoutCopies(stage: AdversarialStage): Promise<readonly number[] | undefined> {
  const runs: JobOutcome[] = [];
  for (const luck of stage.isByLuck ? lucks : lucks.slice(0, 1))
    runs.push(await outcomeOf(stage, 'none', luck));
  return runs.every(({ state }) => state === 'succeeded')
    ? runs.map(({ completedAtMs }) => completedAtMs)
    : undefined;
}

/**
 * Why a policy takes too long, in words. One run that takes longer than all without copies are allowed may have met bad
 * luck, as any that makes a copy may: then the mean over all lucks tells.
 */
async function lateness(
  stage: AdversarialStage,
  policy: PolicyName,
  times: { readonly tookMs: number; readonly withoutMs: readonly number[] },
): Promise<string | undefined> {
  if (times.tookMs <= mostTimes * Math.max(...times.withoutMs)) return undefined;
  const runs: number[] = [];
  for (const luck of lucks) runs.push((await outcomeOf(stage, policy, luck)).completedAtMs);
  const [took, without] = [mean(runs), mean(times.withoutMs)];
  return took > mostTimes * without
    ? `takes ${Math.round(took)} ms on the mean over ${lucks.length} lucks, without copies ${Math.round(without)} ms`
    : undefined;
}

/** The most attempts of one task at once that are its own work: those told to stop, or given up, may linger. */
function mostBusyAtOnce({ attempts }: JobOutcome): number {
  const working = attempts.filter(
    ({ ending }) => ending === 'won' || ending === 'late' || ending === 'failed',
  );
  return Math.max(
    0,
    ...working.map(
      (one) =>
        working.filter(
          (each) =>
            each.stage === one.stage &&
            each.task === one.task &&
            each.takenAtMs <= one.takenAtMs &&
            each.leftAtMs > one.takenAtMs,
        ).length,
    ),
  );
}

function mostOfATask({ attempts }: JobOutcome, reason: 'backup' | 'restart'): number {
  const counts = new Map<string, number>();
  for (const each of attempts) {
    // What was withdrawn before it began has started nothing.
    if (each.reason !== reason || each.ending === 'refused') continue;
    const key = `${each.stage}/${each.task}`;
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  return Math.max(0, ...counts.values());
}

/** What a policy does wrong on a stage, in words; empty where it does well. `withoutMs` is of `timesWithoutCopies`. */
export async function wrongsOf(
  stage: AdversarialStage,
  policy: PolicyName,
  withoutMs: readonly number[] | undefined,
): Promise<readonly string[]> {
  const job = await outcomeOf(stage, policy);
  const [backups, restarts, atOnce] = [
    mostOfATask(job, 'backup'),
    mostOfATask(job, 'restart'),
    mostBusyAtOnce(job),
  ];
  const wrongs: string[] = [];
  const late =
    withoutMs === undefined || job.state !== 'succeeded'
      ? undefined
      : await lateness(stage, policy, { tookMs: job.completedAtMs, withoutMs });
  if (late !== undefined) wrongs.push(late);
  if (withoutMs !== undefined && !stage.isByLuck && job.state !== 'succeeded')
    wrongs.push(`ends as ${job.state} where it succeeds without copies`);
  if (backups > mostBackups) wrongs.push(`${backups} backups of a task, more than ${mostBackups}`);
  if (restarts > mostRestarts) wrongs.push(`${restarts} restarts of a task, more than ${mostRestarts}`);
  if (atOnce > mostAtOnce) wrongs.push(`${atOnce} copies of a task at once, more than ${mostAtOnce}`);
  return wrongs;
}
