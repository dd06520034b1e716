import { invariant } from '../contracts/errors.ts';
import type { PolicyConfigInput } from '../contracts/policy-config.ts';
import { completionMsOf, slotTimeOf } from '../sim/metrics.ts';
import type { JobOutcome, SimulationResult } from '../sim/outcome.ts';
import type { Scenario } from '../sim/scenario.ts';
import { simulate } from '../sim/simulate.ts';
import type { Experiment, ExperimentInput, Findings } from './experiment.ts';
import { type LossRate, lossMachines, lossRates, lossScenario } from './loss-workload.ts';
import {
  type Protected,
  type ProtectionName,
  recomputeFindings,
  type Runs,
  sum,
} from './recompute-findings.ts';

type Mantri = NonNullable<PolicyConfigInput['mantri']>;

const settings: Readonly<Record<ProtectionName, Mantri>> = {
  none: { replicates: false, precomputes: false },
  'none, other places': { replicates: false, precomputes: false },
  replication: { precomputes: false },
  'pre-computation': { replicates: false },
  both: {},
  'both, two losses': { spellLosses: 2 },
  'ideal recompute': { replicates: false, precomputes: false },
};

/** Outputs that were made again before anybody missed them, since others at their place had been lost. */
function madeAheadOf({ lostOutputs, copiedOutputs }: JobOutcome): number {
  const ahead = new Set(
    copiedOutputs.flatMap(({ attemptId, reason }) => (reason === 'spell' ? [attemptId] : [])),
  );
  return lostOutputs.filter(
    ({ attemptId, by, use }) => by === undefined && use === undefined && ahead.has(attemptId),
  ).length;
}

/** Tasks that a job has done again after a loss, but for those done again ahead. */
function recomputedOf(job: JobOutcome): number {
  return job.attempts.filter(({ ending }) => ending === 'won').length - job.tasks - madeAheadOf(job);
}

/** Phases some task of which a job has done again. */
function phasesRedoneIn({ attempts }: JobOutcome): number {
  const won = attempts.filter(({ ending }) => ending === 'won');
  const again = [...Map.groupBy(won, ({ stage, task }) => `${stage}/${task}`).values()].flatMap(
    ([, second]) => (second === undefined ? [] : [second.stage]),
  );
  return new Set(again).size;
}

function bytesProcessed(scenario: Scenario, job: JobOutcome): number {
  const { stages } = scenario.jobs.find(({ name }) => name === job.name) ?? { stages: [] };
  return sum(
    stages.map(({ tasks, inputBytes }) => (typeof inputBytes === 'number' ? inputBytes * tasks : 0)),
  );
}

/** What became of a job, as far as it is compared. */
function protectedOf(scenario: Scenario, job: JobOutcome): Protected {
  const read = new Set(
    job.lostOutputs.flatMap(({ attemptId, use }) => (use === undefined ? [] : [attemptId])),
  );
  const copies = (reason: 'worth' | 'spell') => {
    const made = job.copiedOutputs.filter((each) => each.reason === reason);
    return {
      count: made.length,
      bytes: sum(made.map(({ bytes }) => bytes)),
      read: made.filter(({ attemptId }) => read.has(attemptId)).length,
    };
  };
  const machines = new Map(job.attempts.map(({ attemptId, node }) => [attemptId, node]));
  return {
    completionMs: completionMsOf(job),
    slotMs: slotTimeOf(job).usedMs,
    recomputed: recomputedOf(job),
    phases: job.stages.length,
    phasesRedone: phasesRedoneIn(job),
    lostOn: job.lostOutputs
      .filter(({ use }) => use === undefined)
      .flatMap(({ attemptId }) => machines.get(attemptId) ?? []),
    bytes: bytesProcessed(scenario, job),
    replicas: copies('worth'),
    ahead: copies('spell'),
  };
}

/** Jobs of the past beside each that counts. */
const jobsBefore = 4;

/**
 * What earlier jobs have seen of outputs at each machine: the paper's r is estimated over a long time, and where losses are
 * rare, jobs of four hours see none at most machines, flaky ones included.
 */
async function seenBefore(seed: string, rate: LossRate): Promise<SimulationResult['seenLosses']> {
  const past = lossScenario(
    `${seed}/before`,
    { ...rate, jobs: jobsBefore * rate.jobs },
    settings.none,
    false,
  );
  return (await simulate(past, { seed: `${seed}/before` })).seenLosses;
}

async function runsOf(seed: string, rate: LossRate): Promise<Runs> {
  const seenLosses = await seenBefore(seed, rate);
  const runWith = async (name: ProtectionName): Promise<readonly Protected[]> => {
    const scenario = lossScenario(seed, rate, settings[name], name === 'ideal recompute');
    const places = name === 'none, other places' ? { places: name } : {};
    const { jobs } = await simulate(scenario, { seed, seenLosses, ...places });
    const failed = jobs.find(({ state }) => state === 'failed');
    invariant(failed === undefined, 'a job failed of its losses', { seed, error: failed?.error });
    return jobs.map((job) => protectedOf(scenario, job));
  };
  return {
    none: await runWith('none'),
    'none, other places': await runWith('none, other places'),
    replication: await runWith('replication'),
    'pre-computation': await runWith('pre-computation'),
    both: await runWith('both'),
    'both, two losses': await runWith('both, two losses'),
    'ideal recompute': await runWith('ideal recompute'),
  };
}

async function run({ seeds }: ExperimentInput): Promise<Findings> {
  const rare: Runs[] = [];
  const frequent: Runs[] = [];
  for (const seed of seeds) {
    rare.push(await runsOf(seed, lossRates['as in the paper']));
    frequent.push(await runsOf(seed, lossRates['far more often']));
  }
  return recomputeFindings({ 'as in the paper': rare, 'far more often': frequent }, lossMachines);
}

/**
 * Outputs that are lost, and what protects from it: production's rules and effects on machines that lose what lies on them
 * in spells. `none`: what is lost is made again when it is missed; with other places for the attempts, what chance makes of
 * the figures: attempts have the same places under all others, where these are free. `ideal recompute`: nothing is lost. Dryad's part, the
 * base, is played by our own scheduler without protection. A copy is there at once: what it takes is in the rule alone.
 *
 * Source: Mantri §5.3 and §6, the figures on recomputations.
 */
export const mantriRecompute: Experiment = {
  name: 'mantri-recompute',
  title:
    'Mantri: outputs kept twice and made again ahead, against doing lost ones again when they are missed',
  source: 'Mantri §5.3 and §6, the figures on recomputations',
  defaultSeeds: 10,
  traces: [],
  host: 'hadoop',
  run,
};
