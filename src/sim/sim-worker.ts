import { attemptParts, type AttemptId, taskOf } from '../contracts/ids.ts';
import type { Worker } from '../contracts/job-spec.ts';
import type { AttemptPayload } from '../contracts/payloads.ts';
import type { Phase, Progress } from '../contracts/progress.ts';
import type { Failure, TaskResult } from '../contracts/records.ts';
import { type DurationMs, durationMs, type EpochMs, epochMs, later } from '../contracts/units.ts';
import {
  hasTimeFor,
  outOfTime,
  stoppedItself,
  type TimeLimit,
  timeLimitOf,
  workLeftMs,
} from '../core/model/time-limit.ts';
import type { Rng } from '../lib/rng.ts';
import type { AttemptStore, TaskSpace } from '../ports/attempt-store.ts';
import { AttemptProgress } from './attempt-progress.ts';
import { AttemptTransfers } from './attempt-transfers.ts';
import { sampleMs } from './distribution.ts';
import { type Reports, reportsOf } from './worker-reports.ts';
import { cancelEvent, type EventQueue, type SimEvent } from './event-queue.ts';
import type { FluidNetwork } from './fluid-network.ts';
import { keptBy } from './kept-outputs.ts';
import type { NodeLoad, NodePool, SimNode } from './node-pool.ts';
import { recordDecline } from './record-decline.ts';
import type { Scenario } from './scenario.ts';
import { type AttemptDraw, otherHome, type SimJob, type SimStage, type SimTask } from './sim-job.ts';
import { endpointReads, goneInputs, type InputNames } from './upstream-reads.ts';

/**
 * How an attempt left its slot. `kept`: another had won, and its output stays as a replica; `late`: without that;
 * `refused`: its claim was; `declined`: its node is one to avoid; `died`: without a word.
 */
export type Ending = 'won' | 'kept' | 'late' | 'cancelled' | 'failed' | 'died' | 'refused' | 'declined';

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
  /** When its environment ends, in which others of its launch ran before it; undefined of the first, or where none ends. */
  readonly rideEndsAt: EpochMs | undefined;
  readonly draw: AttemptDraw;
  /** The nodes on which it is to be declined, as its launch says. */
  readonly avoid: AttemptPayload['avoid'];
  /** The outputs of other stages that it reads, as its launch says. */
  readonly reads: InputNames;
  /** Whether its output is kept where another attempt of its task has won. */
  readonly keepOutput: boolean;
  /** The attempt whose output is gone, in whose place its own becomes the result. */
  readonly replaces: AttemptId | undefined;
}

/** How long an attempt will still run, and whether it stops itself then for want of time. */
export interface LeftOfAttempt {
  readonly ms: number;
  readonly runsOut: boolean;
}

/** One delivery of an attempt to a slot of a node: claim, read, work, wrap up, commit; reports in between. */
export class SimWorker implements NodeLoad {
  readonly host: WorkerHost;
  readonly assignment: Assignment;
  readonly node: SimNode;
  readonly takenAt: EpochMs;
  claimedAt: EpochMs | undefined;
  /** When its environment ends, once that is known; undefined where it never does. */
  endsAt: EpochMs | undefined;
  isOver = false;
  readonly reports: Reports;
  private readonly rng: Rng;
  private readonly space: TaskSpace;
  private readonly transfers: AttemptTransfers;
  private readonly progress: AttemptProgress;
  private atGoal: () => void | Promise<void> = () => undefined;
  private next: SimEvent | undefined;
  private limit: TimeLimit | undefined;
  private timeUp: SimEvent | undefined;

  constructor(host: WorkerHost, assignment: Assignment, node: SimNode, rng: Rng) {
    this.host = host;
    this.assignment = assignment;
    this.node = node;
    this.rng = rng;
    this.space = { jobId: assignment.job.id, shards: 1 };
    this.transfers = new AttemptTransfers(host.network, host.now);
    this.takenAt = host.now();
    this.endsAt = assignment.rideEndsAt;
    const { stage, task, draw } = assignment;
    this.progress = new AttemptProgress({
      ...{ stage, task, draw, transfers: this.transfers, now: host.now },
      speed: () => host.pool.speedOf(node),
      isAsInProduction: host.scenario.reports.cadence === 'worker',
      lookEveryMs: host.scenario.reports.everyMs,
    });
    const reporting = {
      attemptId: assignment.attemptId,
      expectedMs: task.workMs || draw.workMs,
      ranMs: () => host.now() - (this.claimedAt ?? host.now()),
      shareAt: (ranMs: number) =>
        this.claimedAt === undefined ? undefined : this.progress.shareAt(this.claimedAt + ranMs),
      report: (nextMs: DurationMs, isNews: boolean) => this.report(nextMs, isNews),
      listen: () => this.listen(),
    };
    this.reports = reportsOf(reporting, host, host.scenario.reports);
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
    this.progress.settle();
  }

  resume(): void {
    if (this.transfers.isWriting || !this.progress.isWorking) return;
    cancelEvent(this.next);
    const waitMs = Math.ceil(this.progress.undoneMs / this.host.pool.speedOf(this.node) - 1e-6);
    this.next = this.plan(Math.max(0, waitMs), this.progress.phase, () => {
      this.progress.finish();
      return this.atGoal();
    });
    this.reports.moved();
  }

  /** How long it will still take, if it goes on as it does now and as far as its environment lets it. */
  left(): LeftOfAttempt {
    const ms = this.workLeftMs();
    const now = this.host.now();
    // Its invocation begins when it has started.
    const begunAt = this.claimedAt ?? Math.max(now, this.next?.at ?? now);
    const endsAt = this.endsAt ?? this.endOfInvocation(epochMs(begunAt));
    const limit = this.limit ?? timeLimitOf(endsAt, epochMs(begunAt));
    const stopsInMs = limit === undefined ? Infinity : workLeftMs(limit, now);
    return { ms: Math.min(ms, stopsInMs), runsOut: ms > stopsInMs };
  }

  /** The same without an end; what it has not begun to write takes no time. */
  private workLeftMs(): number {
    this.settle();
    const { draw } = this.assignment;
    const speed = this.host.pool.speedOf(this.node);
    const { phase, undoneMs } = this.progress;
    if (phase === 'write') return undoneMs / speed;
    const arrivesIn = this.transfers.leftMs();
    if (phase === 'compute') return arrivesIn + (undoneMs + draw.wrapUpMs) / speed;
    const startsIn = phase === 'init' ? Math.max(0, (this.next?.at ?? 0) - this.host.now()) : 0;
    return startsIn + arrivesIn + (draw.workMs + draw.wrapUpMs) / speed;
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
    const { avoid } = this.assignment;
    if (avoid?.nodes.includes(place.node) === true) return this.decline(place.node, avoid.holdMs);
    const now = this.host.now();
    this.endsAt ??= this.endOfInvocation(now);
    this.limit = timeLimitOf(this.endsAt, now);
    const { attemptId } = this.assignment;
    const told = await this.host.store.claim(this.space, attemptId, place, now, this.reports.firstMs);
    if (told === 'refused') {
      this.leave('refused');
      return;
    }
    this.claimedAt = now;
    this.progress.claim();
    this.reports.begin();
    if (this.limit !== undefined)
      this.timeUp = this.plan(workLeftMs(this.limit, now), 'out-of-time', () => this.stopInTime());
    this.progress.enter('read');
    await this.read();
  }

  /** When an invocation that begins now is ended; a task on Fargate is not. */
  private endOfInvocation(now: EpochMs): EpochMs | undefined {
    const { lambdaMs } = this.host.scenario.cluster;
    if (this.assignment.kind === 'fargate' || lambdaMs === undefined) return undefined;
    return later(now, durationMs(lambdaMs));
  }

  /** Whether its environment has the time for one more attempt that takes so long. */
  hasTimeFor(takesMs: number): boolean {
    return hasTimeFor(this.endsAt, this.host.now(), takesMs);
  }

  /** As production's worker does that cannot hand on what it has done. */
  private async stopInTime(): Promise<void> {
    if (this.limit === undefined) return;
    const stopped = { isUsed: this.assignment.rideEndsAt !== undefined, mayPass: false };
    await this.end('failed', outOfTime(stoppedItself(this.limit), stopped));
    this.leave('failed');
  }

  /** As production's worker does: it keeps its node busy for a while, so that it is not handed the same again. */
  private async decline(node: string, holdMs: number): Promise<void> {
    const told = await recordDecline(this.host, this.space, this.assignment.attemptId, node);
    if (told === 'refused') this.leave('refused');
    else
      this.next = this.plan(holdMs, 'declined', () => {
        this.leave('declined');
      });
  }

  /** Fetches its input; fails where some of that is gone, or goes while it reads. */
  private async read(): Promise<void> {
    const { stage, task, job, reads } = this.assignment;
    if (await this.failsForInput()) return;
    if (!stage.scenario.network || task.inputBytes === 0) {
      this.work();
      return;
    }
    const here = this.host.endpointOf(this.node);
    const hasOwnLinks = this.host.scenario.cluster.nodeLinks !== undefined;
    const away = endpointReads(job, stage, task, { ...reads, here, rng: this.rng }).filter(
      (each) => !hasOwnLinks || each.endpoint !== here,
    );
    await this.transfers.fetch(away, here, task.inputBytes, async () => {
      if (!this.isOver && !(await this.failsForInput())) this.work();
    });
  }

  /** Reports what it does not find of other stages' outputs, as production's workers do. */
  private async failsForInput(): Promise<boolean> {
    const { stage, task, job, reads } = this.assignment;
    const lost = goneInputs(job, stage, task, reads);
    const [first] = lost;
    if (first === undefined) return false;
    await this.end('failed', { cause: 'input-lost', message: `output of ${first.attemptId} is gone`, lost });
    this.leave('failed');
    return true;
  }

  /** Works up to the end, or to where fate has it fail or die. */
  private work(): void {
    const { draw } = this.assignment;
    const fate = Math.min(draw.failsAt ?? Infinity, draw.diesAt ?? Infinity);
    if (fate === Infinity) this.begin('compute', draw.workMs, () => this.writeOutput());
    else if (fate === draw.failsAt) this.begin('compute', Math.round(fate * draw.workMs), () => this.fail());
    else
      this.begin('compute', Math.round(fate * draw.workMs), () => {
        this.die();
      });
  }

  /** Writes its output where outputs take time to write, then wraps up. */
  private writeOutput(): void | Promise<void> {
    const { stage, task } = this.assignment;
    if (!stage.scenario.replicatesOutput || task.outputBytes === 0) return this.wrapUp();
    const here = this.host.endpointOf(this.node);
    const there = otherHome(stage, here, this.rng);
    this.transfers.write(here, there, task.outputBytes, () => (this.isOver ? undefined : this.wrapUp()));
  }

  private wrapUp(): void | Promise<void> {
    const { wrapUpMs } = this.assignment.draw;
    if (wrapUpMs > 0) this.begin('write', wrapUpMs, () => this.commit());
    else {
      this.progress.enter('write');
      return this.commit();
    }
  }

  private begin(phase: Phase, goalMs: number, atGoal: () => void | Promise<void>): void {
    this.progress.begin(phase, goalMs);
    this.atGoal = atGoal;
    this.resume();
  }

  private async commit(): Promise<void> {
    const { keepOutput, replaces } = this.assignment;
    const keep = keepOutput ? 'replica' : undefined;
    const outcome = await this.host.store.commit(this.space, this.result(), keep, replaces);
    if (outcome === 'won') await this.tell();
    else await this.end(outcome === 'lost' ? 'cancelled' : 'done');
    this.leave(outcome === 'lost' ? 'late' : outcome);
  }

  private async fail(): Promise<void> {
    // Drawn anew for each execution: no two fail alike, as two of a task that cannot succeed would.
    const message = `it failed by the scenario, as execution ${attemptParts(this.assignment.attemptId).attempt}`;
    await this.end('failed', { cause: 'user-code', message });
    this.leave('failed');
  }

  private async end(state: 'done' | 'failed' | 'cancelled', failure?: Failure): Promise<void> {
    const end = { state, progress: this.progress.told(), ...(failure === undefined ? {} : { failure }) };
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
    cancelEvent(this.timeUp);
    this.reports.stop();
    this.transfers.stop();
    this.node.loads.delete(this);
    this.host.leave(this, ending);
  }

  private report(nextMs: DurationMs, isNews: boolean): void | Promise<void> {
    const { loss, delayMs } = this.host.scenario.reports;
    if (loss > 0 && this.rng.next() < loss) return;
    const delay = sampleMs(delayMs, this.rng);
    const progress = this.progress.report(this.host.now() - (this.claimedAt ?? 0));
    if (delay === 0) return this.deliver(progress, nextMs, isNews);
    this.plan(delay, 'late-report', () => this.deliver(progress, nextMs, isNews));
  }

  private async deliver(progress: Progress, nextMs: DurationMs, isNews: boolean): Promise<void> {
    if (this.isOver) return;
    const { store, now } = this.host;
    const { attemptId } = this.assignment;
    const order = await store.report(this.space, attemptId, progress, now(), nextMs);
    if (order !== 'continue') await this.kill();
    else if (isNews) await store.tell(this.space, { attemptId, kind: 'news' }, now());
  }

  private async listen(): Promise<void> {
    const order = await this.host.store.orders(this.space, this.assignment.attemptId);
    if (order !== 'continue') await this.kill();
  }

  private result(): TaskResult {
    const { job, stage, task, attemptId } = this.assignment;
    return {
      taskId: taskOf(attemptId),
      attemptId,
      committedAt: this.host.now(),
      bytesIn: task.inputBytes,
      bytesOut: task.outputBytes,
      ...{ recordsIn: 0, recordsOut: 0, counters: {} },
      progress: this.progress.told(),
      ...keptBy(job, stage, task, this.node.name),
    };
  }
}
