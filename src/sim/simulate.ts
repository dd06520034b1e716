import { MemoryAttemptStore } from '../adapters/memory/memory-attempt-store.ts';
import { MemoryCapacityLedger } from '../adapters/memory/memory-capacity-ledger.ts';
import { MemoryDecisionLog } from '../adapters/memory/memory-decision-log.ts';
import { MemoryJobStore } from '../adapters/memory/memory-job-store.ts';
import { MemoryLeaseStore } from '../adapters/memory/memory-lease-store.ts';
import { MemoryObjectStore } from '../adapters/memory/memory-object-store.ts';
import type { SchedulerDeps } from '../app/run-scheduler.ts';
import { invariant } from '../contracts/errors.ts';
import { attemptParts, type JobId } from '../contracts/ids.ts';
import { durationMs } from '../contracts/units.ts';
import { openStage } from '../core/model/job-state.ts';
import { createRng } from '../lib/rng.ts';
import type { Log } from '../ports/log.ts';
import { Cluster } from './cluster.ts';
import { EventQueue } from './event-queue.ts';
import { JobScheduler } from './job-scheduler.ts';
import { ObservedStore } from './observed-store.ts';
import { type AttemptOutcome, type SimulationResult } from './outcome.ts';
import { outcomeOf } from './job-outcome.ts';
import type { Scenario } from './scenario.ts';
import { buildJobs, type SimJob } from './sim-job.ts';
import { SimLauncher } from './sim-launcher.ts';
import type { Ending, SimWorker } from './sim-worker.ts';
import { VirtualClock } from './virtual-clock.ts';

export interface SimulateOptions {
  /** Same scenario and seed: the same result, byte for byte. */
  readonly seed: string;
  /** Keep a line for every event. */
  readonly trace?: boolean;
}

const silent: Log = { info: () => undefined, warn: () => undefined };
/** Job records are written once, at the end. */
const neverMs = durationMs(Number.MAX_SAFE_INTEGER);

interface World {
  readonly scenario: Scenario;
  readonly queue: EventQueue;
  readonly clock: VirtualClock;
  readonly cluster: Cluster;
  readonly scheduler: JobScheduler;
  readonly store: ObservedStore;
  readonly ledger: MemoryCapacityLedger;
  readonly attempts: ReadonlyMap<JobId, AttemptOutcome[]>;
  readonly trace: string[];
}

function attemptOutcome({ assignment, node, takenAt, claimedAt }: SimWorker, ending: Ending, leftAtMs: number): AttemptOutcome {
  const { attempt: number } = attemptParts(assignment.attemptId);
  return {
    attemptId: assignment.attemptId, stage: assignment.stage.index, task: assignment.task.index, number, reason: undefined,
    node: node.name, zone: node.zone, takenAtMs: takenAt, claimedAtMs: claimedAt, leftAtMs, ending,
  };
}

/** The settings by which production's scheduler runs in the scenario. */
function schedulerDeps(
  scenario: Scenario, jobs: ReadonlyMap<JobId, SimJob>, parts: Pick<World, 'cluster' | 'clock' | 'ledger' | 'store'>,
): SchedulerDeps {
  const { scheduler, reports } = scenario;
  const { cluster, clock } = parts;
  const killFreesSlot = scheduler.cancel === 'immediate';
  return {
    jobs: new MemoryJobStore(), leases: new MemoryLeaseStore(), decisions: new MemoryDecisionLog(), objects: new MemoryObjectStore(),
    ledger: parts.ledger, attempts: parts.store, clock, log: silent, dataBucket: 'simulated',
    launcher: new SimLauncher(scenario, () => clock.now(), (request) => cluster.deliver(request)),
    config: {
      tickMs: durationMs(scheduler.tickMs), heartbeatMs: durationMs(reports.everyMs), leaseMs: durationMs(scheduler.leaseMs),
      claimLeaseMs: durationMs(scheduler.claimLeaseMs), totalSlots: cluster.pool.totalSlots,
      clockSkewMs: durationMs(0), summaryEveryMs: neverMs,
    },
    // Data has sizes here and no bytes: nothing is listed for the tasks of a stage.
    prepareStage: (state, _plan, stage, now) => {
      openStage(state, stage, [], now);
      return { inputs: [], manifests: [] };
    },
    tuneTick: (config, jobId) => {
      const job = jobs.get(jobId);
      if (job === undefined) return { ...config, killFreesSlot };
      return { ...config, killFreesSlot, policy: job.scenario.policy, policyConfig: job.scenario.policyConfig };
    },
    freeNodes: (jobId) =>
      (cluster.pool.isFixed && jobs.get(jobId)?.scenario.policy !== 'none' ? cluster.pool.freeNodeNames() : undefined),
  };
}

function buildWorld(scenario: Scenario, { seed, trace: isTraced = false }: SimulateOptions): World {
  const rng = createRng(`${scenario.name}/${seed}`);
  const queue = new EventQueue();
  const clock = new VirtualClock(queue);
  const ledger = new MemoryCapacityLedger();
  const jobs = buildJobs(scenario, seed, rng.fork('jobs'));
  const byId = new Map(jobs.map((job) => [job.id, job]));
  const attempts = new Map(jobs.map(({ id }) => [id, [] as AttemptOutcome[]]));
  const trace: string[] = [];
  const store = new ObservedStore(new MemoryAttemptStore(), {
    onStopOrdered: async (jobId, attemptId) => {
      if (scenario.scheduler.cancel === 'immediate') await cluster.kill(jobId, attemptId);
    },
    onCommitted: (jobId, result) => { cluster.keepOutput(jobId, result); },
  });
  const cluster = new Cluster({
    scenario, queue, now: () => clock.now(), store, jobs: byId, rng: rng.fork('cluster'),
    onLeave: (worker, ending) => {
      const { id } = worker.assignment.job;
      attempts.get(id)?.push(attemptOutcome(worker, ending, clock.now()));
      if (isTraced) trace.push(`${clock.now()} ${ending} ${id} ${worker.assignment.attemptId} ${worker.node.name}`);
      scheduler.wake(id);
    },
  });
  const deps = schedulerDeps(scenario, byId, { cluster, clock, ledger, store });
  const note = (kind: string, subject: string): void => {
    if (isTraced) trace.push(`${clock.now()} ${kind} ${subject}`);
  };
  const scheduler: JobScheduler = new JobScheduler({ scenario, deps, queue, jobs, note });
  return { scenario, queue, clock, cluster, scheduler, store, ledger, attempts, trace };
}

/** Every job has ended, nothing runs, nothing is held, and the store is as the run has seen it. */
async function checkLiveness({ scheduler, cluster, ledger, store }: World): Promise<void> {
  for (const { job, state } of scheduler.runs) {
    invariant(state === 'succeeded' || state === 'failed', 'a job did not end', { jobId: job.id, state });
    await store.audit({ jobId: job.id, shards: 1 });
  }
  const { usedSlots } = await ledger.view();
  invariant(usedSlots === 0, 'slots were not given back', { usedSlots });
  invariant(cluster.activeWorkers === 0, 'attempts still run', { running: cluster.activeWorkers });
}

/**
 * Runs a scenario to the end of its last job. Production's own ticks decide; only time, stores and machines are
 * simulated. Throws `BrokenInvariantError`, naming the seed, where a job does not end or a rule is broken.
 */
export async function simulate(scenario: Scenario, options: SimulateOptions): Promise<SimulationResult> {
  const world = buildWorld(scenario, options);
  const { queue, clock, scheduler, cluster, trace } = world;
  const { seed } = options;
  let events = 0;
  while (!scheduler.isDone || cluster.activeWorkers > 0) {
    invariant(events < scenario.maxEvents, 'the run did not settle', { seed, events, at: clock.now() });
    const event = queue.pop();
    invariant(event !== undefined, 'nothing is left to happen, but jobs have not ended', { seed, at: clock.now() });
    events += 1;
    clock.advanceTo(event.at);
    if (options.trace === true) trace.push(`${event.at} ${event.kind} ${event.subject}`);
    const settled = event.run();
    if (settled !== undefined) await settled;
  }
  await checkLiveness(world);
  return {
    scenario: scenario.name, seed, totalSlots: cluster.pool.totalSlots, events, endedAtMs: clock.now(), trace,
    jobs: scheduler.runs.map((run) => outcomeOf(run, world.attempts.get(run.job.id) ?? [])),
  };
}
