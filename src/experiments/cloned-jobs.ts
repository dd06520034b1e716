import type { CloneModel } from './straggle-probability.ts';
import { completionMsOf } from '../sim/metrics.ts';
import type { JobOutcome } from '../sim/outcome.ts';
import { parseScenario, type ScenarioInput } from '../sim/scenario.ts';
import { simulate } from '../sim/simulate.ts';

/** Work of a task, and how many times as long a copy that straggles takes. */
const workMs = 10_000;
const stragglerFactor = 8;
/** Jobs come one after the other, each once the last has ended whatever its luck. */
const apartMs = 4 * stragglerFactor * workMs;

/**
 * How copies are made and read: whole jobs or tasks of one phase, and two phases all-to-all where clones begin at
 * once (CC) or wait for copies of their own (CAC).
 */
export const cloneSchemes = ['job', 'task', 'CAC', 'CC'] as const;
export type CloneScheme = (typeof cloneSchemes)[number];

/** What simulated jobs came to. */
export interface CloneCounts {
  readonly jobs: number;
  /** Jobs that took longer than their phases without stragglers. */
  readonly straggled: number;
  /** Of CAC, for each d from 1 to c: jobs each of whose upstream tasks had at least d copies in time. */
  readonly inTime: readonly number[];
}

type JobInput = ScenarioInput['jobs'][number];

const times = (count: number): number[] => Array.from({ length: count }, (_, job) => job * apartMs);

function jobOf(
  scheme: CloneScheme,
  { tasks, clones, stragglerProbability }: CloneModel,
): Omit<JobInput, 'arrivals'> {
  const phases = scheme === 'CAC' || scheme === 'CC' ? ['up', 'down'] : ['only'];
  return {
    policy: scheme === 'job' ? 'none' : 'dolly',
    // Room for all clones, and as many as the model says, whatever the risk.
    policyConfig: {
      dolly: {
        mostClones: clones,
        straggleRisk: 1e-9,
        budgetShare: 1,
        utilizationCeiling: 1,
        otherwise: 'none',
        assignment: scheme === 'CAC' ? 'cac' : 'cc',
      },
    },
    stages: phases.map((name, place) => ({
      name,
      tasks,
      workMs,
      slowdown: { kind: 'mixture', probability: stragglerProbability, outlier: stragglerFactor, usual: 1 },
      upstream: phases.slice(0, place),
    })),
  };
}

/** Whether each task of the first phase has at least `least` copies that took no longer than their work. */
function hasInTime({ attempts }: JobOutcome, tasks: number, least: number): boolean {
  const copies = Array.from({ length: tasks }, () => 0);
  for (const { stage, task, claimedAtMs, leftAtMs, ending } of attempts) {
    const isInTime = claimedAtMs !== undefined && leftAtMs - claimedAtMs <= workMs;
    if (stage === 0 && isInTime && (ending === 'won' || ending === 'kept'))
      copies[task] = (copies[task] ?? 0) + 1;
  }
  return copies.every((count) => count >= least);
}

/**
 * Runs `count` jobs of a model through the simulator: production's scheduler and policy, tasks of equal work whose
 * copies straggle independently. Of the scheme `job` each is submitted c times, and the first copy to end counts.
 */
export async function runClonedJobs(
  scheme: CloneScheme,
  model: CloneModel,
  count: number,
  seed: string,
): Promise<CloneCounts> {
  const { tasks, clones } = model;
  const submitted = scheme === 'job' ? clones : 1;
  const { jobs } = await simulate(
    parseScenario({
      name: `cloned-${scheme}-${tasks}-${clones}-${model.stragglerProbability}`,
      cluster: { nodes: [{ count: 1, slots: 2 * tasks * clones }] },
      scheduler: { tickMs: 1_000, wakeOnEnd: true, cancel: 'immediate' },
      // Reports would say nothing here and cost most of the time.
      reports: { everyMs: 3_600_000, tenths: false },
      jobs: [
        {
          ...jobOf(scheme, model),
          arrivals: { kind: 'list', atMs: times(count).flatMap((at) => Array<number>(submitted).fill(at)) },
        },
      ],
    }),
    { seed },
  );
  const phases = scheme === 'CAC' || scheme === 'CC' ? 2 : 1;
  const isLate = (job: JobOutcome | undefined): boolean =>
    job !== undefined && completionMsOf(job) > phases * workMs;
  let straggled = 0;
  for (let job = 0; job < count; job++) {
    const copies = jobs.slice(job * submitted, (job + 1) * submitted);
    if (copies.every(isLate)) straggled += 1;
  }
  const inTime =
    scheme === 'CAC'
      ? Array.from({ length: clones }, (_, d) => jobs.filter((job) => hasInTime(job, tasks, d + 1)).length)
      : [];
  return { jobs: count, straggled, inTime };
}
