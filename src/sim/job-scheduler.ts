import type { MemoryCapacityStore } from '../adapters/memory/memory-capacity-store.ts';
import { invariant } from '../contracts/errors.ts';
import { occupiedBy } from '../core/capacity/ledger.ts';
import type { JobId } from '../contracts/ids.ts';
import type { JobSpec } from '../contracts/job-spec.ts';
import { planKey } from '../contracts/keys.ts';
import { nothingYet } from '../contracts/records.ts';
import { durationMs, epochMs } from '../contracts/units.ts';
import { ownSlotsAlone } from '../app/ask-slots.ts';
import { pauseBeforeLook } from '../app/await-news.ts';
import { settleAttempts } from '../app/finish-job.ts';
import { enterJob, leaveJob } from '../app/enter-job.ts';
import type { SchedulerDeps } from '../app/scheduler-deps.ts';
import { runTick } from '../app/tick-job.ts';
import type { Session } from '../app/scheduler-session.ts';
import { takeLaunches } from '../app/make-launches.ts';
import type { TickDecision } from '../core/decide-tick.ts';
import type { CopyOutput } from '../core/model/decision.ts';
import type { LaunchOrder } from '../core/model/job-view.ts';
import { slotDemand } from '../core/policy/owed-launches.ts';
import { ownPlaces } from '../core/policy/own-places.ts';
import { cancelEvent, type EventQueue, type SimEvent } from './event-queue.ts';
import type { LostOutputOutcome } from './outcome.ts';
import type { Scenario } from './scenario.ts';
import { planOf, readInPlace, type SimJob } from './sim-job.ts';
import { isLive } from '../core/model/job-view.ts';

/** A job in the hands of its scheduler. */
export interface JobRun {
  readonly job: SimJob;
  state: 'waiting' | 'running' | 'succeeded' | 'failed';
  session: Session | undefined;
  nextTick: SimEvent | undefined;
  /** When the next tick is due at the latest; until then it is looked for ends. */
  tickDueMs: number;
  /** Slots that it was granted when it ticked last. */
  slotsSeen: number;
  /** When it last ticked anew at once for copies that had no slot; -1 for never. */
  grewAtMs: number;
  error: string | undefined;
  endedAtMs: number;
  /** Slots that it has asked to be its own for its deadline, and since when. */
  readonly asked: { readonly atMs: number; readonly slots: number }[];
  readonly lostOutputs: LostOutputOutcome[];
  readonly copiedOutputs: CopyOutput[];
}

/** What the schedulers need besides the ports of production. */
export interface JobSchedulerParts {
  readonly scenario: Scenario;
  readonly deps: SchedulerDeps;
  /** What the ledger of slots is kept in. */
  readonly capacity: MemoryCapacityStore;
  readonly queue: EventQueue;
  readonly jobs: readonly SimJob[];
  /** Adds a line to the trace. */
  readonly note: (kind: string, subject: string) => void;
  /** In which order jobs' tasks are first launched; absent: in their own. */
  readonly launchOrder?: LaunchOrder;
  /** Attempts of a job that occupy a slot. */
  readonly activeOf: (jobId: JobId) => number;
  /** A job has ended; attempts of it may still run. */
  readonly onEnd: (run: JobRun) => void;
}

/** Attempts of a job that were told to stop, as far as it is not known that they have. */
const stoppingOf = ({ state }: Session): number =>
  [...state.live].filter((attempt) => !isLive(attempt) || attempt.cancelOrdered).length;

const never = epochMs(Number.MAX_SAFE_INTEGER);

/** Runs production's ticks for every job: each `tickMs`, and where the scenario says so whenever an attempt ends. */
export class JobScheduler {
  readonly runs: readonly JobRun[];
  private readonly parts: JobSchedulerParts;
  private readonly byId = new Map<JobId, JobRun>();
  /** Running jobs that hold fewer slots than they could use, by order of arrival. */
  private readonly short: JobRun[] = [];
  private endedJobs = 0;

  constructor(parts: JobSchedulerParts) {
    this.parts = parts;
    this.runs = parts.jobs.map((job): JobRun => ({
      job,
      state: 'waiting',
      session: undefined,
      nextTick: undefined,
      tickDueMs: 0,
      slotsSeen: 0,
      grewAtMs: -1,
      error: undefined,
      endedAtMs: 0,
      asked: [],
      lostOutputs: [],
      copiedOutputs: [],
    }));
    for (const run of this.runs) {
      this.byId.set(run.job.id, run);
      parts.queue.schedule(run.job.arrivesAt, {
        kind: 'arrive',
        subject: run.job.id,
        run: () => this.begin(run),
      });
    }
  }

  get isDone(): boolean {
    return this.endedJobs === this.runs.length;
  }

  /** The run of a job; another id is our bug. */
  runOf(jobId: JobId): JobRun {
    const run = this.byId.get(jobId);
    invariant(run !== undefined, 'no such job', { jobId });
    return run;
  }

  /** Something of a job has changed: it is looked at now where the scenario's scheduler is told at once. */
  wake(jobId: JobId): void {
    if (this.parts.scenario.scheduler.wakeOnEnd) this.tickSoon(this.runOf(jobId));
  }

  private tickSoon(run: JobRun): void {
    if (run.state !== 'running') return;
    this.tickAt(run, this.parts.deps.clock.now() + this.parts.scenario.scheduler.wakeAfterMs);
  }

  /** Plans the next tick; an earlier one that is planned stands. */
  private tickAt(run: JobRun, atMs: number): void {
    if (run.nextTick !== undefined && !run.nextTick.cancelled && run.nextTick.at <= atMs) return;
    cancelEvent(run.nextTick);
    run.nextTick = this.parts.queue.schedule(epochMs(atMs), {
      kind: 'tick',
      subject: run.job.id,
      run: () => this.tick(run),
    });
  }

  private async begin(run: JobRun): Promise<void> {
    const { deps } = this.parts;
    const { job } = run;
    const now = deps.clock.now();
    const plan = planOf(job, this.parts.launchOrder);
    const { guaranteedSlots, weight, budget, onBudget, deadlineKind, admission } = job.scenario;
    const spec: JobSpec = {
      ...{ version: 1, name: plan.name, stages: [], policy: plan.policy },
      ...(guaranteedSlots === undefined ? {} : { guaranteedSlots }),
      ...(weight === undefined ? {} : { weight }),
      ...(budget === undefined ? {} : { budget }),
      ...(onBudget === undefined ? {} : { onBudget }),
      ...(deadlineKind === undefined ? {} : { deadlineKind }),
      ...(admission === undefined ? {} : { admission }),
    };
    await deps.jobs.create({
      jobId: job.id,
      name: plan.name,
      spec,
      specDigest: '',
      state: 'running',
      createdAt: now,
      startedAt: now,
      shards: 1,
      planNonce: plan.nonce,
      ...(job.scenario.deadlineMs === undefined
        ? {}
        : { deadlineAt: epochMs(now + job.scenario.deadlineMs) }),
      output: `s3://${deps.dataBucket}/output/${job.id}/`,
      ...nothingYet,
    });
    const planRef = { bucket: deps.dataBucket, key: planKey(plan) };
    await deps.objects.write(planRef, new TextEncoder().encode(JSON.stringify(plan)));
    run.session = await enterJob(deps, job.id, { owner: 'simulator', until: never });
    // Who takes the job over reads its plan again; else it only takes memory.
    if (this.parts.scenario.scheduler.handOverMs === undefined)
      await deps.objects.remove(planRef.bucket, [planRef.key]);
    run.state = 'running';
    this.changeDeadlines(run);
    this.handOverLater(run);
    await this.tick(run);
  }

  private handOverLater(run: JobRun): void {
    const { deps, queue, scenario } = this.parts;
    const { handOverMs } = scenario.scheduler;
    if (handOverMs === undefined) return;
    queue.schedule(epochMs(deps.clock.now() + handOverMs), {
      kind: 'hand-over',
      subject: run.job.id,
      run: () => this.handOver(run),
    });
  }

  /** One scheduler leaves the job, and another enters it. */
  private async handOver(run: JobRun): Promise<void> {
    const { deps } = this.parts;
    if (run.session === undefined || run.state !== 'running') return;
    await leaveJob(deps, run.session);
    run.session = await enterJob(deps, run.job.id, { owner: 'simulator', until: never });
    this.tickAt(run, deps.clock.now());
    this.handOverLater(run);
  }

  /** People change the job's deadline, which its scheduler sees with its next tick. */
  private changeDeadlines({ job }: JobRun): void {
    const { deps, queue } = this.parts;
    const since = deps.clock.now();
    for (const { atMs, deadlineMs } of job.scenario.deadlineChanges)
      queue.schedule(epochMs(since + atMs), {
        kind: 'deadline',
        subject: job.id,
        run: async () => {
          await deps.jobs.update(job.id, ['running'], { deadlineAt: epochMs(since + deadlineMs) });
        },
      });
  }

  private async tick(run: JobRun): Promise<void> {
    const { session } = run;
    if (session === undefined || run.state !== 'running') return;
    run.nextTick = undefined;
    if (this.isParked(run, session)) {
      this.tickAt(run, this.parts.deps.clock.now() + this.parts.scenario.scheduler.tickMs);
      return;
    }
    const usedBefore = this.parts.capacity.occupiedSlots;
    const decided = await runTick(this.parts.deps, session);
    run.slotsSeen = this.parts.capacity.peek(run.job.id)?.slots ?? 0;
    // Launches take no time here: what became of them is known before anything else happens.
    await session.launches.settled();
    takeLaunches(this.parts.deps, session, this.parts.deps.clock.now());
    this.check(session);
    this.noteDecisions(run, decided);
    this.keepShort(run, this.isShort(session, decided));
    if (decided.outcome.kind === 'continue') this.planNext(run, decided);
    else await this.end(run, decided.outcome.kind === 'fail' ? decided.outcome.message : undefined);
    if (this.parts.capacity.occupiedSlots < usedBefore) this.wakeShort();
    if (this.isFair) this.wakeRaised();
  }

  /**
   * Whether a tick could do nothing: the job holds nothing, nothing of it runs, and there is no slot to be had.
   * Spares long queues most of their cost; the outcome is the same.
   */
  private isParked({ job }: JobRun, { state, grant }: Session): boolean {
    const isIdle = grant === 0 && state.live.size === 0 && this.parts.activeOf(job.id) === 0;
    // Where slots are shared fairly it must first say what it wants.
    const own = this.parts.capacity.peek(job.id);
    if (this.isFair && (own?.slots !== 0 || own.wanted === 0)) return false;
    return isIdle && this.spareSlots() <= 0 && slotDemand(state) > 0;
  }

  private planNext(run: JobRun, decided: TickDecision): void {
    const { scheduler } = this.parts.scenario;
    const now = this.parts.deps.clock.now();
    const opened = decided.decisions.some(({ kind }) => kind === 'open-stage' || kind === 'lose-output');
    // A copy asks the ledger for a slot in one tick and is launched in the next. Where that launches none, as behind a
    // full queue of Lambda, another at the same instant would not either.
    const isVain = run.grewAtMs === now && decided.decisions.every(({ kind }) => kind !== 'launch');
    const mayGrow = scheduler.wakeOnEnd && decided.slotsShort > 0 && this.spareSlots() > 0 && !isVain;
    if (mayGrow) run.grewAtMs = now;
    run.tickDueMs = opened || mayGrow ? now : now + scheduler.tickMs;
    this.lookLater(run);
  }

  /** Waits as production does: a tick's length, or where attempts are short until it is time to look for ends. */
  private lookLater(run: JobRun): void {
    const { deps, scenario } = this.parts;
    const { session, tickDueMs } = run;
    const now = deps.clock.now();
    const isLooking = scenario.scheduler.looks && !scenario.scheduler.wakeOnEnd && session !== undefined;
    const pauseMs = isLooking ? pauseBeforeLook(deps, session, now) : Infinity;
    if (now + pauseMs >= tickDueMs) this.tickAt(run, tickDueMs);
    else
      run.nextTick = this.parts.queue.schedule(epochMs(now + pauseMs), {
        kind: 'look',
        subject: run.job.id,
        run: () => this.look(run),
      });
  }

  private async look(run: JobRun): Promise<void> {
    run.nextTick = undefined;
    if (run.state !== 'running') return;
    const { notes } = await this.parts.deps.attempts.told({ jobId: run.job.id, shards: 1 });
    if (notes.length > 0) await this.tick(run);
    else this.lookLater(run);
  }

  private async end(run: JobRun, error: string | undefined): Promise<void> {
    const { deps } = this.parts;
    const { session, job } = run;
    invariant(session !== undefined, 'a job ended before it began', { jobId: job.id });
    run.state = error === undefined ? 'succeeded' : 'failed';
    run.error = error;
    run.endedAtMs = deps.clock.now();
    await deps.jobs.update(job.id, ['running'], { state: run.state, endedAt: deps.clock.now() });
    await leaveJob(deps, session);
    this.endedJobs += 1;
    this.keepShort(run, false);
    this.parts.note(run.state, job.id);
    this.parts.onEnd(run);
  }

  /** Gives back what an ended job holds, once the last of its attempts has left: as Finish does. */
  async release({ job, session }: JobRun): Promise<void> {
    await settleAttempts(this.parts.deps, { jobId: job.id, shards: 1 }, durationMs(0));
    await this.parts.deps.ledger.release(job.id);
    if (session !== undefined) session.grant = 0;
    this.wakeShort();
  }

  private spareSlots(): number {
    return this.parts.deps.config.totalSlots - this.parts.capacity.occupiedSlots;
  }

  private isShort(session: Session, { slotsShort }: TickDecision): boolean {
    const { config, clock } = this.parts.deps;
    const demand = slotDemand(session.state, ownPlaces(session.state, clock.now()));
    return session.grant < Math.min(config.totalSlots, ownSlotsAlone(session), demand + slotsShort);
  }

  private keepShort(run: JobRun, isShort: boolean): void {
    const there = this.short.indexOf(run);
    if (!isShort && there >= 0) this.short.splice(there, 1);
    if (!isShort || there >= 0) return;
    const after = this.short.findIndex(({ job }) => job.index > run.job.index);
    this.short.splice(after < 0 ? this.short.length : after, 0, run);
  }

  /** Slots have become free: the jobs that have waited longest are asked, one for each. */
  private wakeShort(): void {
    if (!this.parts.scenario.scheduler.wakeOnEnd) return;
    for (const run of this.short.slice(0, Math.max(0, this.spareSlots()))) this.tickSoon(run);
  }

  /** Others' ticks have given these more than they know of. */
  private wakeRaised(): void {
    const { capacity } = this.parts;
    for (const run of this.short) {
      const slots = capacity.peek(run.job.id)?.slots ?? 0;
      // What it has seen and has no room for is no news: it would be woken without end.
      if (run.session !== undefined && slots > Math.max(run.session.grant, run.slotsSeen)) this.tickSoon(run);
    }
  }

  private get isFair(): boolean {
    return this.parts.scenario.scheduler.sharing !== 'first-come';
  }

  /** Budgets: no job uses more than it was granted, and all grants together are no more than there is. */
  private check(session: Session): void {
    const { deps, capacity, scenario } = this.parts;
    const { totalSlots } = deps.config;
    // Where kills act at once, what was told to stop has left its slot, though its scheduler has not seen it yet.
    const leaves = scenario.scheduler.cancel === 'immediate';
    let granted = capacity.occupiedSlots;
    if (granted > totalSlots && leaves)
      granted = this.runs.reduce((sum, { job }) => sum + (capacity.peek(job.id)?.slots ?? 0), 0);
    invariant(granted <= totalSlots, 'more slots granted than there are', { granted, totalSlots });
    const own = capacity.peek(session.jobId);
    const held = own === undefined ? 0 : occupiedBy(own);
    const live = session.state.live.size - (leaves ? stoppingOf(session) : 0);
    invariant(live <= held, 'a job uses more slots than it holds', {
      jobId: session.jobId,
      live,
      grant: session.grant,
    });
  }

  private noteDecisions(run: JobRun, { decisions }: TickDecision): void {
    for (const decision of decisions) {
      if (decision.kind === 'allocate')
        run.asked.push({ atMs: this.parts.deps.clock.now(), slots: decision.slots });
      if (decision.kind === 'copy-output') run.copiedOutputs.push(decision);
      if (decision.kind === 'lose-output') {
        const { attemptId, by, use } = decision;
        run.lostOutputs.push({ attemptId, atMs: this.parts.deps.clock.now(), by, use });
        if (use !== undefined) readInPlace(run.job, attemptId, use);
      }
      const what =
        decision.kind === 'allocate'
          ? `${decision.slots} ${decision.reason}`
          : 'attemptId' in decision
            ? `${decision.attemptId} ${decision.kind === 'lose-output' ? decision.how : decision.reason}`
            : String(decision.stage);
      this.parts.note(decision.kind, `${run.job.id} ${what}`);
    }
  }
}
