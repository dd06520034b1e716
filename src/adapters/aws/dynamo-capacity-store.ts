import { randomUUID } from 'node:crypto';
import { StoreUnavailableError } from '../../contracts/errors.ts';
import type { JobId } from '../../contracts/ids.ts';
import { ledgerPartition } from '../../contracts/settings.ts';
import {
  admittedParts,
  type CapacityRule,
  type Holding,
  isAdmittedAlike,
  isMove,
  type Ledger,
  moved,
} from '../../core/capacity/ledger.ts';
import { forEachBounded } from '../../lib/bounded.ts';
import type { CapacityStore, Changed } from '../../ports/capacity-store.ts';
import { asRead } from './as-read.ts';
import { backoff } from './backoff.ts';
import type { Condition, DynamoTable, Item } from './dynamo-table.ts';
import {
  changed,
  changeOf,
  decodeHead,
  decodeHolding,
  type Head,
  headKey,
  holdingKey,
  jobOf,
  jobPrefix,
  newItem,
  slotsItem,
  type StoredChange,
  type StoredHolding,
  wordsItem,
} from './ledger-item.ts';
import type { ReportUnreadable } from './report-unreadable.ts';

const ROUNDS = 40;
/** Readings of a head that cannot be read before it is given up. */
const MEND_ROUNDS = 5;
/** Changes that one process asks for while another of its changes is under way are decided together, so many at once. */
const RULES_PER_ROUND = 25;
const PARALLEL_WRITES = 16;

/** The ledger as it was read: changes of the last round that its author has not carried out are in it. */
interface Reading {
  readonly head: Head | undefined;
  readonly stored: ReadonlyMap<JobId, StoredHolding>;
  readonly ledger: Ledger;
}

/** A rule that waits for its round; `apply` answers the ledger after it, `settle` and `giveUp` tell who asked. */
interface Asking {
  readonly tries: number;
  apply(ledger: Ledger): Ledger;
  settle(ledger: Ledger): void;
  giveUp(): void;
  fail(cause: unknown): void;
}

/**
 * The ledger of slots in DynamoDB: a small item for each job, and a head.
 *
 * A change is decided by one conditional write of the head, under the next version, which names what changes: so of two
 * changes at once one is refused, and looks again. Then the jobs' items are written, each on condition that no later
 * round has been there. Whoever comes next and finds items that the last round has not reached yet writes them first,
 * so that a change whose author died is carried out, and one whose author thaws later does nothing any more. What a
 * job says of itself and takes nothing from others is one write of its own item. No write grows with the number of jobs
 * beyond those that it changes.
 */
export class DynamoCapacityStore implements CapacityStore {
  private readonly table: DynamoTable;
  private readonly wait: (round: number) => Promise<void>;
  private readonly report: ReportUnreadable;
  private waiting: Asking[] = [];
  private isDeciding = false;

  /**
   * @param wait - waits before round number `round` (from 2) of a change that rivals refused.
   * @param report - is told of items that cannot be read, which are written anew or left out.
   */
  constructor(
    table: DynamoTable,
    wait: (round: number) => Promise<void> = (round) => backoff(round - 1),
    report: ReportUnreadable = () => undefined,
  ) {
    this.table = table;
    this.wait = wait;
    this.report = report;
  }

  change<T>(rule: CapacityRule<T>, tries = Infinity): Promise<Changed<T> | 'busy'> {
    return new Promise<Changed<T> | 'busy'>((resolve, reject) => {
      let answer: { readonly value: T } | undefined;
      this.waiting.push({
        tries,
        apply: (ledger) => {
          const move = rule(ledger);
          answer = { value: move.answer };
          return isMove(ledger, move) ? moved(ledger, move) : ledger;
        },
        settle: (ledger) => {
          if (answer !== undefined) resolve({ answer: answer.value, ledger });
        },
        giveUp: () => {
          resolve('busy');
        },
        fail: reject,
      });
      void this.decideAll();
    });
  }

  async tell(jobId: JobId, before: Holding | undefined, after: Holding): Promise<'told' | 'stale'> {
    if (before === undefined) {
      const item = { ...holdingKey(jobId), ...newItem(after, randomUUID()) };
      if ((await this.table.putNew(item)) === 'written') return 'told';
    } else {
      const answer = await this.table.update(holdingKey(jobId), {
        set: { ...wordsItem(after), ...slotsItem(after) },
        ...ifStill(before),
      });
      if (answer !== 'refused') return 'told';
    }
    // The SDK repeats a write whose answer was lost, and the repetition meets its own first write.
    const own = await this.own(jobId);
    const isTold = own?.beat === after.beat && own.slots === after.slots && own.held === after.held;
    return isTold && isAdmittedAlike(own, after) ? 'told' : 'stale';
  }

  async own(jobId: JobId): Promise<Holding | undefined> {
    const item = await this.table.get(holdingKey(jobId));
    if (item === undefined) return undefined;
    const stored = decodeHolding(jobId, item);
    if (stored === undefined) await this.drop(item, jobId);
    return stored?.holding;
  }

  async strike(jobId: JobId, seen: Holding): Promise<'struck' | 'stale'> {
    const condition = { when: '#beat = :beat', values: { beat: seen.beat } };
    return (await this.table.remove(holdingKey(jobId), condition)) === 'removed' ? 'struck' : 'stale';
  }

  async remove(jobId: JobId): Promise<void> {
    await this.table.remove(holdingKey(jobId));
  }

  async load(): Promise<Ledger> {
    return (await this.read()).ledger;
  }

  /** Decides what waits, round by round: one at a time, so that this process is no rival of itself. */
  private async decideAll(): Promise<void> {
    if (this.isDeciding) return;
    this.isDeciding = true;
    try {
      while (this.waiting.length > 0) {
        const asked = this.waiting.splice(0, RULES_PER_ROUND);
        try {
          await this.decideRounds(asked);
        } catch (cause) {
          for (const each of asked) each.fail(cause);
        }
      }
    } finally {
      this.isDeciding = false;
    }
  }

  private async decideRounds(all: readonly Asking[]): Promise<void> {
    let asked = all;
    for (let round = 1; round <= ROUNDS; round++) {
      if (round > 1) await this.wait(round);
      const after = await this.decideRound(asked);
      if (after !== undefined) {
        for (const each of asked) each.settle(after);
        return;
      }
      for (const each of asked) if (each.tries <= round) each.giveUp();
      asked = asked.filter(({ tries }) => tries > round);
      if (asked.length === 0) return;
    }
    throw new StoreUnavailableError('the capacity ledger is too busy', { rounds: ROUNDS });
  }

  /** The ledger after these rules; undefined where a rival's change came first. */
  private async decideRound(asked: readonly Asking[]): Promise<Ledger | undefined> {
    const reading = await this.read();
    let after = reading.ledger;
    for (const each of asked) after = each.apply(after);
    if (after === reading.ledger) return after;
    const changes = changesOf(reading, after);
    const version = (reading.head?.version ?? 0) + 1;
    if (!(await this.decide(reading.head, { version, changes, totalSlots: after.totalSlots })))
      return undefined;
    await this.carryOut(version, changes);
    return after;
  }

  private async read(): Promise<Reading> {
    const head = await this.readHead();
    const stored = await this.readJobs();
    if (head !== undefined) await this.complete(head, stored);
    const holdings = new Map([...stored].map(([jobId, { holding }]) => [jobId, holding]));
    return { head, stored, ledger: { totalSlots: head?.totalSlots ?? 0, holdings } };
  }

  private async readJobs(): Promise<Map<JobId, StoredHolding>> {
    const stored = new Map<JobId, StoredHolding>();
    const items = this.table.query({
      keys: '#pk = :pk AND begins_with(#sk, :job)',
      values: { pk: ledgerPartition, job: jobPrefix },
      isConsistent: true,
    });
    for await (const item of items) {
      const jobId = jobOf(item);
      if (jobId === undefined) continue;
      const holding = decodeHolding(jobId, item);
      if (holding !== undefined) stored.set(jobId, holding);
      else await this.drop(item, jobId);
    }
    return stored;
  }

  private async readHead(): Promise<Head | undefined> {
    for (let round = 1; round <= MEND_ROUNDS; round++) {
      const item = await this.table.get(headKey);
      const head = item === undefined ? undefined : decodeHead(item);
      if (item === undefined || head !== undefined) return head;
      await this.beginAnew(item);
    }
    throw new StoreUnavailableError('the head of the ledger cannot be mended', { ...headKey });
  }

  /**
   * A head that cannot be read is begun anew. Which rounds there have been nobody knows any more: each job first gets
   * another mark of its entry, so that nothing of them is carried out later, and then the head another mark of its
   * own, so that nothing is decided on what was read before.
   */
  private async beginAnew(item: Item): Promise<void> {
    const stored = [...(await this.readJobs()).values()];
    const version = stored.reduce((most, { round }) => Math.max(most, round), 0) + 1;
    await forEachBounded(stored, PARALLEL_WRITES, async ({ jobId, entry }) => {
      const set = { round: version, entry: randomUUID() };
      await this.table.update(holdingKey(jobId), { set, when: '#entry = :entry', values: { entry } });
    });
    const head = { version, totalSlots: 0, changes: '[]', writeId: randomUUID() };
    const answer = await this.table.update(headKey, { set: head, ...asRead(item, Object.keys(head)) });
    if (answer !== 'refused')
      this.report({ key: `${headKey.pk}/${headKey.sk}`, why: 'the head of the ledger cannot be read' });
  }

  /** Carries out what the last round has decided and its author has not written yet, here and in the table. */
  private async complete({ version, changes }: Head, stored: Map<JobId, StoredHolding>): Promise<void> {
    const missing: StoredChange[] = [];
    for (const change of changes) {
      const jobId = change.jobId as JobId;
      const job = stored.get(jobId);
      if (job === undefined || job.entry !== change.entry || job.round >= version) continue;
      missing.push(change);
      stored.set(jobId, changed(job, version, change));
    }
    await this.carryOut(version, missing);
  }

  private async decide(
    head: Head | undefined,
    next: {
      readonly version: number;
      readonly changes: readonly StoredChange[];
      readonly totalSlots: number;
    },
  ): Promise<boolean> {
    const writeId = randomUUID();
    const answer = await this.table.update(headKey, {
      set: { ...next, changes: JSON.stringify(next.changes), writeId },
      when: head === undefined ? 'attribute_not_exists(#pk)' : '#writeId = :before',
      ...(head === undefined ? {} : { values: { before: head.writeId } }),
    });
    if (answer !== 'refused') return true;
    // The SDK repeats a write whose answer was lost, and the repetition meets its own first write.
    return (await this.table.get(headKey))?.['writeId'] === writeId;
  }

  private carryOut(version: number, changes: readonly StoredChange[]): Promise<void> {
    return forEachBounded(changes, PARALLEL_WRITES, async ({ jobId, entry, ...set }) => {
      await this.table.update(holdingKey(jobId as JobId), {
        set: { ...set, round: version },
        when: '#entry = :entry AND #round < :version',
        values: { entry, version },
      });
    });
  }

  /** What nobody can read counts as nothing: its job asks anew, and says what runs. */
  private async drop(item: Item, jobId: JobId): Promise<void> {
    this.report({
      key: `${ledgerPartition}/${String(item['sk'])}`,
      why: 'the holding of a job cannot be read',
    });
    await this.table.remove(holdingKey(jobId));
  }
}

/** On condition that a job's word and grant are what they were. */
function ifStill(before: Holding): Condition {
  const values: Record<string, number> = {};
  const when = (['beat', 'slots', 'held', ...admittedParts] as const).map((part) => {
    const value = before[part];
    if (value === undefined) return `attribute_not_exists(#${part})`;
    values[`${part}Before`] = value;
    return `#${part} = :${part}Before`;
  });
  return { when: when.join(' AND '), values };
}

/** What differs from what was read. */
function changesOf({ stored, ledger }: Reading, after: Ledger): readonly StoredChange[] {
  const changes: StoredChange[] = [];
  for (const [jobId, holding] of after.holdings) {
    const before = stored.get(jobId);
    if (before !== undefined && holding !== ledger.holdings.get(jobId))
      changes.push(changeOf(before, holding));
  }
  return changes;
}
