import { z } from 'zod';
import { StoreUnavailableError } from '../../contracts/errors.ts';
import type { JobId } from '../../contracts/ids.ts';
import { type DurationMs, type EpochMs, epochMs, later } from '../../contracts/units.ts';
import type { CapacityLedger, CapacityView } from '../../ports/capacity-ledger.ts';
import { backoff } from './backoff.ts';
import type { Change, DynamoTable } from './dynamo-table.ts';

const LEDGER = { pk: 'LEDGER', sk: 'CAPACITY' } as const;
const ROUNDS = 30;
/** Keeps the update expression well under its 4 KB; the rest is reclaimed by the next resize. */
const RECLAIMED_PER_WRITE = 20;

const grantSchema = z.object({ slots: z.number(), expiresAt: z.number().transform(epochMs) });
const ledgerSchema = z.object({
  totalSlots: z.number(),
  usedSlots: z.number(),
  grants: z.record(z.string(), grantSchema),
});
type Grant = z.output<typeof grantSchema>;
type Ledger = z.output<typeof ledgerSchema>;

/**
 * The capacity ledger: one item, changed by one conditional write at a time.
 *
 * The condition names only what the write depends on: the grants that it changes, and enough room for what it
 * adds. So schedulers of different jobs do not refuse each other until slots run short, and no order of writes
 * can spend more than there is. A refused write is tried again on a fresh reading.
 */
export class DynamoCapacityLedger implements CapacityLedger {
  private readonly table: DynamoTable;
  private readonly wait: (round: number) => Promise<void>;

  /** @param wait - waits before round number `round` (from 2) of a write that rivals refused. */
  constructor(table: DynamoTable, wait: (round: number) => Promise<void> = (round) => backoff(round - 1)) {
    this.table = table;
    this.wait = wait;
  }

  async resize(
    jobId: JobId,
    wanted: number,
    context: { totalSlots: number; now: EpochMs; length: DurationMs },
  ): Promise<number> {
    const { totalSlots, now, length } = context;
    for (let round = 1; round <= ROUNDS; round++) {
      if (round > 1) await this.wait(round);
      const ledger = (await this.load()) ?? (await this.open(totalSlots));
      const expired = Object.entries(ledger.grants)
        .filter(([id, grant]) => id !== jobId && grant.expiresAt < now)
        .slice(0, RECLAIMED_PER_WRITE);
      const reclaimed = expired.reduce((sum, [, grant]) => sum + grant.slots, 0);
      const held = ledger.grants[jobId];
      const free = Math.max(0, totalSlots - ledger.usedSlots + reclaimed);
      const slots = Math.max(0, Math.min(wanted, (held?.slots ?? 0) + free));
      if (slots === 0 && held === undefined && expired.length === 0) return 0;
      const grant = slots === 0 ? undefined : { slots, expiresAt: later(now, length) };
      const change = changeOf({ jobId, held, grant, expired, totalSlots });
      if ((await this.table.update(LEDGER, change)) !== 'refused') return slots;
    }
    throw new StoreUnavailableError('the capacity ledger is too busy', { jobId, rounds: ROUNDS });
  }

  async release(jobId: JobId): Promise<void> {
    for (let round = 1; round <= ROUNDS; round++) {
      if (round > 1) await this.wait(round);
      const ledger = await this.load();
      const held = ledger?.grants[jobId];
      if (ledger === undefined || held === undefined) return;
      const change = changeOf({ jobId, held, grant: undefined, expired: [], totalSlots: ledger.totalSlots });
      if ((await this.table.update(LEDGER, change)) !== 'refused') return;
    }
    throw new StoreUnavailableError('the capacity ledger is too busy', { jobId, rounds: ROUNDS });
  }

  async view(): Promise<CapacityView> {
    return (await this.load()) ?? { totalSlots: 0, usedSlots: 0, grants: {} };
  }

  private async load(): Promise<Ledger | undefined> {
    const item = await this.table.get(LEDGER);
    return item === undefined ? undefined : ledgerSchema.parse(item);
  }

  /** Makes the ledger; somebody else may have made it first, so that it is read again. */
  private async open(totalSlots: number): Promise<Ledger> {
    const empty: Ledger = { totalSlots, usedSlots: 0, grants: {} };
    const written = await this.table.putNew({ ...LEDGER, ...empty });
    return written === 'written' ? empty : ((await this.load()) ?? empty);
  }
}

interface Transfer {
  readonly jobId: JobId;
  readonly held: Grant | undefined;
  readonly grant: Grant | undefined;
  readonly expired: readonly (readonly [string, Grant])[];
  readonly totalSlots: number;
}

/** The single write that replaces a job's grant, drops expired ones and keeps the sum. */
function changeOf({ jobId, held, grant, expired, totalSlots }: Transfer): Change {
  const conditions = [held === undefined ? 'attribute_not_exists(#grants.#job)' : isStill('job')];
  const names: Record<string, string> = { job: jobId };
  const values: Record<string, unknown> = held === undefined ? {} : valuesOfGrant('job', held);
  const removed = grant === undefined && held !== undefined ? ['#grants.#job'] : [];
  let addedSlots = (grant?.slots ?? 0) - (held?.slots ?? 0);
  for (const [index, [id, old]] of expired.entries()) {
    const name = `gone${index}`;
    names[name] = id;
    Object.assign(values, valuesOfGrant(name, old));
    conditions.push(isStill(name));
    removed.push(`#grants.#${name}`);
    addedSlots -= old.slots;
  }
  // A job that asks for more must find room; one that gives or keeps must not be refused, even when overspent.
  const growsItself = (grant?.slots ?? 0) > (held?.slots ?? 0);
  if (growsItself) conditions.push('#usedSlots <= :room');
  return {
    clauses: [
      'SET #totalSlots = :total, #usedSlots = #usedSlots + :added',
      grant === undefined ? '' : ', #grants.#job = :grant',
      removed.length === 0 ? '' : ` REMOVE ${removed.join(', ')}`,
    ].join(''),
    when: conditions.join(' AND '),
    names,
    values: {
      ...values,
      total: totalSlots,
      added: addedSlots,
      ...(growsItself ? { room: totalSlots - addedSlots } : {}),
      ...(grant === undefined ? {} : { grant }),
    },
  };
}

const isStill = (name: string): string =>
  `#grants.#${name}.#slots = :${name}Slots AND #grants.#${name}.#expiresAt = :${name}Until`;

const valuesOfGrant = (name: string, grant: Grant): Record<string, unknown> => ({
  [`${name}Slots`]: grant.slots,
  [`${name}Until`]: grant.expiresAt,
});
