import type { Phase, Progress } from '../contracts/progress.ts';
import type { EpochMs } from '../contracts/units.ts';
import { ProgressHistory } from '../core/model/progress-history.ts';
import { requestsOfAttempt } from './attempt-requests.ts';
import type { AttemptTransfers } from './attempt-transfers.ts';
import { interpolate } from './interpolate.ts';
import type { AttemptDraw, SimStage, SimTask } from './sim-job.ts';

/** What an attempt does, and where. */
export interface AttemptWork {
  readonly stage: SimStage;
  readonly task: SimTask;
  readonly draw: AttemptDraw;
  readonly transfers: AttemptTransfers;
  readonly now: () => EpochMs;
  /** Work per millisecond that its node does for it now. */
  readonly speed: () => number;
  /** Whether it counts its requests, as production's workers do. */
  readonly countsRequests: boolean;
}

/** How far an attempt is: its phases, the work that it has done in the present one, and what it tells of that. */
export class AttemptProgress {
  phase: Phase = 'init';
  private readonly work: AttemptWork;
  private phaseSince: EpochMs;
  private readonly phaseMs: Record<Phase, number> = { init: 0, read: 0, compute: 0, write: 0 };
  /** Work done in the present phase at speed 1, up to `settledAt`, and how much of it there is. */
  private doneMs = 0;
  private goalMs = 0;
  private settledAt: EpochMs;
  private reported = 0;
  private readonly history = new ProgressHistory();

  constructor(work: AttemptWork) {
    this.work = work;
    this.phaseSince = work.now();
    this.settledAt = work.now();
  }

  /** Whether what it does goes as fast as its node. */
  get isWorking(): boolean {
    return this.phase === 'compute' || this.phase === 'write';
  }

  /** Work of the present phase that is not done yet, at speed 1. */
  get undoneMs(): number {
    return this.goalMs - this.doneMs;
  }

  enter(phase: Phase): void {
    const now = this.work.now();
    this.phaseMs[this.phase] += now - this.phaseSince;
    this.phase = phase;
    this.phaseSince = now;
  }

  /** Begins so much work. */
  begin(phase: Phase, goalMs: number): void {
    this.enter(phase);
    this.doneMs = 0;
    this.goalMs = goalMs;
    this.settledAt = this.work.now();
  }

  /** Brings the work up to the present, at the speed until now. */
  settle(): void {
    const now = this.work.now();
    if (this.isWorking)
      this.doneMs = Math.min(this.goalMs, this.doneMs + (now - this.settledAt) * this.work.speed());
    this.settledAt = now;
  }

  /** All of the present phase's work is done. */
  finish(): void {
    this.doneMs = this.goalMs;
    this.settledAt = this.work.now();
  }

  /** Share of its input that it will have read at a time to come; undefined without input, which tells nothing. */
  shareAt(at: number): number | undefined {
    const { stage, task, draw, transfers } = this.work;
    if (task.inputBytes === 0) return undefined;
    if (this.phase !== 'compute' || transfers.isWriting) return this.shareRead();
    const doneMs = Math.min(this.goalMs, this.doneMs + (at - this.settledAt) * this.work.speed());
    return this.shareOf(draw.workMs === 0 ? 1 : doneMs / draw.workMs, stage);
  }

  /** Share of its input that counts as read. */
  private shareRead(): number {
    const { stage, draw, transfers } = this.work;
    if (this.phase === 'init') return 0;
    if (this.phase === 'write') return 1;
    if (this.phase === 'read') return stage.scenario.readShare * transfers.shareFetched();
    const worked = this.shareOf(draw.workMs === 0 ? 1 : this.doneMs / draw.workMs, stage);
    return worked + (1 - worked) * (transfers.shareWritten() ?? 0);
  }

  /** The same once such a share of the work is done. */
  private shareOf(done: number, { scenario }: SimStage): number {
    const readShare = this.work.transfers.remoteBytes > 0 ? scenario.readShare : 0;
    return readShare + (1 - readShare) * interpolate(scenario.progress, done);
  }

  /** What it reports when it has run for so long. */
  report(ranMs: number): Progress {
    const progress = this.told();
    this.reported += 1;
    this.history.note(ranMs, progress);
    return progress;
  }

  /** What it tells of itself now. */
  told(): Progress {
    this.settle();
    const { stage, task, transfers, countsRequests, now } = this.work;
    const { inputBytes } = task;
    const phaseMs = { ...this.phaseMs };
    const fetched = stage.upstream.length === 0 ? undefined : transfers.fetched();
    phaseMs[this.phase] += now() - this.phaseSince;
    return {
      bytesRead: Math.floor(inputBytes * Math.min(1, this.shareRead())),
      bytesTotal: inputBytes,
      ...(this.history.text === undefined ? {} : { history: this.history.text }),
      ...{ recordsIn: 0, recordsOut: 0 },
      phase: this.phase,
      phaseMs,
      peakMemoryBytes: 0,
      ...(fetched === undefined ? {} : { fetched }),
      handsOn: false,
      ...(countsRequests ? { requests: requestsOfAttempt(this.reported) } : {}),
    };
  }
}
