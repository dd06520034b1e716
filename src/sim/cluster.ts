import { invariant } from '../contracts/errors.ts';
import { type AttemptId, attemptParts, isCopy, type JobId } from '../contracts/ids.ts';
import type { Worker } from '../contracts/job-spec.ts';
import type { TaskResult } from '../contracts/records.ts';
import { type EpochMs, epochMs } from '../contracts/units.ts';
import type { Rng } from '../lib/rng.ts';
import type { AttemptStore } from '../ports/attempt-store.ts';
import type { LaunchRequest } from '../ports/launcher.ts';
import { type Distribution, meanOf, sampleMs } from './distribution.ts';
import type { EventQueue } from './event-queue.ts';
import { linksOf, perMs } from './endpoint-links.ts';
import { FluidNetwork } from './fluid-network.ts';
import { LambdaQueue, type LambdaQueueCounts } from './lambda-queue.ts';
import { NodePool, type SimNode, type TakenSlot, type WantedSlot } from './node-pool.ts';
import { planTroubles } from './node-troubles.ts';
import { Pacer } from './pacer.ts';
import type { Scenario } from './scenario.ts';
import { loseCopy, OutputLosses } from './output-losses.ts';
import type { LyingOutput } from './sim-objects.ts';
import {
  drawAttempt,
  listsRead,
  type OutputCopy,
  outputCopy,
  type SimJob,
  type SimStage,
  taskOfJob,
} from './sim-job.ts';
import {
  type Assignment,
  type Ending,
  type LeftOfAttempt,
  SimWorker,
  type WorkerHost,
} from './sim-worker.ts';

export interface ClusterParts {
  readonly scenario: Scenario;
  readonly queue: EventQueue;
  readonly now: () => EpochMs;
  readonly store: AttemptStore;
  readonly jobs: ReadonlyMap<JobId, SimJob>;
  readonly rng: Rng;
  /** Names another draw of attempts' places; absent: the first. */
  readonly places?: string | undefined;
  /** An attempt has left its slot. */
  readonly onLeave: (worker: SimWorker, ending: Ending) => void;
}

/** The machines: takes attempts in, runs them on nodes at their speeds, and lets things go wrong. */
export class Cluster implements WorkerHost {
  readonly scenario: Scenario;
  readonly queue: EventQueue;
  readonly now: () => EpochMs;
  readonly store: AttemptStore;
  readonly network: FluidNetwork;
  readonly pool: NodePool;
  private readonly parts: ClusterParts;
  private readonly rng: Rng;
  private readonly losses: OutputLosses;
  private readonly coldStarts: Pacer | undefined;
  private readonly events: LambdaQueue<LaunchRequest> | undefined;
  private readonly workers = new Map<string, SimWorker[]>();
  /** What each worker was given, and whether it had done others of its launch before. */
  private readonly startedWith = new Map<
    SimWorker,
    { readonly request: LaunchRequest; readonly isRider: boolean }
  >();
  private readonly usualStarts = new Map<Distribution, number>();
  private readonly runningByJob = new Map<JobId, number>();
  /** How often each attempt of a job has been started, or its launch been lost. */
  private readonly deliveries = new Map<JobId, Map<AttemptId, number>>();
  /** Environments that had to be started for a delivery. */
  coldlyStarted = 0;
  private running = 0;
  private runningOnFargate = 0;

  constructor(parts: ClusterParts) {
    this.parts = parts;
    this.scenario = parts.scenario;
    this.queue = parts.queue;
    this.now = parts.now;
    this.store = parts.store;
    this.rng = parts.rng.fork('launches');
    const { cluster } = parts.scenario;
    this.pool = new NodePool(cluster, parts.rng);
    const links = linksOf(cluster, this.pool);
    this.network = new FluidNetwork(parts.queue, parts.now, links, perMs(cluster.flowBytesPerS));
    if (cluster.cold !== undefined) {
      const { environments, perMs: windowMs } = cluster.cold;
      this.coldStarts = new Pacer({ events: environments, perMs: windowMs, burst: environments });
    }
    if (cluster.queue !== undefined) {
      this.events = new LambdaQueue(cluster.queue, {
        queue: parts.queue,
        now: parts.now,
        luckOf: ({ payload: { jobId, attemptId } }) => this.luckOf(jobId, attemptId).fork('pauses'),
        begin: (request) => this.hasEnvironment() && this.deliverNow(request) === 'delivered',
      });
    }
    const goOn = (): boolean => this.faultsGoOn();
    this.losses = new OutputLosses({ ...parts, pool: this.pool, goOn });
    const troubles = {
      pool: this.pool,
      queue: parts.queue,
      now: parts.now,
      goOn,
      crashes: parts.scenario.faults.crashes,
    };
    for (const node of this.pool.nodes) planTroubles(node, troubles);
  }

  /** Attempts that occupy a slot, also those that the scheduler has given up. */
  get activeWorkers(): number {
    return this.running;
  }

  /** Attempts of a job that occupy a slot. */
  activeOf(jobId: JobId): number {
    return this.runningByJob.get(jobId) ?? 0;
  }

  /** What Lambda's queue has done, where the scenario has one. */
  get eventCounts(): LambdaQueueCounts | undefined {
    return this.events?.counts;
  }

  /** Starts an attempt on a free slot of a node that it may use, or has it wait for one in Lambda's queue. */
  deliver(request: LaunchRequest): 'delivered' | 'full' {
    const { faults } = this.scenario;
    const { jobId, attemptId } = request.payload;
    if (this.isStruck(this.luckOf(jobId, attemptId).fork('lost'), faults.lostLaunch)) {
      this.noteDelivery(jobId, attemptId);
      return 'delivered';
    }
    if (this.events === undefined || request.kind === 'fargate') return this.deliverNow(request);
    this.events.accept(request);
    return 'delivered';
  }

  /**
   * What befalls the next delivery of an attempt. Hangs on the attempt and on its own deliveries before, and on nothing that
   * others do: else a copy of one job would give all later ones other luck.
   */
  private luckOf(jobId: JobId, attemptId: AttemptId): Rng {
    const before = this.deliveries.get(jobId)?.get(attemptId) ?? 0;
    return this.rng.fork(`${jobId}/${attemptId}/${before}`);
  }

  private placeLuck(jobId: JobId, attemptId: AttemptId): Rng {
    return this.luckOf(jobId, attemptId).fork(this.parts.places ?? 'places');
  }

  private noteDelivery(jobId: JobId, attemptId: AttemptId): void {
    const ofJob = this.deliveries.get(jobId) ?? new Map<AttemptId, number>();
    ofJob.set(attemptId, (ofJob.get(attemptId) ?? 0) + 1);
    this.deliveries.set(jobId, ofJob);
  }

  /** Whether a fault of such a probability befalls something now. */
  private isStruck(luck: Rng, probability: number): boolean {
    return probability > 0 && this.faultsGoOn() && luck.next() < probability;
  }

  /** Whether others have left an environment. */
  private hasEnvironment(): boolean {
    const steps = this.scenario.cluster.queue?.environments ?? [];
    const most = steps.findLast(({ fromMs }) => fromMs <= this.now())?.count ?? Infinity;
    return this.running - this.runningOnFargate < most;
  }

  /** Whether Lambda would add an environment, but for how many it has added of late. */
  private isTooCold({ isCold }: TakenSlot): boolean {
    return isCold && this.events !== undefined && (this.coldStarts?.waitMs(this.now()) ?? 0) > 0;
  }

  private deliverNow(request: LaunchRequest): 'delivered' | 'full' {
    const { jobId, attemptId } = request.payload;
    const avoid = new Set(this.scenario.cluster.choosesNodes === false ? [] : request.avoidNodes);
    const wanted = { avoid, isFresh: this.isOwnTask(request.kind), luck: this.placeLuck(jobId, attemptId) };
    const slot = this.pool.take({ ...wanted, zone: request.zone }, this.now()) ?? this.takeAny(wanted);
    if (slot === undefined) return 'full';
    if (request.kind === 'lambda' && this.isTooCold(slot)) {
      this.pool.release(slot.node, -1);
      return 'full';
    }
    const { doubleLaunch } = this.scenario.faults;
    const isDoubled = this.isStruck(this.luckOf(jobId, attemptId).fork('doubled'), doubleLaunch);
    this.startWorker(request, slot);
    const other = { ...wanted, luck: this.placeLuck(jobId, attemptId) };
    const second = isDoubled ? this.pool.take(other, this.now()) : undefined;
    if (second !== undefined) this.startWorker(request, second);
    return 'delivered';
  }

  /**
   * A slot anywhere, where nothing runs and nodes are not known before they are used: as the arbiter has it of nodes that it
   * knows, a job must not wait for one that is idle until that is forgotten.
   */
  private takeAny({ luck }: WantedSlot): TakenSlot | undefined {
    return this.running > 0 || this.pool.isFixed ? undefined : this.pool.take({ luck }, this.now());
  }

  /** Whether a worker is a task on Fargate, which takes its node with it. */
  private isOwnTask(kind: Worker['kind']): boolean {
    return kind === 'fargate' && this.scenario.cluster.fargateStartMs !== undefined;
  }

  /** Stops a task on Fargate, as `StopTask` does: what it works on now ends soon, whether or not it reads its orders. */
  stopTask(node: string): void {
    const { fargateStopMs } = this.scenario.cluster;
    if (fargateStopMs === undefined) return;
    const isMeant = ({ assignment, node: { name } }: SimWorker): boolean =>
      assignment.kind === 'fargate' && name === node;
    for (const worker of [...this.startedWith.keys()].filter(isMeant)) {
      const { job, attemptId } = worker.assignment;
      const stopsIn = sampleMs(fargateStopMs, this.luckOf(job.id, attemptId).fork('stop'));
      this.queue.schedule(epochMs(this.now() + stopsIn), {
        kind: 'task-stopped',
        subject: node,
        run: () => worker.kill(),
      });
    }
  }

  /** Ends every delivery of an attempt at once. */
  async kill(jobId: JobId, attemptId: AttemptId): Promise<void> {
    for (const worker of [...(this.workers.get(keyOf(jobId, attemptId)) ?? [])]) await worker.kill();
  }

  /** An attempt was told to stop: its workers learn it when they read their orders next. */
  order(jobId: JobId, attemptId: AttemptId): void {
    for (const worker of this.workers.get(keyOf(jobId, attemptId)) ?? []) worker.reports.ordered();
  }

  /** How long an attempt will still run as it goes now; undefined while no worker has it. */
  leftOf(jobId: JobId, attemptId: AttemptId): LeftOfAttempt | undefined {
    const lefts = (this.workers.get(keyOf(jobId, attemptId)) ?? []).map((worker) => worker.left());
    return lefts.length < 2 ? lefts[0] : lefts.reduce((a, b) => (b.ms < a.ms ? b : a));
  }

  /** What a new attempt would take to start in the mean: on an environment that is warm, as long as one is free. */
  usualStartMs(kind: Worker['kind']): number {
    const { startMs, cold, fargateStartMs } = this.scenario.cluster;
    const onFargate = kind === 'fargate' ? fargateStartMs : undefined;
    // Where all environments are busy, the next that becomes free is warm.
    const isWarm = onFargate !== undefined || !this.hasEnvironment() || this.pool.hasWarm(this.now());
    const length = onFargate ?? (isWarm || cold === undefined ? startMs : cold.startMs);
    const ms = this.usualStarts.get(length) ?? meanOf(length);
    this.usualStarts.set(length, ms);
    return ms;
  }

  /** Notes where a committed output lies. One that is to be gone when it is first read is gone at once. */
  keepOutput(jobId: JobId, { attemptId }: TaskResult): void {
    const { stage, task, copy } = this.noteCopy(jobId, attemptId);
    const isFirst = stage.winners[task.index] === undefined;
    stage.winners[task.index] = copy.attempt;
    if (isFirst && task.outputIsLost && this.faultsGoOn()) loseCopy(stage, copy);
  }

  /** Notes where a further copy of a committed output lies. */
  keepReplica(jobId: JobId, { attemptId }: TaskResult): void {
    // Copies that no attempt has written are there before they are recorded.
    if (!isCopy(attemptParts(attemptId).attempt)) this.noteCopy(jobId, attemptId);
  }

  /** Copies an output to any other machine, once. */
  copyOutput({ job, stage, task, copy }: LyingOutput, number: number): void {
    if (outputCopy(stage, task, number) !== undefined) return;
    const others = this.pool.nodes.filter(({ host }) => host.index !== copy.host);
    const rng = this.rng.fork(`copy/${job.id}/${stage.index}/${task}/${number}`);
    const node = others[Math.floor(rng.next() * others.length)] ?? this.pool.nodes[0];
    if (node !== undefined) this.put(job, stage, task, number, node);
  }

  private put(job: SimJob, stage: SimStage, task: number, attempt: number, node: SimNode): OutputCopy {
    const copy = { attempt, endpoint: this.endpointOf(node), host: node.host.index, isGone: false };
    stage.outputs[task]?.push(copy);
    this.losses.add(job, stage, task, copy, node);
    return copy;
  }

  /** A job has ended: its outputs are removed. */
  forget(jobId: JobId): void {
    this.losses.forget(jobId);
    this.deliveries.delete(jobId);
  }

  endpointOf({ index, zone, host }: SimNode): number {
    const { hosts, nodeLinks } = this.scenario.cluster;
    if (hosts !== undefined) return host.index;
    return nodeLinks === undefined ? zone : index;
  }

  private noteCopy(
    jobId: JobId,
    attemptId: AttemptId,
  ): Pick<Assignment, 'stage' | 'task'> & { readonly copy: OutputCopy } {
    const worker = this.workers
      .get(keyOf(jobId, attemptId))
      ?.find(({ claimedAt }) => claimedAt !== undefined);
    invariant(worker !== undefined, 'a result of an attempt that does not run', { attemptId });
    const { job, stage, task } = worker.assignment;
    const { attempt } = attemptParts(attemptId);
    const copy = this.put(job, stage, task.index, attempt, worker.node);
    return { stage, task, copy };
  }

  leave(worker: SimWorker, ending: Ending): void {
    const key = keyOf(worker.assignment.job.id, worker.assignment.attemptId);
    const others = (this.workers.get(key) ?? []).filter((each) => each !== worker);
    if (others.length === 0) this.workers.delete(key);
    else this.workers.set(key, others);
    this.count(worker.assignment, -1);
    if (!this.goOn(worker, ending)) this.freeSlot(worker, ending);
    this.parts.onLeave(worker, ending);
  }

  /** Has a worker take up the next attempt that rides with it, as production's does; answers whether there is one. */
  private goOn(worker: SimWorker, ending: Ending): boolean {
    const started = this.startedWith.get(worker);
    this.startedWith.delete(worker);
    if (started === undefined) return false;
    const { request, isRider } = started;
    const goesOn = ending === 'won' || ending === 'kept' || (isRider && ending === 'refused');
    const { next: [rider, ...next] = [], nextTakesMs = 0 } = request.payload;
    if (!goesOn || rider === undefined || !worker.hasTimeFor(nextTakesMs)) return false;
    const payload = { ...request.payload, copies: undefined, ...rider, next };
    this.startWorker({ ...request, payload }, { node: worker.node, isCold: false }, worker);
    return true;
  }

  private freeSlot({ node, assignment }: SimWorker, ending: Ending): void {
    const keepWarmMs = this.scenario.cluster.cold?.keepWarmMs ?? Infinity;
    // A dead environment is not warm, nor is a task that has ended; a fixed node is as it was.
    const isGone = node.group.elastic && (ending === 'died' || this.isOwnTask(assignment.kind));
    this.pool.release(node, isGone ? -1 : node.group.elastic ? this.now() + keepWarmMs : Infinity);
  }

  private startWorker(request: LaunchRequest, { node, isCold }: TakenSlot, before?: SimWorker): void {
    const { jobId, attemptId, copies, inputs, replaces, keepOutput = false, avoid } = request.payload;
    const job = this.parts.jobs.get(jobId);
    invariant(job !== undefined, 'a launch for no job', { jobId });
    const { stage: name, task: index, attempt: number } = attemptParts(attemptId);
    const { stage, task } = taskOfJob(job, name, index);
    const faults = this.faultsGoOn()
      ? this.scenario.faults
      : { ...this.scenario.faults, attemptFailure: 0, lostAttempt: 0 };
    const draw = drawAttempt(stage, task, number, faults, this.pool.meet(node, stage, this.now()));
    const rng = this.luckOf(jobId, attemptId);
    this.noteDelivery(jobId, attemptId);
    const { kind } = request;
    const reads = { lists: listsRead(job, stage, inputs), named: copies };
    const assignment: Assignment = {
      job,
      stage,
      task,
      attemptId,
      kind,
      rideEndsAt: before?.endsAt,
      draw,
      avoid,
      reads,
      keepOutput,
      replaces,
    };
    const worker = new SimWorker(this, assignment, node, rng);
    const key = keyOf(jobId, attemptId);
    this.workers.set(key, [...(this.workers.get(key) ?? []), worker]);
    this.count(assignment, 1);
    this.startedWith.set(worker, { request, isRider: before !== undefined });
    worker.start(before === undefined ? this.startMs(kind, isCold, rng) : 0);
  }

  private count({ job: { id: jobId }, kind }: Assignment, by: 1 | -1): void {
    this.running += by;
    if (kind === 'fargate') this.runningOnFargate += by;
    const active = this.activeOf(jobId) + by;
    if (active === 0) this.runningByJob.delete(jobId);
    else this.runningByJob.set(jobId, active);
  }

  private startMs(kind: Worker['kind'], isCold: boolean, rng: Rng): number {
    const { startMs, cold, fargateStartMs } = this.scenario.cluster;
    if (kind === 'fargate' && fargateStartMs !== undefined) return sampleMs(fargateStartMs, rng);
    if (!isCold || cold === undefined) return sampleMs(startMs, rng);
    this.coldlyStarted += 1;
    return (this.coldStarts?.take(this.now()) ?? 0) + sampleMs(cold.startMs, rng);
  }

  private faultsGoOn(): boolean {
    return this.now() <= (this.scenario.faults.untilMs ?? Infinity);
  }
}

const keyOf = (jobId: JobId, attemptId: AttemptId): string => `${jobId}|${attemptId}`;
