import { MemoryAssignmentStatistics } from '../adapters/memory/memory-assignment-statistics.ts';
import { MemoryAttemptStore } from '../adapters/memory/memory-attempt-store.ts';
import { MemoryCapacityStore } from '../adapters/memory/memory-capacity-store.ts';
import { type CapacityLedger, RuledCapacityLedger } from '../app/capacity-ledger.ts';
import { MemoryDecisionLog } from '../adapters/memory/memory-decision-log.ts';
import { MemoryForecastStore } from '../adapters/memory/memory-forecast-store.ts';
import { MemoryJobStore } from '../adapters/memory/memory-job-store.ts';
import { MemoryLeaseStore } from '../adapters/memory/memory-lease-store.ts';
import { MemoryBookStore } from '../adapters/memory/memory-book-store.ts';
import { MemoryStragglerStatistics } from '../adapters/memory/memory-straggler-statistics.ts';
import { NodeBookKeeper } from '../app/node-book-keeper.ts';
import { ZoneBookKeeper } from '../app/zone-book-keeper.ts';
import type { SchedulerDeps } from '../app/scheduler-deps.ts';
import { SharedLosses } from '../app/shared-losses.ts';
import { SharedRoom } from '../app/shared-room.ts';
import { BrokenInvariantError, invariant } from '../contracts/errors.ts';
import type { StoredForecast } from '../contracts/forecast.ts';
import { attemptParts, type JobId } from '../contracts/ids.ts';
import type { StorageTier } from '../contracts/storage-tiers.ts';
import { durationMs, type EpochMs } from '../contracts/units.ts';
import { mostWorkMs } from '../core/model/time-limit.ts';
import type { LossCounts } from '../core/policy/mantri/loss-rate.ts';
import type { PolicySet } from '../core/policy/policy-set.ts';
import { createRng } from '../lib/rng.ts';
import type { ForecastStore } from '../ports/forecast-store.ts';
import type { Log } from '../ports/log.ts';
import { Cluster } from './cluster.ts';
import { EventQueue } from './event-queue.ts';
import { FirstComeLedger } from './first-come-ledger.ts';
import { type JobRun, JobScheduler } from './job-scheduler.ts';
import { ObservedStore, type StoreWatcher } from './observed-store.ts';
import type { AttemptOutcome, JobOutcome, SimulationResult } from './outcome.ts';
import { outcomeOf } from './job-outcome.ts';
import type { Scenario } from './scenario.ts';
import { perfectDetector } from './perfect-detector.ts';
import { buildJobs, type SimJob } from './sim-job.ts';
import { SimLauncher } from './sim-launcher.ts';
import { SimObjects } from './sim-objects.ts';
import type { Ending, SimWorker } from './sim-worker.ts';
import { VirtualClock } from './virtual-clock.ts';

export interface SimulateOptions {
  /** Same scenario and seed: the same result, byte for byte. */
  readonly seed: string;
  /** Keep a line for every event. */
  readonly trace?: boolean;
  /** What was learned of jobs by their names before; absent: nothing. */
  readonly forecasts?: readonly StoredForecast[];
  /** What was seen of outputs at each machine before; absent: nothing. */
  readonly seenLosses?: ReadonlyMap<string, LossCounts>;
  /** Draw the places of attempts anew by this name, and nothing else: what another placement alone makes of a run. */
  readonly places?: string;
  /** Have a perfect detector of stragglers decide in place of the jobs' policies. */
  readonly perfect?: boolean;
}

const silent: Log = { info: () => undefined, warn: () => undefined };
/** Job records are written once, at the end. */
const neverMs = durationMs(Number.MAX_SAFE_INTEGER);

interface World {
  readonly scenario: Scenario;
  readonly queue: EventQueue;
  readonly clock: VirtualClock;
  readonly cluster: Cluster;
  readonly launcher: SimLauncher;
  readonly scheduler: JobScheduler;
  readonly store: ObservedStore;
  readonly ledger: CapacityLedger;
  readonly losses: SharedLosses;
  readonly attempts: Map<JobId, AttemptOutcome[]>;
  /** Jobs that have ended and whose attempts have all left, to be summed up. */
  readonly settled: JobRun[];
  readonly forget: (jobId: JobId) => void;
  readonly trace: string[];
}

function attemptOutcome(
  { assignment, node, takenAt, claimedAt }: SimWorker,
  ending: Ending,
  leftAtMs: number,
): AttemptOutcome {
  const { attempt: number } = attemptParts(assignment.attemptId);
  return {
    attemptId: assignment.attemptId,
    stage: assignment.stage.index,
    task: assignment.task.index,
    number,
    reason: undefined,
    node: node.name,
    zone: node.zone,
    takenAtMs: takenAt,
    claimedAtMs: claimedAt,
    leftAtMs,
    ending,
  };
}

/** Where outputs lie, by what they are lost with; where nothing loses any, in S3 Standard. */
function storageOf({ cluster: { nodes, zones } }: Scenario): StorageTier {
  if (nodes.some(({ losses }) => losses !== undefined)) return 'worker-local';
  return zones.some(({ losses }) => losses !== undefined) ? 'zonal' : 'standard';
}

/** Slots that the jobs share. */
const slotsOf = ({ scenario, pool }: Cluster): number =>
  Math.min(pool.totalSlots, scenario.scheduler.totalSlots ?? Infinity);

/** What the scheduler is told of the workers, as production's is by its deployment. */
function workerTerms({
  cluster: { fargateStartMs, lambdaMs },
  scheduler: { fargateClaimLeaseMs },
}: Scenario): Pick<SchedulerDeps['config'], 'hasFargate' | 'lambdaMs' | 'fargateClaimLeaseMs'> {
  if (fargateStartMs === undefined) return {};
  return {
    hasFargate: true,
    ...(lambdaMs === undefined ? {} : { lambdaMs: mostWorkMs(lambdaMs) }),
    ...(fargateClaimLeaseMs === undefined ? {} : { fargateClaimLeaseMs: durationMs(fargateClaimLeaseMs) }),
  };
}

/** The settings by which production's scheduler runs in the scenario. */
function schedulerDeps(
  { scheduler, reports }: Scenario,
  parts: Pick<World, 'cluster' | 'clock' | 'ledger' | 'losses' | 'store' | 'launcher'> & {
    readonly decisions: MemoryDecisionLog;
    /** What decides in place of jobs' own policies; undefined: they do. */
    readonly policyOf: SchedulerDeps['policyOf'] | undefined;
    readonly forecasts: ForecastStore | undefined;
    readonly jobs: ReadonlyMap<JobId, SimJob>;
  },
): SchedulerDeps {
  const { cluster, clock } = parts;
  return {
    jobs: new MemoryJobStore(),
    leases: new MemoryLeaseStore(),
    decisions: parts.decisions,
    objects: new SimObjects(parts.jobs, (output, number) => {
      cluster.copyOutput(output, number);
    }),
    ledger: parts.ledger,
    stragglers: new MemoryStragglerStatistics(),
    assignments: new MemoryAssignmentStatistics(),
    nodes: new NodeBookKeeper(new MemoryBookStore([]), silent),
    zones: new ZoneBookKeeper(new MemoryBookStore([]), silent),
    attempts: parts.store,
    clock,
    log: silent,
    ...(parts.forecasts === undefined ? {} : { forecasts: parts.forecasts }),
    dataBucket: 'simulated',
    room: new SharedRoom(),
    losses: parts.losses,
    launcher: parts.launcher,
    ...(parts.policyOf === undefined ? {} : { policyOf: parts.policyOf }),
    config: {
      tickMs: durationMs(scheduler.tickMs),
      heartbeatMs: durationMs(reports.everyMs),
      leaseMs: durationMs(scheduler.leaseMs),
      claimLeaseMs: durationMs(scheduler.claimLeaseMs),
      ...workerTerms(cluster.scenario),
      totalSlots: slotsOf(cluster),
      storage: storageOf(cluster.scenario),
      summaryEveryMs: neverMs,
    },
  };
}

/** What the machines learn of the store's writes: orders that act at once, and where outputs lie. */
const watcherOf = ({ scheduler }: Scenario, cluster: () => Cluster): StoreWatcher => ({
  onStopOrdered: async (jobId, attemptId) => {
    if (scheduler.cancel === 'immediate') await cluster().kill(jobId, attemptId);
    else cluster().order(jobId, attemptId);
  },
  onCommitted: (jobId, result) => {
    cluster().keepOutput(jobId, result);
  },
  onKept: (jobId, result) => {
    cluster().keepReplica(jobId, result);
  },
});

const storeOf = (scenario: Scenario, records: MemoryAttemptStore, cluster: () => Cluster): ObservedStore =>
  new ObservedStore(records, watcherOf(scenario, cluster));

const nowOf = (clock: VirtualClock) => (): EpochMs => clock.now();

/** Slots are shared as in production, or as the scenario has it. */
const ledgerOf = ({ scheduler }: Scenario, capacity: MemoryCapacityStore): RuledCapacityLedger =>
  new (scheduler.sharing === 'first-come' ? FirstComeLedger : RuledCapacityLedger)(capacity, {
    spacingPerJobMs: 0,
  });

const launcherOf = (scenario: Scenario, now: () => EpochMs, cluster: Cluster): SimLauncher =>
  new SimLauncher(scenario, now, {
    deliver: (request) => cluster.deliver(request),
    stopTask: (node) => {
      cluster.stopTask(node);
    },
    nodes: () => ({
      killsAtOnce: scenario.scheduler.cancel === 'immediate',
      free: cluster.pool.isFixed ? cluster.pool.freeSlotsByNode : undefined,
    }),
  });

const detectorIn =
  (cluster: Cluster, jobs: ReadonlyMap<JobId, SimJob>) =>
  ({ jobId }: { readonly jobId: JobId }): PolicySet => {
    const job = jobs.get(jobId);
    invariant(job !== undefined, 'a plan of no job', { jobId });
    return perfectDetector(job, {
      left: (attemptId) => cluster.leftOf(jobId, attemptId),
      startMs: (kind) => cluster.usualStartMs(kind),
      terms: workerTerms(cluster.scenario),
    });
  };

const forecastsOf = ({ forecasts }: SimulateOptions): ForecastStore | undefined =>
  forecasts === undefined ? undefined : new MemoryForecastStore(forecasts);

function buildWorld(scenario: Scenario, options: SimulateOptions): World {
  const { seed, trace: isTraced = false, perfect = false } = options;
  const rng = createRng(`${scenario.name}/${seed}`);
  const queue = new EventQueue();
  const clock = new VirtualClock(queue);
  const capacity = new MemoryCapacityStore();
  const ledger = ledgerOf(scenario, capacity);
  const jobs = buildJobs(scenario, seed, rng.fork('jobs'));
  const byId = new Map(jobs.map((job) => [job.id, job]));
  const attempts = new Map(jobs.map(({ id }) => [id, [] as AttemptOutcome[]]));
  const [decisions, records] = [new MemoryDecisionLog(), new MemoryAttemptStore()];
  const [trace, settled]: [string[], JobRun[]] = [[], []];
  const settle = (run: JobRun): void => {
    // Events of a job that was summed up may come out of Lambda's queue long after: they are refused their claims.
    const isEnded = run.session !== undefined && (run.state === 'succeeded' || run.state === 'failed');
    if (isEnded && cluster.activeOf(run.job.id) === 0) settled.push(run);
  };
  const store = storeOf(scenario, records, () => cluster);
  const cluster: Cluster = new Cluster({
    scenario,
    queue,
    now: nowOf(clock),
    store,
    jobs: byId,
    ...{ rng: rng.fork('cluster'), places: options.places },
    onLeave: (worker, ending) => {
      const { id } = worker.assignment.job;
      attempts.get(id)?.push(attemptOutcome(worker, ending, clock.now()));
      note(ending, `${id} ${worker.assignment.attemptId} ${worker.node.name}`);
      scheduler.wake(id);
      settle(scheduler.runOf(id));
    },
  });
  const launcher = launcherOf(scenario, nowOf(clock), cluster);
  const policyOf = perfect ? detectorIn(cluster, byId) : undefined;
  const losses = new SharedLosses(options.seenLosses);
  const parts = { cluster, clock, ledger, losses, launcher, store, decisions, policyOf, jobs: byId };
  const note = (kind: string, subject: string): void => {
    if (isTraced) trace.push(`${clock.now()} ${kind} ${subject}`);
  };
  const scheduler: JobScheduler = new JobScheduler({
    scenario,
    deps: schedulerDeps(scenario, { ...parts, forecasts: forecastsOf(options) }),
    capacity,
    queue,
    jobs,
    note,
    ...(perfect && { launchOrder: 'largest-first' }),
    activeOf: (jobId) => cluster.activeOf(jobId),
    onEnd: settle,
  });
  return {
    ...{ scenario, queue, clock, cluster, launcher, scheduler, store, ledger, losses },
    ...{ attempts, settled, trace },
    forget: (jobId) => {
      for (const kept of [records, decisions, cluster]) kept.forget(jobId);
      attempts.delete(jobId);
    },
  };
}

/** Sums up jobs that are over, compares the store with what the run has seen of them, and lets them go. */
async function takeOutcomes(
  { settled, scheduler, launcher, store, attempts, forget }: World,
  outcomes: (JobOutcome | undefined)[],
): Promise<void> {
  for (const run of settled.splice(0)) {
    const { id, index } = run.job;
    await scheduler.release(run);
    await store.audit({ jobId: id, shards: 1 });
    outcomes[index] = outcomeOf(run, attempts.get(id) ?? [], launcher.invocationsOf(id));
    run.session = undefined;
    forget(id);
  }
}

/** Nothing runs and nothing is held. */
async function checkLiveness({ cluster, ledger }: World): Promise<void> {
  const { usedSlots, cloneSlots } = await ledger.view();
  invariant(cloneSlots === 0, 'slots of clones were not given back', { cloneSlots });
  invariant(usedSlots === 0, 'slots were not given back', { usedSlots });
  invariant(cluster.activeWorkers === 0, 'attempts still run', { running: cluster.activeWorkers });
}

/**
 * Runs a scenario to the end of its last job. Production's own ticks decide; only time, stores and machines are
 * simulated. Throws `BrokenInvariantError`, naming the seed, where a job does not end or a rule is broken.
 */
export async function simulate(scenario: Scenario, options: SimulateOptions): Promise<SimulationResult> {
  try {
    return await runToEnd(scenario, options);
  } catch (cause) {
    if (!(cause instanceof BrokenInvariantError)) throw cause;
    const details = { ...cause.details, scenario: scenario.name, seed: options.seed };
    throw new BrokenInvariantError(
      `${cause.message} (scenario ${scenario.name}, seed ${options.seed})`,
      details,
      { cause },
    );
  }
}

async function runToEnd(scenario: Scenario, options: SimulateOptions): Promise<SimulationResult> {
  const world = buildWorld(scenario, options);
  const { queue, clock, scheduler, cluster, trace } = world;
  const { seed } = options;
  const outcomes: (JobOutcome | undefined)[] = scheduler.runs.map(() => undefined);
  let events = 0;
  while (!scheduler.isDone || cluster.activeWorkers > 0) {
    invariant(events < scenario.maxEvents, 'the run did not settle', { seed, events, at: clock.now() });
    const event = queue.pop();
    invariant(event !== undefined, 'nothing is left to happen, but jobs have not ended', {
      seed,
      at: clock.now(),
    });
    events += 1;
    clock.advanceTo(event.at);
    if (options.trace === true) trace.push(`${event.at} ${event.kind} ${event.subject}`);
    const settled = event.run();
    if (settled !== undefined) await settled;
    if (world.settled.length > 0) await takeOutcomes(world, outcomes);
  }
  await checkLiveness(world);
  return {
    scenario: scenario.name,
    seed,
    totalSlots: slotsOf(cluster),
    events,
    coldStarts: cluster.coldlyStarted,
    endedAtMs: clock.now(),
    seenLosses: world.losses.with(new Map()),
    trace,
    jobs: outcomes.map((outcome, index) => {
      invariant(outcome !== undefined, 'a job did not end', { seed, index });
      return outcome;
    }),
  };
}
