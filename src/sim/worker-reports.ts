import type { AttemptId } from '../contracts/ids.ts';
import { type DurationMs, durationMs, epochMs } from '../contracts/units.ts';
import {
  firstReportMs,
  isUnforetold,
  listenAfterMs,
  lookAfterMs,
  type Mark,
  nextReportMs,
} from '../core/model/report-cadence.ts';
import { cancelEvent, type EventQueue, type SimEvent } from './event-queue.ts';
import type { Scenario } from './scenario.ts';

/** A worker as its reports see it. Times since its claim. */
export interface ReportingWorker {
  readonly attemptId: AttemptId;
  ranMs(): number;
  /** Work of its task, as far as somebody could expect it. */
  readonly expectedMs: number;
  /** Share of its input that it will have read when it has run for so long, as it goes now; undefined without input. */
  shareAt(ranMs: number): number | undefined;
  /** Tells how far it is, and that it will write again within `nextMs`; `isNews`: it is not where one would think. */
  report(nextMs: DurationMs, isNews: boolean): void | Promise<void>;
  /** Reads its orders. */
  listen(): Promise<void>;
}

/** When a worker reports, and when it learns what it was told. */
export interface Reports {
  /** Until the first report. */
  readonly firstMs: DurationMs;
  /** It has claimed its attempt. */
  begin(): void;
  /** It goes on at another speed, or in another phase. */
  moved(): void;
  /** It was told to stop. */
  ordered(): void;
  stop(): void;
}

interface Place {
  readonly queue: EventQueue;
  readonly now: () => number;
}

/** Reports come no faster than this, however short the work. */
const shortestReportMs = 100;

/** At one interval; orders are learnt with reports. */
class SteadyReports implements Reports {
  readonly firstMs: DurationMs;
  private readonly place: Place;
  private readonly event: Pick<SimEvent, 'kind' | 'subject' | 'run'>;
  private next: SimEvent | undefined;

  constructor(worker: ReportingWorker, place: Place, { everyMs, tenths }: Scenario['reports']) {
    this.place = place;
    const tenthMs = Math.max(shortestReportMs, Math.min(everyMs, Math.round(worker.expectedMs / 10)));
    this.firstMs = durationMs(Math.min(everyMs, tenths ? tenthMs : everyMs));
    this.event = {
      kind: 'report',
      subject: worker.attemptId,
      run: () => {
        this.begin();
        return worker.report(this.firstMs, false);
      },
    };
  }

  begin(): void {
    this.next = this.place.queue.schedule(epochMs(this.place.now() + this.firstMs), this.event);
  }

  moved(): void {
    // The next report tells.
  }

  ordered(): void {
    // The next report tells.
  }

  stop(): void {
    cancelEvent(this.next);
  }
}

const start: Mark = { ranMs: 0, share: 0 };

/**
 * As production's workers do: at growing intervals, out of turn once between two others where the attempt is not where
 * its last reports foretell, and with orders read between them. A look at oneself that finds nothing is no event here:
 * the first that will find something is worked out, since progress goes as it goes until the worker says otherwise.
 */
class WorkerReports implements Reports {
  readonly firstMs: DurationMs;
  private readonly worker: ReportingWorker;
  private readonly place: Place;
  private readonly everyMs: number;
  private marks: readonly [Mark, Mark] | undefined;
  private reportAt = 0;
  private heardAt = 0;
  private wasOutOfTurn = false;
  private next: SimEvent | undefined;
  private listening: SimEvent | undefined;

  constructor(worker: ReportingWorker, place: Place, { everyMs }: Scenario['reports']) {
    this.worker = worker;
    this.place = place;
    this.everyMs = everyMs;
    this.firstMs = firstReportMs(worker.attemptId, everyMs);
  }

  begin(): void {
    this.reportAt = this.firstMs;
    this.plan();
  }

  moved(): void {
    if (this.marks !== undefined && !this.wasOutOfTurn) this.plan();
  }

  ordered(): void {
    if (this.listening !== undefined || this.reportAt === 0) return;
    const ranMs = this.worker.ranMs();
    let at = this.heardAt;
    do at += listenAfterMs(at, this.everyMs);
    while (at <= ranMs);
    if (at >= this.reportAt) return; // The report brings its orders.
    this.listening = this.schedule('listen', at, async () => {
      this.listening = undefined;
      this.heardAt = this.worker.ranMs();
      await this.worker.listen();
    });
  }

  stop(): void {
    cancelEvent(this.next);
    cancelEvent(this.listening);
  }

  private schedule(kind: string, atRanMs: number, run: () => void | Promise<void>): SimEvent {
    const afterMs = Math.max(0, atRanMs - this.worker.ranMs());
    const at = epochMs(this.place.now() + afterMs);
    return this.place.queue.schedule(at, { kind, subject: this.worker.attemptId, run });
  }

  private plan(): void {
    cancelEvent(this.next);
    const newsAt = this.newsAt();
    this.next =
      newsAt === undefined
        ? this.schedule('report', this.reportAt, () => this.report(false))
        : this.schedule('news', newsAt, () => this.report(true));
  }

  /** When a look will first find it elsewhere than its reports foretell; undefined where the next report comes first. */
  private newsAt(): number | undefined {
    if (this.marks === undefined || this.wasOutOfTurn) return undefined;
    let ranMs = this.worker.ranMs();
    for (;;) {
      ranMs += lookAfterMs(ranMs, this.everyMs);
      if (ranMs >= this.reportAt) return undefined;
      const share = this.worker.shareAt(ranMs);
      if (share === undefined) return undefined;
      if (isUnforetold(this.marks, { ranMs, share })) return ranMs;
    }
  }

  private async report(isNews: boolean): Promise<void> {
    const ranMs = this.worker.ranMs();
    const nextMs = nextReportMs(ranMs, this.everyMs);
    this.reportAt = ranMs + nextMs;
    this.heardAt = ranMs;
    this.wasOutOfTurn = isNews;
    const share = this.worker.shareAt(ranMs);
    if (share !== undefined) this.marks = [this.marks?.[1] ?? start, { ranMs, share }];
    this.plan();
    await this.worker.report(nextMs, isNews);
  }
}

/** The reports of a worker, as the scenario has them. */
export const reportsOf = (worker: ReportingWorker, place: Place, settings: Scenario['reports']): Reports =>
  settings.cadence === 'worker'
    ? new WorkerReports(worker, place, settings)
    : new SteadyReports(worker, place, settings);
