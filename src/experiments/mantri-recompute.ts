import { invariant } from '../contracts/errors.ts';
import type { PolicyConfigInput } from '../contracts/policy-config.ts';
import { completionMsOf, slotTimeOf } from '../sim/metrics.ts';
import type { JobOutcome } from '../sim/outcome.ts';
import type { Scenario } from '../sim/scenario.ts';
import { simulate } from '../sim/simulate.ts';
import type { Experiment, ExperimentInput, Findings } from './experiment.ts';
import { lossMachines, lossScenario } from './loss-workload.ts';
import { type Protected, type ProtectionName, recomputeFindings, sum } from './recompute-findings.ts';

type Mantri = NonNullable<PolicyConfigInput['mantri']>;

const settings: Readonly<Record<ProtectionName, Mantri>> = {
  none: { replicates: false, precomputes: false },
  replication: { precomputes: false },
  'pre-computation': { replicates: false },
  both: {},
  'both, two losses': { spellLosses: 2 },
  'ideal recompute': { replicates: false, precomputes: false },
};

/** Tasks that a job has done again after a loss. */
function recomputedOf({ attempts, tasks }: JobOutcome): number {
  return attempts.filter(({ ending }) => ending === 'won').length - tasks;
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
    lostOn: job.lostOutputs
      .filter(({ use }) => use === undefined)
      .flatMap(({ attemptId }) => machines.get(attemptId) ?? []),
    bytes: bytesProcessed(scenario, job),
    replicas: copies('worth'),
    ahead: copies('spell'),
  };
}

async function runWith(seed: string, name: ProtectionName): Promise<readonly Protected[]> {
  const scenario = lossScenario(seed, settings[name], name === 'ideal recompute');
  const { jobs } = await simulate(scenario, { seed });
  const failed = jobs.find(({ state }) => state === 'failed');
  invariant(failed === undefined, 'a job failed of its losses', { seed, error: failed?.error });
  return jobs.map((job) => protectedOf(scenario, job));
}

async function run({ seeds }: ExperimentInput): Promise<Findings> {
  const bySeed: Record<ProtectionName, readonly Protected[]>[] = [];
  for (const seed of seeds) {
    bySeed.push({
      none: await runWith(seed, 'none'),
      replication: await runWith(seed, 'replication'),
      'pre-computation': await runWith(seed, 'pre-computation'),
      both: await runWith(seed, 'both'),
      'both, two losses': await runWith(seed, 'both, two losses'),
      'ideal recompute': await runWith(seed, 'ideal recompute'),
    });
  }
  return recomputeFindings(bySeed, lossMachines);
}

/**
 * Outputs that are lost, and what protects from it: production's rules and effects on machines that lose what lies on them
 * in spells. `none`: what is lost is made again when it is missed. `ideal recompute`: nothing is lost. Dryad's part, the
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
