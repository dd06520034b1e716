import { expect, it } from 'vitest';
import { policyNames, type PolicyName } from '../../src/contracts/policy-names.ts';
import type { JobOutcome } from '../../src/sim/outcome.ts';
import { simulate } from '../../src/sim/simulate.ts';
import { type AdversarialStage, adversarialStage } from '../support/adversarial-stages.ts';
import { scenarioOf } from './scenarios.ts';

/** A long search sets it: `ADVERSARIAL_SEEDS=0-10000`, the first seed and the one after the last. */
const [fromSeed = 0, toSeed = 100] = (process.env['ADVERSARIAL_SEEDS'] ?? '0-100').split('-').map(Number);
const seeds = Array.from({ length: toSeed - fromSeed }, (_, index) => fromSeed + index);

/** Backups of a task by the arbiter's bound, and restarts by Mantri's, whatever becomes of them. */
const mostBackups = 6;
const mostRestarts = 3;
/** Beside the original and the newest of its copies, Mantri keeps one more. */
const mostAtOnce = 3;
/** A policy may take so many times as long as no copies at all. */
const mostTimes = 1.5;
/** Runs without copies, where the time hangs on luck: a policy that copies draws its luck anew. */
const lucks = ['1', '2', '3', '4', '5'];

async function runOf({ scenario }: AdversarialStage, policy: PolicyName, seed = '1'): Promise<JobOutcome> {
  const jobs = scenario.jobs.map((job) => ({ ...job, policy, launchOrder: 'largest-first' as const }));
  const [job] = (await simulate(scenarioOf({ ...scenario, jobs }), { seed })).jobs;
  if (job === undefined) throw new Error('no job');
  return job;
}

const allowances = new Map<number, Promise<number | undefined>>();

/** The same for a seed under every policy. */
function allowanceOf(seed: number, stage: AdversarialStage): Promise<number | undefined> {
  const known = allowances.get(seed) ?? allowedMsOf(stage);
  allowances.set(seed, known);
  return known;
}

/** What no policy may exceed; undefined where the job may not succeed without copies either. */
async function allowedMsOf(stage: AdversarialStage): Promise<number | undefined> {
  const runs: JobOutcome[] = [];
  for (const seed of stage.isByLuck ? lucks : lucks.slice(0, 1)) runs.push(await runOf(stage, 'none', seed));
  if (runs.some(({ state }) => state !== 'succeeded')) return undefined;
  return mostTimes * Math.max(...runs.map(({ completedAtMs }) => completedAtMs));
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

const mostOfATask = ({ attempts }: JobOutcome, reason: 'backup' | 'restart'): number => {
  const counts = new Map<string, number>();
  for (const each of attempts) {
    // What was withdrawn before it began has started nothing.
    if (each.reason !== reason || each.ending === 'refused') continue;
    const key = `${each.stage}/${each.task}`;
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  return Math.max(0, ...counts.values());
};

it.each(policyNames.filter((name) => name !== 'none'))(
  'under %s small stages that are hard to judge end, not much later than without copies, by few of them',
  async (policy) => {
    const wrong: string[] = [];
    for (const seed of seeds) {
      const stage = adversarialStage(seed);
      const allowedMs = await allowanceOf(seed, stage);
      const job = await runOf(stage, policy);
      const found = {
        seed,
        late: allowedMs !== undefined && job.state === 'succeeded' && job.completedAtMs > allowedMs,
        lost: allowedMs !== undefined && !stage.isByLuck && job.state !== 'succeeded',
        backups: mostOfATask(job, 'backup') > mostBackups,
        restarts: mostOfATask(job, 'restart') > mostRestarts,
        atOnce: mostBusyAtOnce(job) > mostAtOnce,
      };
      if (found.late || found.lost || found.backups || found.restarts || found.atOnce)
        wrong.push(JSON.stringify({ ...found, allowedMs, took: job.completedAtMs }));
    }
    expect(wrong).toEqual([]);
  },
  seeds.length * 20_000,
);
