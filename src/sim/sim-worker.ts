import { attemptParts, type AttemptId, taskOf } from '../contracts/ids.ts';
import type { Worker } from '../contracts/job-spec.ts';
import type { Failure, Fetched, Phase, Progress, TaskResult } from '../contracts/records.ts';
import { type DurationMs, durationMs, type EpochMs, epochMs } from '../contracts/units.ts';
import type { Rng } from '../lib/rng.ts';
import type { AttemptStore, TaskSpace } from '../ports/attempt-store.ts';
import { sampleMs } from './distribution.ts';
import { cancelEvent, type EventQueue, type SimEvent } from './event-queue.ts';
import type { Flow, FluidNetwork } from './fluid-network.ts';
import { interpolate } from './interpolate.ts';
import type { NodeLoad, NodePool, SimNode } from './node-pool.ts';
import type { Scenario } from './scenario.ts';
import type { AttemptDraw, SimJob, SimStage, SimTask } from './sim-job.ts';
import { endpointReads, type NamedCopies } from './upstream-reads.ts';

/**
 * How an attempt left its slot. `kept`: another had won, and its output stays as a replica; `late`: without that;
 * `refused`: its claim was; `died`: without a word.
 */
export type Ending = 'won' | 'kept' | 'late' | 'cancelled' | 'failed' | 'died' | 'refused';

/** What a worker needs of the world around it. */
export interface WorkerHost {
  readonly scenario: Scenario;
  readonly queue: EventQueue;
  readonly now: () => EpochMs;
  readonly store: AttemptStore;
  readonly network: FluidNetwork;
  readonly pool: NodePool;
  /** Where the network reaches a node. */
  endpointOf(node: SimNode): number;
  /** The worker has left its slot. */
  leave(worker: SimWorker, ending: Ending): void;
}

/** What the worker executes. */
export interface Assignment {
  readonly job: SimJob;
  readonly stage: SimStage;
  readonly task: SimTask;
  readonly attemptId: AttemptId;
  /** What it runs on. */
  readonly kind: Worker['kind'];
  readonly draw: AttemptDraw;
  /** What it reads in place of winners' outputs, as its launch says. */
  readonly copies: NamedCopies | undefined;
  /** Whether its output is kept where another attempt of its task has won. */
  readonly keepOutput: boolean;
}

/** Reports come no faster than this, however short the work. */
const shortestReportMs = 100;

/** One delivery of an attempt to a slot of a node: claim, read, work, wrap up, commit; reports in between. */
export class SimWorker implements NodeLoad {
  readonly host: WorkerHost;
  readonly assignment: Assignment;
  readonly node: SimNode;
  readonly takenAt: EpochMs;
  claimedAt: EpochMs | undefined;
  isOver = false;
  private readonly rng: Rng;
  private readonly space: TaskSpace;
  private phase: Phase = 'init';
  private phaseSince: EpochMs;
  private readonly phaseMs: Record<Phase, number> = { init: 0, read: 0, compute: 0, write: 0 };
  private flows: Flow[] = [];
  private remoteBytes = 0;
  private fetchBeganAt: EpochMs | undefined;
  private fetchEndedAt: EpochMs | undefined;
  /** Work done in the present phase at speed 1, up to `settledAt`, and how much of it there is. */
  private doneMs = 0;
  private goalMs = 0;
  private settledAt: EpochMs;
  private atGoal: () => void | Promise<void> = () => undefined;
  private next: SimEvent | undefined;
  private reporting: SimEvent | undefined;

  constructor(host: WorkerHost, assignment: Assignment, node: SimNode, rng: Rng) {
    this.host = host;
    this.assignment = assignment;
    this.node = node;
    this.rng = rng;
    this.space = { jobId: assignment.job.id, shards: 1 };
    this.takenAt = host.now();
    this.phaseSince = this.takenAt;
    this.settledAt = this.takenAt;
  }

  /** Begins after its environment has started. */
  start(startMs: number): void {
    this.node.loads.add(this);
    this.next = this.plan(startMs, 'claim', () => this.claim());
  }

  /** Ends it at once, as a scheduler that can really kill does. */
  async kill(): Promise<void> {
    if (this.isOver) return;
    if (this.claimedAt !== undefined) await this.end('cancelled');
    this.leave(this.claimedAt === undefined ? 'refused' : 'cancelled');
  }

  die(): void {
    if (!this.isOver) this.leave('died');
  }

  settle(): void {
    const now = this.host.now();
    if (this.phase === 'compute' || this.phase === 'write') {
      this.doneMs = Math.min(
        this.goalMs,
        this.doneMs + (now - this.settledAt) * this.host.pool.speedOf(this.node),
      );
    }
    this.settledAt = now;
  }

  resume(): void {
    if (this.phase !== 'compute' && this.phase !== 'write') return;
    cancelEvent(this.next);
    const waitMs = Math.ceil((this.goalMs - this.doneMs) / this.host.pool.speedOf(this.node) - 1e-6);
    this.next = this.plan(Math.max(0, waitMs), this.phase, () => {
      this.doneMs = this.goalMs;
      this.settledAt = this.host.now();
      return this.atGoal();
    });
  }

  private plan(afterMs: number, kind: string, run: () => void | Promise<void>): SimEvent {
    return this.host.queue.schedule(epochMs(this.host.now() + afterMs), {
      kind,
      subject: this.assignment.attemptId,
      run,
    });
  }

  private async claim(): Promise<void> {
    const zone = this.host.scenario.cluster.zones[this.node.zone]?.name ?? '';
    const place = { node: this.node.name, zone };
    const now = this.host.now();
    if (
      (await this.host.store.claim(this.space, this.assignment.attemptId, place, now, this.reportMs())) ===
      'refused'
    ) {
      this.leave('refused');
      return;
    }
    this.claimedAt = now;
    this.scheduleReport();
    this.enter('read');
    this.waitForRedo();
  }

  /** Lost inputs are made again before anybody can read them. */
  private waitForRedo(): void {
    const { job, stage } = this.assignment;
    const now = this.host.now();
    let readyAt: number = now;
    for (const place of stage.upstream) {
      const producer = job.stages[place];
      if (producer === undefined || producer.redoMs === 0) continue;
      producer.redoneAt ??= now + producer.redoMs;
      readyAt = Math.max(readyAt, producer.redoneAt);
    }
    if (readyAt === now) this.read();
    else
      this.next = this.plan(readyAt - now, 'redone', () => {
        this.read();
      });
  }

  private read(): void {
    const { stage, task, job, copies } = this.assignment;
    if (!stage.scenario.network || task.inputBytes === 0) {
      this.work();
      return;
    }
    const here = this.host.endpointOf(this.node);
    const hasOwnLinks = this.host.scenario.cluster.nodeLinks !== undefined;
    const away = endpointReads(job, stage, task, copies).filter(
      (each) => !hasOwnLinks || each.endpoint !== here,
    );
    this.remoteBytes = task.inputBytes;
    this.fetchBeganAt = this.host.now();
    const endFetch = (): void => {
      if (this.isOver || !this.flows.every(({ isOver }) => isOver)) return;
      this.fetchEndedAt = this.host.now();
      this.work();
    };
    this.flows = away.map(({ endpoint, sizeBytes }) =>
      this.host.network.start(endpoint, here, sizeBytes, endFetch),
    );
    if (away.length === 0) endFetch();
  }

  /** Works up to the end, or to where fate has it fail or die. */
  private work(): void {
    const { draw } = this.assignment;
    const fate = Math.min(draw.failsAt ?? Infinity, draw.diesAt ?? Infinity);
    if (fate === Infinity) this.begin('compute', draw.workMs, () => this.wrapUp());
    else if (fate === draw.failsAt) this.begin('compute', Math.round(fate * draw.workMs), () => this.fail());
    else
      this.begin('compute', Math.round(fate * draw.workMs), () => {
        this.die();
      });
  }

  private wrapUp(): void | Promise<void> {
    const { wrapUpMs } = this.assignment.draw;
    if (wrapUpMs > 0) this.begin('write', wrapUpMs, () => this.commit());
    else {
      this.enter('write');
      return this.commit();
    }
  }

  private begin(phase: Phase, goalMs: number, atGoal: () => void | Promise<void>): void {
    this.enter(phase);
    this.doneMs = 0;
    this.goalMs = goalMs;
    this.atGoal = atGoal;
    this.settledAt = this.host.now();
    this.resume();
  }

  private async commit(): Promise<void> {
    const keep = this.assignment.keepOutput ? 'replica' : undefined;
    const outcome = await this.host.store.commit(this.space, this.result(), keep);
    if (outcome === 'won') await this.tell();
    else await this.end(outcome === 'lost' ? 'cancelled' : 'done');
    this.leave(outcome === 'lost' ? 'late' : outcome);
  }

  private async fail(): Promise<void> {
    // Drawn anew for each execution: no two fail alike, as two of a task that cannot succeed would.
    const { attempt } = attemptParts(this.assignment.attemptId);
    const message = `it failed by the scenario, as execution ${attempt}`;
    await this.end('failed', { cause: 'user-code', message });
    this.leave('failed');
  }

  private async end(state: 'done' | 'failed' | 'cancelled', failure?: Failure): Promise<void> {
    const end = { state, progress: this.progress(), ...(failure === undefined ? {} : { failure }) };
    await this.host.store.end(this.space, this.assignment.attemptId, end, this.host.now());
    await this.tell();
  }

  /** Has the scheduler look at how it has ended. */
  private tell(): Promise<void> {
    const { attemptId } = this.assignment;
    return this.host.store.tell(this.space, { attemptId, kind: 'end' }, this.host.now());
  }

  private leave(ending: Ending): void {
    // Given up and told to stop by one tick, which carries both out at once: the first ends it.
    if (this.isOver) return;
    this.isOver = true;
    cancelEvent(this.next);
    cancelEvent(this.reporting);
    for (const flow of this.flows) this.host.network.stop(flow);
    this.node.loads.delete(this);
    this.host.leave(this, ending);
  }

  private enter(phase: Phase): void {
    const now = this.host.now();
    this.phaseMs[this.phase] += now - this.phaseSince;
    this.phase = phase;
    this.phaseSince = now;
  }

  /** Time between two reports. */
  private reportMs(): DurationMs {
    const { everyMs, tenths } = this.host.scenario.reports;
    const expectedMs = this.assignment.task.workMs || this.assignment.draw.workMs;
    const tenthMs = Math.max(shortestReportMs, Math.min(everyMs, Math.round(expectedMs / 10)));
    return durationMs(Math.min(everyMs, tenths ? tenthMs : everyMs));
  }

  private scheduleReport(): void {
    this.reporting = this.plan(this.reportMs(), 'report', () => this.report());
  }

  private async report(): Promise<void> {
    this.scheduleReport();
    const { loss, delayMs } = this.host.scenario.reports;
    if (loss > 0 && this.rng.next() < loss) return;
    const delay = sampleMs(delayMs, this.rng);
    const progress = this.progress();
    if (delay === 0) await this.deliver(progress);
    else this.plan(delay, 'late-report', () => this.deliver(progress));
  }

  private async deliver(progress: Progress): Promise<void> {
    if (this.isOver) return;
    const order = await this.host.store.report(
      this.space,
      this.assignment.attemptId,
      progress,
      this.host.now(),
      this.reportMs(),
    );
    if (order === 'continue') return;
    await this.end('cancelled');
    this.leave('cancelled');
  }

  private leftBytes(): number {
    const left = this.flows.reduce((sum, flow) => sum + this.host.network.leftBytes(flow), 0);
    return Math.min(this.remoteBytes, left); // Shares of the input may add up to a little more than it.
  }

  /** What it has fetched of other stages' outputs; undefined where it reads none, or has not begun to. */
  private fetched(): Fetched | undefined {
    if (this.fetchBeganAt === undefined || this.assignment.stage.upstream.length === 0) return undefined;
    return {
      bytes: Math.floor(this.remoteBytes - this.leftBytes()),
      ms: (this.fetchEndedAt ?? this.host.now()) - this.fetchBeganAt,
    };
  }

  /** Share of its input that counts as read. */
  private shareRead(): number {
    const { stage, draw } = this.assignment;
    const readShare = this.remoteBytes > 0 ? stage.scenario.readShare : 0;
    if (this.phase === 'init') return 0;
    if (this.phase === 'write') return 1;
    if (this.phase === 'read') {
      return this.remoteBytes === 0 || this.flows.length === 0
        ? 0
        : readShare * (1 - this.leftBytes() / this.remoteBytes);
    }
    const done = draw.workMs === 0 ? 1 : this.doneMs / draw.workMs;
    return readShare + (1 - readShare) * interpolate(stage.scenario.progress, done);
  }

  private progress(): Progress {
    this.settle();
    const { inputBytes } = this.assignment.task;
    const phaseMs = { ...this.phaseMs };
    const fetched = this.fetched();
    phaseMs[this.phase] += this.host.now() - this.phaseSince;
    return {
      bytesRead: Math.floor(inputBytes * Math.min(1, this.shareRead())),
      bytesTotal: inputBytes,
      recordsIn: 0,
      recordsOut: 0,
      phase: this.phase,
      phaseMs,
      peakMemoryBytes: 0,
      ...(fetched === undefined ? {} : { fetched }),
    };
  }

  private result(): TaskResult {
    const { task, attemptId } = this.assignment;
    return {
      taskId: taskOf(attemptId),
      attemptId,
      committedAt: this.host.now(),
      bytesIn: task.inputBytes,
      bytesOut: task.outputBytes,
      recordsIn: 0,
      recordsOut: 0,
      counters: {},
      progress: this.progress(),
    };
  }
}
