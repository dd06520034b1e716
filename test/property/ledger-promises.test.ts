import { expect, it } from 'vitest';
import { DynamoCapacityStore } from '../../src/adapters/aws/dynamo-capacity-store.ts';
import { RuledCapacityLedger } from '../../src/app/capacity-ledger.ts';
import { durationMs, epochMs } from '../../src/contracts/units.ts';
import { createRng, type Rng } from '../../src/lib/rng.ts';
import { freshJobId } from '../contract/ports/builders.ts';
import { ModelTable } from '../support/model-table.ts';

const totalSlots = 20;
const clocksOffMs = [0, 3_600_000, -3_600_000];
/** Bytes that a finished task has read, and those of a replica of its output. */
const taskBytes = 1_000;

interface Job {
  readonly jobId: ReturnType<typeof freshJobId>;
  process: number;
  epoch: number;
  isBusy: boolean;
  /** Tasks that have finished, and bytes of replicas that its log tells of. */
  done: number;
  logged: number;
  asked: number;
}

const settle = async (): Promise<void> => {
  for (let turn = 0; turn < 4; turn++) await new Promise(setImmediate);
};

/** Schedulers whose requests may land half a minute late, and who are followed by others meanwhile and thaw. */
class World {
  readonly table = new ModelTable();
  readonly jobs: Job[];
  nowS = 0;
  private readonly ledgers: readonly RuledCapacityLedger[];
  private readonly rng: Rng;
  private held: { readonly atS: number; readonly go: () => void }[] = [];

  constructor(seed: string) {
    this.rng = createRng(seed);
    this.table.before = () => {
      if (this.rng.next() > 0.08) return undefined;
      const atS = this.nowS + 1 + Math.floor(this.rng.next() * 30);
      return new Promise((go) => {
        this.held.push({ atS, go });
      });
    };
    const store = () => new DynamoCapacityStore(this.table.table, () => Promise.resolve());
    this.ledgers = clocksOffMs.map(() => new RuledCapacityLedger(store(), { spacingPerJobMs: 0 }));
    this.jobs = Array.from({ length: 5 }, (_, index) => ({
      ...{ jobId: freshJobId(), process: index % 3, epoch: 1, isBusy: false, done: 0, logged: 0, asked: 0 },
    }));
  }

  /** Slots that are guaranteed by the table, with what its head has decided and nobody carried out. */
  get guaranteed(): number {
    const head = [...this.table.items.values()].find(({ sk }) => sk === 'CAPACITY');
    const changes = JSON.parse(typeof head?.['changes'] === 'string' ? head['changes'] : '[]') as {
      entry: string;
      guaranteed?: number;
    }[];
    return [...this.table.items.values()]
      .filter(({ sk }) => String(sk).startsWith('JOB#'))
      .reduce((sum, { entry, round, guaranteed = 0 }) => {
        const change = changes.find((each) => each.entry === entry);
        const isOpen = Number(round) < Number(head?.['version']);
        return sum + Number((isOpen ? change?.guaranteed : undefined) ?? guaranteed);
      }, 0);
  }

  async second(): Promise<void> {
    this.nowS += 1;
    const due = this.held.filter(({ atS }) => atS <= this.nowS);
    this.held = this.held.filter(({ atS }) => atS > this.nowS);
    for (const { go } of due) go();
    await settle();
    for (const job of this.jobs) {
      if (this.rng.next() < 0.3) job.done += 1;
      if (job.isBusy && this.rng.next() < 0.1) this.takeOver(job);
      if (!job.isBusy) void this.tick(job, job.epoch);
    }
    await settle();
  }

  private takeOver(job: Job): void {
    job.epoch += 1;
    job.process = Math.floor(this.rng.next() * 3);
    job.isBusy = false;
    void this.ledgers[job.process]?.forget(job.jobId);
  }

  private async tick(job: Job, epoch: number): Promise<void> {
    job.isBusy = true;
    const { process, jobId } = job;
    const ledger = this.ledgers[process];
    const earned = Math.floor((job.done * taskBytes) / 10);
    const context = {
      ...{ totalSlots, length: durationMs(40_000), live: 0, epoch, tokens: job.logged },
      now: epochMs(4_000_000_000 + this.nowS * 1_000 + (clocksOffMs[process] ?? 0)),
      guaranteed: Math.floor(this.rng.next() * 15),
    };
    await ledger?.resize(jobId, 3, context);
    const replica = 50 + Math.floor(this.rng.next() * 400);
    const spent = job.logged + replica;
    job.asked += 1;
    const may = (await ledger?.spendTokens(jobId, { earned, spent }, context)) ?? 0;
    // The log is the fence: of a scheduler that was replaced nothing is written, and nobody copies what is not.
    if (job.epoch !== epoch) return;
    if (may >= spent) job.logged = spent;
    job.isBusy = false;
  }
}

it('guarantees no more slots than there are, and lets no job replicate more than it has earned, whoever freezes', async () => {
  let [replicated, mostGuaranteed] = [0, 0];
  for (let seed = 0; seed < 40; seed++) {
    const world = new World(`promises ${String(seed)}`);
    for (let second = 0; second < 200; second++) {
      await world.second();
      mostGuaranteed = Math.max(mostGuaranteed, world.guaranteed);
      expect(world.guaranteed, `${String(seed)} at ${String(second)}`).toBeLessThanOrEqual(totalSlots);
      for (const { done, logged } of world.jobs) expect(logged).toBeLessThanOrEqual((done * taskBytes) / 10);
    }
    for (const { logged, asked } of world.jobs) {
      expect(asked).toBeGreaterThan(5);
      replicated += logged;
    }
  }
  // Neither promise is kept by giving nothing.
  expect(mostGuaranteed).toBeGreaterThan(0.9 * totalSlots);
  expect(replicated).toBeGreaterThan(40 * 5 * 1_000);
}, 300_000);
