import { policyNames } from '../../src/contracts/policy-names.ts';
import { createRng, type Rng } from '../../src/lib/rng.ts';
import type { JobOutcome } from '../../src/sim/outcome.ts';
import type { ScenarioInput } from '../../src/sim/scenario.ts';

const pick = <T>(rng: Rng, first: T, ...others: readonly T[]): T =>
  [first, ...others][Math.floor(rng.next() * (others.length + 1))] ?? first;
const chance = (rng: Rng, share: number): boolean => rng.next() < share;

type JobInput = ScenarioInput['jobs'][number];
type StageInput = JobInput['stages'][number];

/** What a stage's tasks run on, often enough Fargate. */
const workerOf = (rng: Rng): NonNullable<StageInput['worker']> => ({
  kind: chance(rng, 0.3) ? 'fargate' : 'lambda',
  size: 'medium',
});

function firstStage(rng: Rng): StageInput {
  const workMs = pick(rng, 500, 5_000, 10_000, 30_000);
  const tasks = pick(rng, 1, 3, 10, 25);
  const stragglers = pick(rng, 'none', 'one', 'many');
  const attemptsMs = Array.from({ length: tasks }, (_, task) =>
    task === 0 ? [20 * workMs, workMs] : [workMs],
  );
  return {
    name: 'map',
    tasks,
    workMs,
    worker: workerOf(rng),
    ...(stragglers === 'one' ? { attemptsMs } : {}),
    ...(stragglers === 'many' ? { slowdown: { kind: 'pareto', scale: 1, shape: 1.4, max: 20 } } : {}),
  };
}

function drawJob(rng: Rng, name: string): JobInput {
  const map = firstStage(rng);
  const reduce: StageInput = {
    name: 'reduce',
    tasks: pick(rng, 1, 5, 20),
    upstream: ['map'],
    workMs: pick(rng, 2_000, 20_000),
    worker: workerOf(rng),
  };
  return {
    name,
    policy: pick(rng, ...policyNames),
    arrivals: {
      kind: 'list',
      atMs: Array.from({ length: pick(rng, 1, 1, 3) }, () => Math.floor(rng.next() * 60_000)),
    },
    policyConfig: {
      dolly: {
        budgetShare: pick(rng, 0.05, 0.3, 1),
        utilizationCeiling: pick(rng, 0.5, 0.8, 1),
        admission: pick(rng, 'all-or-nothing', 'partial', 'first-come', 'preemption'),
        charge: pick(rng, 'all-copies', 'extra-copies'),
      },
    },
    stages: chance(rng, 0.5) ? [map, reduce] : [map],
  };
}

/** Environments that others leave, from a time on; where they change, they do so twice. */
function environments(rng: Rng): { fromMs: number; count: number }[] {
  const count = (): number => pick(rng, 1, 2, 3, 5, 10, 30, 100);
  const first = { fromMs: 0, count: count() };
  if (chance(rng, 0.5)) return [first];
  const drought = { fromMs: pick(rng, 20_000, 60_000), count: chance(rng, 0.2) ? 0 : count() };
  return [first, drought, { fromMs: 300_000, count: count() }];
}

function drawCluster(rng: Rng): ScenarioInput['cluster'] {
  return {
    nodes: [{ count: pick(rng, 4, 8, 20, 60, 200), elastic: true }],
    placement: 'warmest',
    startMs: 50,
    fargateStartMs: pick(rng, 3_000, 40_000),
    ...(chance(rng, 0.5)
      ? { cold: { startMs: { kind: 'uniform', min: 300, max: 1_500 }, environments: pick(rng, 10, 1_000) } }
      : {}),
    ...(chance(rng, 0.85) ? { queue: { environments: environments(rng), eventAgeMs: 900_000 } } : {}),
    ...(chance(rng, 0.25) ? { throttle: { launchesPerS: pick(rng, 2, 20), burst: pick(rng, 1, 10) } } : {}),
    ...(chance(rng, 0.5) ? { fargateStopMs: pick(rng, 0, 3_000) } : {}),
  };
}

/** A small scenario in which features meet: policies, sharing, Lambda's queue, Fargate, throttles, faults, reports that are lost. */
export function mixedScenario(seed: string): ScenarioInput {
  const rng = createRng(`mixed/${seed}`);
  const jobs = Array.from({ length: pick(rng, 1, 2, 3) }, (_, place) => drawJob(rng, `job${place}`));
  return {
    name: `mixed-${seed}`,
    cluster: drawCluster(rng),
    scheduler: {
      tickMs: pick(rng, 250, 1_000, 1_000, 5_000),
      claimLeaseMs: 900_000,
      cancel: pick(rng, 'cooperative', 'cooperative', 'immediate'),
      wakeOnEnd: chance(rng, 0.3),
      looks: chance(rng, 0.7),
      sharing: pick(rng, 'fair', 'fair', 'first-come'),
    },
    reports: {
      everyMs: pick(rng, 1_000, 10_000),
      tenths: chance(rng, 0.7),
      loss: pick(rng, 0, 0, 0, 0.1),
      delayMs: pick(rng, 0, 0, 300),
    },
    faults: chance(rng, 0.4)
      ? {
          attemptFailure: pick(rng, 0, 0.05),
          doubleLaunch: pick(rng, 0, 0.1),
          lostAttempt: pick(rng, 0, 0.03),
          untilMs: 1_800_000,
        }
      : {},
    jobs,
    maxEvents: 400_000,
  };
}

/** The same without any policy. */
export const withoutPolicies = (scenario: ScenarioInput): ScenarioInput => ({
  ...scenario,
  jobs: scenario.jobs.map((job) => ({ ...job, policy: 'none' })),
});

/** Whether environments become fewer in it: what was launched before waits then, and part of it in vain. */
export const isRobbed = ({ cluster: { queue } }: ScenarioInput): boolean =>
  (queue?.environments ?? []).some(({ count }, place, all) => count < (all[place - 1]?.count ?? 0));

/** The most by which luck may tell two runs apart: the longest attempt that can be drawn, and the pauses of the queue. */
export const luckMs = ({ jobs }: ScenarioInput): number =>
  330_000 +
  Math.max(
    ...jobs.flatMap(({ stages }) =>
      stages.map(({ slowdown, attemptsMs, workMs }) =>
        (slowdown ?? attemptsMs) === undefined || typeof workMs !== 'number' ? 0 : 20 * workMs,
      ),
    ),
  );

const isCopy = (reason: JobOutcome['attempts'][number]['reason']): boolean =>
  reason === 'backup' || reason === 'clone';

/** Attempts that a job may have launched: one a task, one for each that came to nothing, and its copies. */
export function explainedLaunches({ tasks, attempts, launches }: JobOutcome): number {
  const counted = attempts.filter(
    ({ reason, ending, claimedAtMs }) =>
      claimedAtMs !== undefined &&
      (isCopy(reason) || ending === 'failed' || ending === 'died' || ending === 'cancelled'),
  );
  return tasks + new Set(counted.map(({ attemptId }) => attemptId)).size + launches.unclaimed;
}
