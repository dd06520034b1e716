import type { PolicyName } from '../../src/contracts/policy-names.ts';
import type { JobOutcome } from '../../src/sim/outcome.ts';
import { parseScenario, type Scenario } from '../../src/sim/scenario.ts';
import { simulate } from '../../src/sim/simulate.ts';
import type { AdversarialStage } from './adversarial-stages.ts';

/** Backups of a task by the arbiter's bound, and restarts by Mantri's, whatever becomes of them. */
const mostBackups = 6;
const mostRestarts = 3;
/** Copies of a task at once: one beside the original; beside it and the newest of its copies, Mantri keeps one more. */
const mostAtOnce = (policy: PolicyName): number =>
  policy === 'mantri' || policy === 'outrider' || policy === 'dolly' ? 3 : 2;
/** LATE's backups at once, of all tasks, as a share of the cluster's slots; at least one. */
const lateCap = 0.1;
/** A policy may take so many times as long as no copies at all. */
const mostTimes = 1.5;
/** What a trace calls an attempt that is not wanted any more, or gone. */
const ends: ReadonlySet<string> = new Set([
  ...['cancel', 'lose'],
  ...['won', 'kept', 'late', 'cancelled', 'failed', 'died', 'refused'],
]);
/** Runs of a stage that differ by luck alone: by the seed of what fails, and by which time a task's next attempt draws. */
const lucks = [0, 1, 2, 3, 4];
/** So many, before a policy is found to take too long: of five, one may have met what is rare, and the other not. */
const lucksToBeSure = 40;

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

function scenarioOf(stage: AdversarialStage, policy: PolicyName, luck: number): Scenario {
  const scenario = redrawn(stage, luck);
  const jobs = scenario.jobs.map((job) => ({ ...job, policy, launchOrder: 'largest-first' as const }));
  return parseScenario({ ...scenario, jobs });
}

const seedOf = (luck: number): string => String(luck + 1);

/** The only job of a stage under a policy. Rejects where it does not end. */
export async function outcomeOf(stage: AdversarialStage, policy: PolicyName, luck = 0): Promise<JobOutcome> {
  const [job] = (await simulate(scenarioOf(stage, policy, luck), { seed: seedOf(luck) })).jobs;
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
  if ((await meanOver(lucks.length, stage, policy)) <= mostTimes * mean(times.withoutMs)) return undefined;
  const took = await meanOver(lucksToBeSure, stage, policy);
  const without = stage.isByLuck ? await meanOver(lucksToBeSure, stage, 'none') : mean(times.withoutMs);
  return took > mostTimes * without
    ? `takes ${Math.round(took)} ms on the mean over ${lucksToBeSure} lucks, without copies ${Math.round(without)} ms`
    : undefined;
}

/** The mean time of so many runs that differ by luck alone. */
async function meanOver(count: number, stage: AdversarialStage, policy: PolicyName): Promise<number> {
  const runs: number[] = [];
  for (let luck = 0; luck < count; luck++) runs.push((await outcomeOf(stage, policy, luck)).completedAtMs);
  return mean(runs);
}

/** The most attempts of one task that ran at once, those told to stop and those given up included. */
function mostAtOnceOf({ attempts }: JobOutcome): number {
  const claimed = attempts.filter(({ claimedAtMs }) => claimedAtMs !== undefined);
  const others = (one: JobOutcome['attempts'][number]): number =>
    claimed.filter(
      ({ stage, task, takenAtMs, leftAtMs }) =>
        stage === one.stage && task === one.task && takenAtMs <= one.takenAtMs && leftAtMs > one.takenAtMs,
    ).length;
  return Math.max(0, ...claimed.map(others));
}

/** The most attempts at once that their scheduler had launched, and neither told to stop nor given up. */
interface Wanted {
  readonly ofATask: number;
  /** Backups of all tasks that have begun: LATE's cap counts those, and a throttled launch is none. */
  readonly backups: number;
}

async function mostWantedAtOnce(stage: AdversarialStage, policy: PolicyName): Promise<Wanted> {
  const { trace } = await simulate(scenarioOf(stage, policy, 0), { seed: seedOf(0), trace: true });
  const wanted = new Map<string, Set<string>>();
  const launchedAsBackup = new Set<string>();
  const wantedBackups = new Set<string>();
  let [ofATask, backups] = [0, 0];
  for (const line of trace) {
    const [, kind = '', about = '', attemptId = '', reason] = line.split(' ');
    if (kind === 'claim' && launchedAsBackup.has(about)) wantedBackups.add(about);
    backups = Math.max(backups, wantedBackups.size);
    const task = attemptId.slice(0, attemptId.lastIndexOf('/'));
    const copies = wanted.get(task) ?? new Set();
    wanted.set(task, copies);
    if (kind === 'launch') {
      copies.add(attemptId);
      // What was throttled is launched again, as a retry where the original has gone meanwhile.
      if (reason === 'backup') launchedAsBackup.add(attemptId);
      else launchedAsBackup.delete(attemptId);
    } else if (ends.has(kind)) {
      copies.delete(attemptId);
      wantedBackups.delete(attemptId);
      // Who was told to stop while it waited in the queue claims, and is refused at once.
      launchedAsBackup.delete(attemptId);
    }
    ofATask = Math.max(ofATask, copies.size);
  }
  return { ofATask, backups };
}

/** What is wrong with how many copies there are at once, in words. */
async function crowding(stage: AdversarialStage, policy: PolicyName, job: JobOutcome): Promise<string[]> {
  const most = mostAtOnce(policy);
  const slots = stage.scenario.cluster.nodes.reduce((sum, node) => sum + node.count * (node.slots ?? 1), 0);
  const cap = policy === 'late' ? Math.max(1, Math.floor(lateCap * slots)) : Infinity;
  // More may run than are wanted: who was told to stop learns of it later, and who was given up never.
  const mayBeMore =
    mostAtOnceOf(job) > most || job.attempts.filter(({ reason }) => reason === 'backup').length > cap;
  if (!mayBeMore) return [];
  const { ofATask, backups } = await mostWantedAtOnce(stage, policy);
  return [
    ...(ofATask > most ? [`${ofATask} copies of a task at once, more than ${most}`] : []),
    ...(backups > cap ? [`${backups} backups at once, more than ${cap}`] : []),
  ];
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
  const [backups, restarts] = [mostOfATask(job, 'backup'), mostOfATask(job, 'restart')];
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
  return [...wrongs, ...(await crowding(stage, policy, job))];
}
