import type { Worker } from '../contracts/job-spec.ts';
import { longestInvocationMs } from '../core/model/time-limit.ts';
import type { Distribution } from './distribution.ts';
import type { ScenarioInput } from './scenario.ts';

/**
 * The hosts that jobs of a trace run on. `lambda`: the environments of a function, as production has them. `fargate`: a task
 * of a cluster for each worker. `hadoop`: the clusters of the papers, fixed nodes of equal speed, of which the scheduler
 * knows at once what happens, and whose kills act at once. `local`: the embedded stack of `outrider run`, with a core for
 * each slot.
 */
export const hostProfileNames = ['lambda', 'fargate', 'hadoop', 'local'] as const;
export type HostProfileName = (typeof hostProfileNames)[number];

/** The part of a scenario that its host decides. */
export interface Host extends Required<Pick<ScenarioInput, 'cluster' | 'scheduler' | 'reports'>> {
  /** What it takes an attempt to write its output, once it has worked. */
  readonly wrapUpMs: Distribution;
  readonly worker: Worker;
}

const onLambda: Worker = { kind: 'lambda', size: 'medium' };

/** What it takes to write an object of an attempt to S3: about 70 ms. */
const writesToS3: Distribution = { kind: 'lognormal', median: 70, sigma: 0.5 };

/** Finer ticks than a twentieth of a task decide nothing more where the scheduler is told at once, and cost as much. */
const hadoopTickMs = (typicalMs: number): number =>
  Math.round(Math.min(10_000, Math.max(1_000, typicalMs / 20)));

/**
 * Tasks on Fargate, wherever they run: RunTask starts 20 of them a second for long, and 100 at once; `StopTask` ends a worker
 * that was given up.
 *
 * Source: AWS's limits; that a task starts within a minute, and stops within seconds of its SIGTERM, is assumed, since
 * nothing was measured on AWS.
 */
const tasksOfFargate = {
  fargateStartMs: { kind: 'uniform', min: 30_000, max: 60_000 },
  fargateStopMs: { kind: 'uniform', min: 500, max: 3_000 },
} as const;
const runTaskPace = { launchesPerS: 20, burst: 100 };
const fargateLeaseMs = 600_000;
/**
 * Nodes for each slot. A Fargate task whose attempt was withdrawn while it starts has given its slot back, but sits on its node until
 * it has started and stopped: with one node a slot a launch in that slot would be refused.
 */
const placesPerSlot = 2;

/**
 * As production is deployed: an attempt takes an environment, which nobody chooses; a launch is an event in Lambda's
 * queue, and waits there unseen while all environments are busy; environments come at Lambda's pace, begin cold and stay
 * warm for five minutes; nobody stops an invocation, which reads its orders when it is time to; workers report as
 * production's do, and the scheduler looks for ends between its ticks. An invocation is ended after 15 minutes, and Fargate is
 * beside it: tasks go there that take longer, as in production, and each takes one of the slots that all share.
 *
 * Source: AWS's limits. What a start and a write to S3 take is assumed, since nothing was measured on AWS: 30 to 80 ms
 * where an environment is warm, 0.3 to 1.5 s where it is not, and about 70 ms for the object that an attempt writes.
 */
const lambda = (slots: number): Host => ({
  cluster: {
    nodes: [{ count: placesPerSlot * slots, elastic: true }],
    placement: 'warmest',
    choosesNodes: false,
    startMs: { kind: 'uniform', min: 30, max: 80 },
    cold: { startMs: { kind: 'uniform', min: 300, max: 1_500 } },
    queue: { eventAgeMs: 900_000, environments: [{ fromMs: 0, count: slots }] },
    throttle: { launchesPerS: 1_000, burst: 1_000 },
    lambdaMs: longestInvocationMs,
    ...tasksOfFargate,
    fargateThrottle: runTaskPace,
  },
  scheduler: {
    totalSlots: slots,
    tickMs: 1_000,
    cancel: 'cooperative',
    claimLeaseMs: 900_000,
    fargateClaimLeaseMs: fargateLeaseMs,
  },
  reports: { everyMs: 10_000, cadence: 'worker' },
  wrapUpMs: writesToS3,
  worker: onLambda,
});

/**
 * As production runs stages on Fargate: a worker is a task that starts for it, in any of three zones, and ends with it.
 * All else as on Lambda, but for its queue, its warm environments and its limit of time.
 */
const fargate = (slots: number): Host => ({
  cluster: {
    nodes: [{ count: placesPerSlot * slots, elastic: true }],
    choosesNodes: false,
    zones: [{ name: 'zone-a' }, { name: 'zone-b' }, { name: 'zone-c' }],
    ...tasksOfFargate,
    throttle: runTaskPace,
  },
  scheduler: { totalSlots: slots, tickMs: 1_000, cancel: 'cooperative', claimLeaseMs: fargateLeaseMs },
  reports: { everyMs: 10_000, cadence: 'worker' },
  wrapUpMs: writesToS3,
  worker: { kind: 'fargate', size: 'medium' },
});

const hadoop = (slots: number, typicalMs: number): Host => ({
  cluster: { nodes: [{ count: slots }] },
  scheduler: { tickMs: hadoopTickMs(typicalMs), wakeOnEnd: true, cancel: 'immediate' },
  reports: { everyMs: 10_000, tenths: true },
  wrapUpMs: 0,
  worker: onLambda,
});

/** Environments of the embedded stack for each slot: it starts more where those that are warm are all taken. */
const environmentsPerSlot = 2;

/**
 * As `outrider run` has it on one machine: workers that it has warmed, whose slots share so many cores; launches that
 * wait in its queue of events; ticks, reports and leases of its own (`src/local/stack.ts`), and no cold starts.
 *
 * What a launch takes to begin and an output to be written was seen in jobs of small tasks, on a machine of two cores.
 */
export const localHost = (slots: number, cores: number): Host => ({
  cluster: {
    nodes: [{ count: environmentsPerSlot * slots, elastic: true }],
    placement: 'warmest',
    choosesNodes: false,
    cores,
    startMs: { kind: 'uniform', min: 30, max: 150 },
    queue: { eventAgeMs: 15_000 },
  },
  scheduler: { totalSlots: slots, tickMs: 500, cancel: 'cooperative', claimLeaseMs: 15_000 },
  reports: { everyMs: 2_000, cadence: 'worker' },
  wrapUpMs: writesToS3,
  worker: onLambda,
});

/** A host with so many slots; `typicalMs`: what an ordinary task takes. */
export function hostOf(name: HostProfileName, slots: number, typicalMs: number): Host {
  switch (name) {
    case 'lambda':
      return lambda(slots);
    case 'fargate':
      return fargate(slots);
    case 'hadoop':
      return hadoop(slots, typicalMs);
    case 'local':
      return localHost(slots, slots);
  }
}
