import type { AttemptId } from '../contracts/ids.ts';
import { type Worker, workerKinds } from '../contracts/job-spec.ts';
import { limits } from '../contracts/limits.ts';
import type { EpochMs } from '../contracts/units.ts';
import {
  afterCall,
  afterRefusal,
  type ApiPace,
  paceAt,
  startPace,
  takeCall,
} from '../core/capacity/api-pace.ts';
import type { AttemptStore, TaskSpace } from '../ports/attempt-store.ts';
import type { Clock } from '../ports/clock.ts';
import type { Launcher, LaunchOutcome, LaunchRequest } from '../ports/launcher.ts';

export interface LaunchQueueDeps {
  readonly attempts: AttemptStore;
  readonly launcher: Launcher;
  readonly clock: Clock;
  /** Whether the job is still this scheduler's: one that slept begins nothing when it wakes. */
  readonly mayBegin: () => boolean;
}

/** A launch in its turn. */
export interface QueuedLaunch {
  readonly kind: Worker['kind'];
  /** Made when it is its turn: what it is to read may have got further copies meanwhile. */
  readonly request: () => LaunchRequest;
  /** Attempts that ride with it, whose records are made before it is; absent: none. */
  readonly riders?: () => readonly AttemptId[];
  /** Whether it is still wanted when it is its turn. */
  readonly isWanted: () => boolean;
  /** Whether a scheduler before this one may have made it: it is made again then, and not taken back. Absent: none has. */
  readonly mayBeMade?: () => boolean;
}

/** What became of a launch, and when it was made. */
export interface LaunchNews extends LaunchOutcome {
  readonly at: EpochMs;
  /**
   * Present where the host was not asked for this launch: one before it was refused, and while it waited for its turn it would
   * have held a slot.
   */
  readonly takenBack?: QueuedLaunch;
}

/** Launches that the host is asked for at once, by kind, and how many such calls may be under way. */
const batchSize: Readonly<Record<Worker['kind'], number>> = { lambda: 40, fargate: limits.launchesPerCall };
const lanes = 2;

type Entry = readonly [AttemptId, QueuedLaunch];

/** Whether a launch was not made because its host has no room for it, or is asked too fast. */
export const wantsRoom = ({ outcome, isUnanswered }: LaunchOutcome): boolean =>
  outcome === 'throttled' && isUnanswered !== true;

/**
 * The launches that a scheduler has decided on and not made yet. They are made beside its ticks, in order, as fast as
 * the host's services take them, so that no tick waits for any; each tick takes what became of them. An attempt's record
 * is made just before its launch: whoever takes the job over launches what has none.
 *
 * One scheduler's alone. What it holds is lost with it, and follows from the decision log.
 */
export class LaunchQueue {
  private readonly deps: LaunchQueueDeps;
  private readonly space: TaskSpace;
  private readonly waiting = new Map<Worker['kind'], Map<AttemptId, QueuedLaunch>>();
  private readonly paces = new Map<Worker['kind'], ApiPace>();
  private readonly underWay = new Map<AttemptId, Promise<void>>();
  private readonly lanes: Record<Worker['kind'], number> = { lambda: 0, fargate: 0 };
  private readonly recording = new Map<AttemptId, Promise<unknown>>();
  private news: LaunchNews[] = [];
  /** Launches that have a record and were not made, such as those refused: to whoever follows they look as if they were made. */
  private readonly refused = new Set<AttemptId>();
  private failure: { readonly cause: unknown } | undefined;
  private isClosed = false;

  constructor(deps: LaunchQueueDeps, space: TaskSpace) {
    this.deps = deps;
    this.space = space;
    const now = deps.clock.now();
    for (const kind of workerKinds) {
      this.waiting.set(kind, new Map());
      const rate = deps.launcher.terms?.(kind).rate;
      if (rate !== undefined) this.paces.set(kind, startPace(rate, now));
    }
  }

  /** Launches that were not begun yet. */
  get size(): number {
    return workerKinds.reduce((sum, kind) => sum + (this.waiting.get(kind)?.size ?? 0), 0);
  }

  /** Whether every launch was made that was begun: nothing waits, was refused, or has failed. */
  get isDone(): boolean {
    return (
      this.refused.size === 0 && this.size === 0 && this.underWay.size === 0 && this.failure === undefined
    );
  }

  /**
   * Launches of a kind that could be begun now, while its host refuses some: Infinity where it takes them as they come, or
   * lets them wait itself.
   */
  roomOf(kind: Worker['kind']): number {
    const pace = this.paces.get(kind);
    if (pace === undefined || pace.perS >= pace.rate.perS || this.waits(kind)) return Infinity;
    const { tokens } = paceAt(pace, this.deps.clock.now());
    return Math.max(0, Math.floor(tokens) - (this.waiting.get(kind)?.size ?? 0));
  }

  /** Takes it as a refusal that launches of a kind were accepted and found no place after all. */
  noteRefusal(kind: Worker['kind']): void {
    const pace = this.paces.get(kind);
    if (pace === undefined || this.waits(kind)) return;
    const now = this.deps.clock.now();
    this.paces.set(kind, afterRefusal(pace, now));
    this.takeBack(kind, now);
  }

  /** Adds a launch at the end; no effect where it waits already. */
  add(attemptId: AttemptId, launch: QueuedLaunch): void {
    const waiting = this.waiting.get(launch.kind);
    if (waiting?.has(attemptId) === false) waiting.set(attemptId, launch);
  }

  /** Begins as many launches as may be made now; more follow as these end. Waits for none. */
  pump(): void {
    if (this.isClosed || this.failure !== undefined || !this.deps.mayBegin()) return;
    for (const kind of workerKinds) this.pumpKind(kind);
  }

  /** What became of launches since the last call, in the order in which it was known. Throws what a launch threw. */
  take(): readonly LaunchNews[] {
    if (this.failure !== undefined) throw this.failure.cause;
    return this.news.splice(0);
  }

  /** Resolves once the attempt's record is not just being made: what is written then comes after it. */
  async recorded(attemptId: AttemptId): Promise<void> {
    await this.recording.get(attemptId);
  }

  /** Resolves once nothing is under way. Where the pace holds launches back, those wait on. */
  async settled(): Promise<void> {
    while (this.underWay.size > 0) await Promise.all(this.underWay.values());
  }

  /** Begins no more launches, and resolves once none is under way. */
  async close(): Promise<void> {
    this.isClosed = true;
    await this.settled();
  }

  private pumpKind(kind: Worker['kind']): void {
    while (this.lanes[kind] < lanes && !this.isClosed && this.failure === undefined) {
      const batch = this.nextBatch(kind);
      if (batch.length === 0) return;
      this.begin(kind, batch);
    }
  }

  /** The next launches that are wanted, as many as one call takes and the pace allows. */
  private nextBatch(kind: Worker['kind']): readonly Entry[] {
    const waiting = this.waiting.get(kind);
    const batch: Entry[] = [];
    for (const entry of waiting ?? []) {
      const [attemptId, launch] = entry;
      if (batch.length >= batchSize[kind]) break;
      if (launch.isWanted()) {
        // One that is under way comes to its turn again.
        if (this.underWay.has(attemptId)) continue;
        if (!this.takeTurn(kind)) break;
        batch.push(entry);
      }
      waiting?.delete(attemptId);
    }
    return batch;
  }

  private takeTurn(kind: Worker['kind']): boolean {
    const pace = this.paces.get(kind);
    if (pace === undefined) return true;
    const taken = takeCall(pace, this.deps.clock.now());
    if (taken !== undefined) this.paces.set(kind, taken);
    return taken !== undefined;
  }

  private begin(kind: Worker['kind'], batch: readonly Entry[]): void {
    this.lanes[kind] += 1;
    const done = this.make(kind, batch)
      .catch((cause: unknown) => {
        this.failure ??= { cause };
      })
      .then(() => {
        this.lanes[kind] -= 1;
        for (const [attemptId] of batch) this.underWay.delete(attemptId);
        this.pump();
      });
    for (const [attemptId] of batch) this.underWay.set(attemptId, done);
  }

  private waits(kind: Worker['kind']): boolean {
    return this.deps.launcher.terms?.(kind).waits === true;
  }

  /** Takes back what is behind launches that were refused: it would hold slots for as long as there is no room. */
  private takeBack(kind: Worker['kind'], at: EpochMs): void {
    const waiting = this.waiting.get(kind);
    for (const [attemptId, launch] of waiting ?? []) {
      if (this.underWay.has(attemptId) || launch.mayBeMade?.() === true) continue;
      waiting?.delete(attemptId);
      if (launch.isWanted()) this.news.push({ attemptId, outcome: 'throttled', at, takenBack: launch });
    }
  }

  private async make(kind: Worker['kind'], batch: readonly Entry[]): Promise<void> {
    const { launcher, clock } = this.deps;
    const recorded = batch.flatMap(([attemptId, { riders }]) => [attemptId, ...(riders?.() ?? [])]);
    await Promise.all(recorded.map((attemptId) => this.record(attemptId)));
    // One that slept over its records leaves its launches to whoever has taken the job over, or makes them later.
    if (!this.deps.mayBegin()) {
      for (const [attemptId, launch] of batch) {
        this.waiting.get(kind)?.set(attemptId, launch);
        this.refused.add(attemptId);
      }
      return;
    }
    const at = clock.now();
    const outcomes = await launcher.launch(batch.map(([, { request }]) => request()));
    for (const outcome of outcomes) {
      this.news.push({ ...outcome, at });
      if (outcome.outcome === 'accepted') this.refused.delete(outcome.attemptId);
      else this.refused.add(outcome.attemptId);
      const pace = this.paces.get(kind);
      if (pace === undefined) continue;
      // No answer says nothing of how much the host takes.
      if (outcome.isUnanswered === true) continue;
      this.paces.set(kind, wantsRoom(outcome) ? afterRefusal(pace, clock.now()) : afterCall(pace));
    }
    if (!this.waits(kind) && outcomes.some(wantsRoom)) this.takeBack(kind, at);
  }

  private async record(attemptId: AttemptId): Promise<void> {
    const { attempts, clock } = this.deps;
    const creating = attempts.create(this.space, attemptId, clock.now());
    // Whoever waits for it need not know how it ended.
    this.recording.set(
      attemptId,
      creating.catch(() => undefined),
    );
    try {
      await creating;
    } finally {
      this.recording.delete(attemptId);
    }
  }
}
