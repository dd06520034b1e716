import type { Phase, Progress } from '../contracts/progress.ts';
import type { EpochMs } from '../contracts/units.ts';
import { KeptProgress } from '../core/model/progress-history.ts';
import { lookAfterMs } from '../core/model/report-cadence.ts';
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
  /** Whether it counts its requests and looks at itself, as production's workers do; and the longest time between two looks. */
  readonly isAsInProduction: boolean;
  readonly lookEveryMs: number;
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
  private readonly kept = new KeptProgress();
  /** Until it has claimed itself. */
  private claimedAt: EpochMs | undefined;
  /** When it next looks at itself, by its age. */
  private lookAt = 0;

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

  /** Its looks at itself begin. */
  claim(): void {
    if (!this.work.isAsInProduction) return;
    this.claimedAt = this.work.now();
    this.lookAt = this.lookAfter(0);
  }

  enter(phase: Phase): void {
    this.catchUp();
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
    this.catchUp();
    const now = this.work.now();
    if (this.isWorking)
      this.doneMs = Math.min(this.goalMs, this.doneMs + (now - this.settledAt) * this.work.speed());
    this.settledAt = now;
  }

  /** All of the present phase's work is done. */
  finish(): void {
    this.catchUp();
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

  private lookAfter(ranMs: number): number {
    return lookAfterMs(ranMs, this.work.lookEveryMs);
  }

  /**
   * The looks at itself that it has had since its state was last brought up to the present: no events, since all goes on evenly
   * from there. Of a transfer it is only known how far it is now.
   */
  private catchUp(): void {
    if (this.claimedAt === undefined) return;
    const ranMs = this.work.now() - this.claimedAt;
    const isTransfer = this.phase === 'read' || this.work.transfers.isWriting;
    for (; this.lookAt <= ranMs; this.lookAt += this.lookAfter(this.lookAt))
      if (!isTransfer) this.look(this.lookAt, this.shareAt(this.claimedAt + this.lookAt));
  }

  private look(ranMs: number, share = 0): void {
    this.kept.noteLook(ranMs, { bytesRead: this.bytesOf(share), bytesTotal: this.work.task.inputBytes });
  }

  private bytesOf(share: number): number {
    return Math.floor(this.work.task.inputBytes * Math.min(1, share));
  }

  /** What it reports when it has run for so long. */
  report(ranMs: number): Progress {
    this.settle();
    if (this.claimedAt !== undefined) this.look(ranMs, this.shareRead());
    const progress = this.told();
    this.reported += 1;
    this.kept.noteReport(ranMs, progress);
    return progress;
  }

  /** What it tells of itself now. */
  told(): Progress {
    this.settle();
    const { stage, task, transfers, isAsInProduction, now } = this.work;
    const { inputBytes } = task;
    const phaseMs = { ...this.phaseMs };
    const fetched = stage.upstream.length === 0 ? undefined : transfers.fetched();
    phaseMs[this.phase] += now() - this.phaseSince;
    return {
      bytesRead: this.bytesOf(this.shareRead()),
      bytesTotal: inputBytes,
      ...this.kept.texts,
      ...{ recordsIn: 0, recordsOut: 0 },
      phase: this.phase,
      phaseMs,
      peakMemoryBytes: 0,
      ...(fetched === undefined ? {} : { fetched }),
      handsOn: false,
      ...(isAsInProduction ? { requests: requestsOfAttempt(this.reported) } : {}),
    };
  }
}
