import { expect, it } from 'vitest';
import { DynamoCapacityStore } from '../../src/adapters/aws/dynamo-capacity-store.ts';
import { RuledCapacityLedger } from '../../src/app/capacity-ledger.ts';
import { headKey } from '../../src/adapters/aws/ledger-item.ts';
import { durationMs, epochMs } from '../../src/contracts/units.ts';
import { createRng, type Rng } from '../../src/lib/rng.ts';
import { freshJobId } from '../contract/ports/builders.ts';
import { ModelTable } from '../support/model-table.ts';

const totalSlots = 24;
const clocksOffMs = [0, 3_600_000, -3_600_000];

interface Job {
  readonly jobId: ReturnType<typeof freshJobId>;
  readonly weight: number;
  readonly beginsS: number;
  process: number;
  epoch: number;
  owed: number;
  live: number[];
  grant: number;
  isBusy: boolean;
  isOver: boolean;
}

/** Microtasks and what they start get their turn before time goes on. */
const settle = async (): Promise<void> => {
  for (let turn = 0; turn < 4; turn++) await new Promise(setImmediate);
};

/**
 * Schedulers of three processes, whose clocks are an hour apart, over one table. Any request may be held up for many
 * seconds and land then; any scheduler may be followed by another meanwhile, and thaws later.
 */
class World {
  readonly table = new ModelTable();
  readonly jobs: Job[];
  nowS = 0;
  strikes = 0;
  private readonly ledgers: readonly RuledCapacityLedger[];
  private readonly rng: Rng;
  private readonly lengthMs: number;
  private held: { readonly atS: number; readonly go: () => void }[] = [];

  constructor(seed: string, options: { readonly lengthMs: number; readonly longestS: number }) {
    this.rng = createRng(seed);
    this.lengthMs = options.lengthMs;
    this.table.before = (operation) => {
      if (operation === 'remove') this.strikes += 1;
      if (this.rng.next() > 0.08 || this.nowS > 150) return undefined;
      const atS = this.nowS + 1 + Math.floor(this.rng.next() * options.longestS);
      return new Promise((go) => {
        this.held.push({ atS, go });
      });
    };
    const store = () => new DynamoCapacityStore(this.table.table, () => Promise.resolve());
    this.ledgers = clocksOffMs.map(() => new RuledCapacityLedger(store(), { spacingPerJobMs: 0 }));
    this.jobs = Array.from({ length: 7 }, (_, index) => ({
      jobId: freshJobId(),
      weight: 1 + (index % 2),
      beginsS: Math.floor(this.rng.next() * 60),
      process: index % 3,
      epoch: 1,
      owed: 5 + Math.floor(this.rng.next() * 80),
      live: [],
      grant: 0,
      isBusy: false,
      isOver: false,
    }));
  }

  get live(): number {
    return this.jobs.reduce((sum, { live }) => sum + live.length, 0);
  }

  /** Slots that all jobs may launch with by the table, with what its head has decided and nobody carried out. */
  get granted(): number {
    const items = [...this.table.items.values()].filter(({ sk }) => String(sk).startsWith('JOB#'));
    const head = this.table.items.get(`${headKey.pk}/${headKey.sk}`);
    const decided = typeof head?.['changes'] === 'string' ? head['changes'] : '[]';
    const changes = JSON.parse(decided) as { entry: string; slots: number }[];
    return items.reduce((sum, { entry, round, slots }) => {
      const change = changes.find((each) => each.entry === entry);
      const isOpen = change !== undefined && Number(round) < Number(head?.['version']);
      return sum + (isOpen ? change.slots : Number(slots));
    }, 0);
  }

  async second(): Promise<void> {
    this.nowS += 1;
    const due = this.held.filter(({ atS }) => atS <= this.nowS);
    this.held = this.held.filter(({ atS }) => atS > this.nowS);
    for (const { go } of due) go();
    await settle();
    for (const job of this.jobs) {
      job.live = job.live.filter((endsS) => endsS > this.nowS);
      if (job.isOver || job.beginsS > this.nowS) continue;
      if (job.isBusy && this.rng.next() < 0.1) this.takeOver(job);
      if (!job.isBusy) void this.tick(job, job.epoch);
    }
    await settle();
  }

  /** The job's scheduler is taken for dead, and may thaw. */
  private takeOver(job: Job): void {
    job.epoch += 1;
    job.process = Math.floor(this.rng.next() * 3);
    job.isBusy = false;
    void this.ledgers[job.process]?.forget(job.jobId);
  }

  private async tick(job: Job, epoch: number): Promise<void> {
    job.isBusy = true;
    const { process } = job;
    const ledger = this.ledgers[process];
    const live = job.live.length;
    const grant = await ledger?.resize(job.jobId, Math.min(totalSlots, live + job.owed), {
      totalSlots,
      now: epochMs(4_000_000_000 + this.nowS * 1_000 + (clocksOffMs[process] ?? 0)),
      length: durationMs(this.lengthMs),
      live,
      weight: job.weight,
      since: epochMs(job.beginsS),
      epoch,
    });
    // Its lease is gone: it launches nothing.
    if (job.epoch !== epoch || grant === undefined) return;
    job.grant = grant;
    job.isBusy = false;
    for (; job.owed > 0 && job.live.length < grant; job.owed--)
      job.live.push(this.nowS + 1 + Math.floor(this.rng.next() * 20));
    if (job.owed === 0 && job.live.length === 0) {
      job.isOver = true;
      await ledger?.release(job.jobId);
    }
  }
}

const seeds = Array.from({ length: 60 }, (_, index) => `freezes ${String(index)}`);

it('never lets more run than there is, whoever freezes, is followed and thaws, and lets all end', async () => {
  for (const seed of seeds) {
    const world = new World(seed, { lengthMs: 10_000_000, longestS: 25 });
    for (let second = 0; second < 500 && !world.jobs.every(({ isOver }) => isOver); second++) {
      await world.second();
      expect(world.live, `${seed} at ${String(world.nowS)}`).toBeLessThanOrEqual(totalSlots);
      expect(world.granted, `${seed} at ${String(world.nowS)}`).toBeLessThanOrEqual(totalSlots);
    }
    expect(
      world.jobs.filter(({ isOver }) => !isOver),
      seed,
    ).toEqual([]);
  }
}, 300_000);

it('never grants more than there is where jobs are struck out that are frozen for longer', async () => {
  let strikes = 0;
  for (const seed of seeds) {
    const world = new World(seed, { lengthMs: 20_000, longestS: 70 });
    for (let second = 0; second < 600 && !world.jobs.every(({ isOver }) => isOver); second++) {
      await world.second();
      expect(world.granted, `${seed} at ${String(world.nowS)}`).toBeLessThanOrEqual(totalSlots);
    }
    expect(
      world.jobs.filter(({ isOver }) => !isOver),
      seed,
    ).toEqual([]);
    strikes += world.strikes;
  }
  expect(strikes).toBeGreaterThan(0);
}, 300_000);
