import { DynamoCapacityStore } from '../../src/adapters/aws/dynamo-capacity-store.ts';
import { type LedgerOptions, RuledCapacityLedger } from '../../src/app/capacity-ledger.ts';
import type { JobId } from '../../src/contracts/ids.ts';
import { durationMs, epochMs } from '../../src/contracts/units.ts';
import { ModelTable, type Units } from './model-table.ts';

/** A job that has tasks to run, and the clock of its scheduler. */
export interface WorkingJob {
  readonly jobId: JobId;
  /** The process that serves it. */
  readonly process: number;
  readonly weight?: number;
  readonly taskS: number;
  readonly beginsS: number;
  owed: number;
  /** Backups that it would run, and those that it does. */
  readonly backups?: number;
  running?: number;
  /** When each of what runs ends. */
  live: number[];
  grant: number;
  endedS?: number;
  /** Its scheduler says nothing any more; what runs goes on. */
  isDead?: boolean;
}

/**
 * Schedulers that serve jobs by the ledger over a table that counts units, in virtual time: each second every
 * job's scheduler says what it wants, and launches what it was granted.
 */
export class LedgerAtWork {
  readonly perSecond: Units[] = [{ writes: 0, reads: 0, largest: 0 }];
  readonly table = new ModelTable();
  readonly jobs: WorkingJob[] = [];
  readonly ledgers: RuledCapacityLedger[];
  mostLive = 0;
  nowS = 0;
  private readonly totalSlots: number;
  private readonly isAtOnce: boolean;
  private readonly clocksOffMs: readonly number[];

  constructor(
    options: LedgerOptions & {
      readonly totalSlots: number;
      readonly clocksOffMs: readonly number[];
      /** Whether all processes' requests interleave; else one process follows the other in each second. */
      readonly isAtOnce?: boolean;
    },
  ) {
    this.totalSlots = options.totalSlots;
    this.isAtOnce = options.isAtOnce ?? false;
    this.clocksOffMs = options.clocksOffMs;
    this.table.count = ({ writes, reads, largest }) => {
      const units = this.units;
      units.writes += writes;
      units.reads += reads;
      units.largest = Math.max(units.largest, largest);
    };
    this.ledgers = options.clocksOffMs.map(
      () =>
        new RuledCapacityLedger(new DynamoCapacityStore(this.table.table, () => Promise.resolve()), options),
    );
  }

  /** What the ledger was asked for in this second. */
  get units(): Units {
    return this.perSecond[this.nowS] ?? { writes: 0, reads: 0, largest: 0 };
  }

  /** Units of writes in all seconds. */
  get writes(): number {
    return this.perSecond.reduce((sum, { writes }) => sum + writes, 0);
  }

  /** Units of writes in the second that had most. */
  get mostWrites(): number {
    return Math.max(...this.perSecond.map(({ writes }) => writes));
  }

  get largestWrite(): number {
    return Math.max(...this.perSecond.map(({ largest }) => largest));
  }

  get live(): number {
    return this.jobs.reduce((sum, { live }) => sum + live.length, 0);
  }

  add(job: Omit<WorkingJob, 'live' | 'grant'>): WorkingJob {
    const added: WorkingJob = { ...job, live: [], grant: 0 };
    this.jobs.push(added);
    return added;
  }

  /** A second goes by. */
  async second(): Promise<void> {
    this.nowS += 1;
    this.perSecond[this.nowS] = { writes: 0, reads: 0, largest: 0 };
    const running = this.jobs.filter(({ beginsS, endedS }) => beginsS <= this.nowS && endedS === undefined);
    const processes = this.ledgers.map((_, number) => running.filter(({ process }) => process === number));
    const serve = (jobs: readonly WorkingJob[]) => Promise.all(jobs.map((job) => this.tick(job)));
    if (this.isAtOnce) await Promise.all(processes.map(serve));
    else for (const jobs of processes) await serve(jobs);
    this.mostLive = Math.max(this.mostLive, this.live);
  }

  async seconds(count: number): Promise<void> {
    for (let second = 0; second < count; second++) await this.second();
  }

  private async tick(job: WorkingJob): Promise<void> {
    job.live = job.live.filter((endsS) => endsS > this.nowS);
    if (job.isDead === true) return;
    const ledger = this.ledgers[job.process];
    if (ledger === undefined) throw new Error('no such process');
    if (job.owed === 0 && job.live.length === 0) {
      await ledger.release(job.jobId);
      job.endedS = this.nowS;
      return;
    }
    const wanted = Math.min(this.totalSlots, job.live.length + job.owed);
    const context = {
      totalSlots: this.totalSlots,
      now: epochMs(1_000_000_000 + this.nowS * 1_000 + (this.clocksOffMs[job.process] ?? 0)),
      length: durationMs(60_000),
      live: job.live.length,
      since: epochMs(job.beginsS),
      ...(job.weight === undefined ? {} : { weight: job.weight }),
    };
    const { backups } = job;
    if (backups === undefined) job.grant = await ledger.resize(job.jobId, wanted, context);
    else {
      const said = { running: job.running ?? 0, wanted: backups };
      job.grant = await ledger.resize(job.jobId, wanted, { ...context, backups: said });
      const asking = { wanted: backups, cap: this.totalSlots / 10 };
      job.running = Math.min(backups, await ledger.admitBackups(job.jobId, asking, context));
    }
    for (; job.owed > 0 && job.live.length < job.grant; job.owed--) job.live.push(this.nowS + job.taskS);
  }
}
