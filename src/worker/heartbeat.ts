import type { AttemptId } from '../contracts/ids.ts';
import type { AttemptOrder } from '../contracts/records.ts';
import { type DurationMs, durationMs, elapsedMs, type EpochMs } from '../contracts/units.ts';
import type { AttemptStore, TaskSpace } from '../ports/attempt-store.ts';
import type { Clock } from '../ports/clock.ts';
import type { Log } from '../ports/log.ts';
import type { AttemptMeter } from './attempt-meter.ts';
import {
  firstReportMs,
  isUnforetold,
  listenAfterMs,
  lookAfterMs,
  type Mark,
  markOf,
  nextReportMs,
} from '../core/model/report-cadence.ts';
import { watchStalls } from './stall-watch.ts';

export interface HeartbeatOptions {
  readonly attempts: AttemptStore;
  readonly clock: Clock;
  readonly log: Log;
  readonly space: TaskSpace;
  readonly attemptId: AttemptId;
  readonly meter: AttemptMeter;
  /** When it claimed its attempt: its age is counted from there by whoever reads its reports. */
  readonly claimedAt: EpochMs;
  /** Longest time between two reports. */
  readonly every: DurationMs;
  /** Processor time that this process has used, in milliseconds; absent where nobody tells: then no stall is noticed. */
  readonly cpuMs?: (() => number) | undefined;
  /** Called once when the attempt is told to cancel; no report follows. */
  onCancel(): void;
}

const start: Mark = { ranMs: 0, share: 0 };

/**
 * Says how an attempt goes on, and hears its orders. Reports come seldom, since a write costs as much as five reads:
 * at growing intervals up to the longest, and out of turn, once between two others, where the attempt is not where
 * its last reports foretell. Between them it reads its orders.
 */
class Heartbeat {
  private readonly options: HeartbeatOptions;
  /** The last two reports that tell how far the attempt is. */
  private marks: readonly [Mark, Mark] | undefined;
  private reportAt: number;
  private listenAt: number;
  private wasOutOfTurn = false;

  constructor(options: HeartbeatOptions) {
    this.options = options;
    this.reportAt = firstReportMs(options.attemptId, options.every);
    this.listenAt = listenAfterMs(0, options.every);
  }

  /** Until the attempt is told to cancel, or stops: that has its own limit of time. */
  async run(stopped: AbortSignal): Promise<void> {
    const { clock, every } = this.options;
    for (;;) {
      const ranMs = this.ranMs();
      const wakeAt = Math.min(ranMs + lookAfterMs(ranMs, every), this.reportAt, this.listenAt);
      await clock.sleep(durationMs(wakeAt - ranMs), stopped);
      if (stopped.aborted) return;
      if ((await this.look()) === 'continue') continue;
      this.options.onCancel();
      return;
    }
  }

  private ranMs(): number {
    return elapsedMs(this.options.claimedAt, this.options.clock.now());
  }

  private async look(): Promise<AttemptOrder> {
    const ranMs = this.ranMs();
    const isDue = ranMs >= this.reportAt;
    const { meter } = this.options;
    const reached = meter.reached();
    meter.kept.noteLook(ranMs, reached);
    const mark = markOf(ranMs, reached);
    const isNews =
      !isDue &&
      !this.wasOutOfTurn &&
      mark !== undefined &&
      this.marks !== undefined &&
      isUnforetold(this.marks, mark);
    if (!isDue && !isNews && ranMs < this.listenAt) return 'continue';
    const { attempts, space, attemptId, log, every } = this.options;
    this.listenAt = ranMs + listenAfterMs(ranMs, every);
    try {
      return await (isDue || isNews ? this.report(isNews) : attempts.orders(space, attemptId));
    } catch (error) {
      // What fails is left out: the next report says more.
      log.warn('heartbeat-failed', { attemptId, error: String(error) });
      return 'continue';
    }
  }

  private async report(isNews: boolean): Promise<AttemptOrder> {
    const { attempts, clock, space, attemptId, meter, every } = this.options;
    const ranMs = this.ranMs();
    const nextMs = nextReportMs(ranMs, every);
    this.reportAt = ranMs + nextMs;
    this.wasOutOfTurn = isNews;
    const progress = meter.progress();
    const mark = markOf(ranMs, progress);
    if (mark !== undefined) this.marks = [this.marks?.[1] ?? start, mark];
    meter.kept.noteReport(ranMs, progress);
    const order = await attempts.report(space, attemptId, progress, clock.now(), nextMs);
    if (isNews && order === 'continue') await attempts.tell(space, { attemptId, kind: 'news' }, clock.now());
    return order;
  }
}

/** Reports progress whatever the data does, until told to cancel or stopped. `stop` resolves when no report is under way. */
export function startHeartbeat(options: HeartbeatOptions): { stop(): Promise<void> } {
  const stopped = new AbortController();
  const { cpuMs } = options;
  const beating = new Heartbeat(options).run(stopped.signal);
  const watching = cpuMs === undefined ? undefined : watchStalls({ ...options, cpuMs }, stopped.signal);
  return {
    async stop() {
      stopped.abort();
      await Promise.all([beating, watching]);
    },
  };
}
