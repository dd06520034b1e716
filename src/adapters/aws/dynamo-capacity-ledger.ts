import { z } from 'zod';
import { StoreUnavailableError } from '../../contracts/errors.ts';
import type { JobId } from '../../contracts/ids.ts';
import { epochMs, later } from '../../contracts/units.ts';
import {
  admitUnits,
  type CloneAdmission,
  type CloneRequest,
  type CloneTerms,
} from '../../core/model/clone-admission.ts';
import type { CapacityLedger, CapacityView, GrantContext } from '../../ports/capacity-ledger.ts';
import { backoff } from './backoff.ts';
import { type CloneRoom, type Grant, ledgerChange } from './capacity-change.ts';
import type { DynamoTable } from './dynamo-table.ts';

const LEDGER = { pk: 'LEDGER', sk: 'CAPACITY' } as const;
const ROUNDS = 30;
/** Keeps the update expression well under its 4 KB; the rest is reclaimed by the next write. */
const RECLAIMED_PER_WRITE = 20;

const grantSchema = z.object({
  slots: z.number(),
  expiresAt: z.number().transform(epochMs),
  cloneSlots: z.number().optional(),
  clones: z.record(z.string(), z.number()).optional(),
});
const ledgerSchema = z.object({
  totalSlots: z.number(),
  usedSlots: z.number(),
  cloneSlots: z.number().default(0),
  grants: z.record(z.string(), grantSchema),
});
type Ledger = z.output<typeof ledgerSchema>;

/** What one round makes of a reading of the ledger: an answer, and the write that it hangs on, if any. */
interface Move<T> {
  readonly answer: T;
  readonly write?: {
    readonly grant: Grant | undefined;
    readonly expired: readonly (readonly [string, Grant])[];
    readonly totalSlots: number;
    readonly room?: CloneRoom;
  };
}

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

  resize(jobId: JobId, wanted: number, { totalSlots, now, length }: GrantContext): Promise<number> {
    return this.change(jobId, totalSlots, (ledger): Move<number> => {
      const held = ledger.grants[jobId];
      const expired = expiredIn(ledger, jobId, now);
      const free = Math.max(0, totalSlots - ledger.usedSlots + sumOf(expired, ({ slots }) => slots));
      const slots = Math.max(0, Math.min(wanted, (held?.slots ?? 0) + free));
      if (slots === 0 && held === undefined && expired.length === 0) return { answer: 0 };
      const grant = slots === 0 ? undefined : grantOf(slots, later(now, length), held?.clones);
      return { answer: slots, write: { grant, expired, totalSlots } };
    });
  }

  admitClones(
    jobId: JobId,
    request: CloneRequest,
    context: GrantContext & CloneTerms,
  ): Promise<CloneAdmission> {
    const { totalSlots, now, length } = context;
    return this.change(jobId, totalSlots, (ledger): Move<CloneAdmission> => {
      const held = ledger.grants[jobId];
      const expired = expiredIn(ledger, jobId, now);
      const charged = held?.clones?.[request.phase] ?? 0;
      const before = {
        usedSlots: ledger.usedSlots - (held?.slots ?? 0) - sumOf(expired, ({ slots }) => slots),
        cloneSlots: ledger.cloneSlots - charged - sumOf(expired, ({ cloneSlots }) => cloneSlots ?? 0),
      };
      // Admitted before: by a scheduler that died before it could say so, or in an answer that was lost.
      if (charged > 0) return { answer: { ...before, units: Math.floor(charged / request.unitSlots) } };
      const answer = admitUnits(before, context, request);
      if (answer.units === 0) return { answer };
      const charge = answer.units * request.unitSlots;
      const clones = { ...held?.clones, [request.phase]: charge };
      const grant = grantOf(request.besideSlots + charge, later(now, length), clones);
      return { answer, write: { grant, expired, totalSlots, room: context } };
    });
  }

  releaseClones(jobId: JobId, phase: string, keepSlots: number): Promise<void> {
    return this.change(jobId, undefined, (ledger): Move<undefined> => {
      const held = ledger.grants[jobId];
      const charged = held?.clones?.[phase] ?? 0;
      const kept = Math.min(charged, Math.max(0, keepSlots));
      if (held === undefined || kept === charged) return { answer: undefined };
      const others = Object.entries(held.clones ?? {}).filter(([name]) => name !== phase);
      const grant = grantOf(
        held.slots,
        held.expiresAt,
        Object.fromEntries(kept === 0 ? others : [...others, [phase, kept]]),
      );
      return { answer: undefined, write: { grant, expired: [], totalSlots: ledger.totalSlots } };
    });
  }

  release(jobId: JobId): Promise<void> {
    return this.change(jobId, undefined, (ledger): Move<undefined> => {
      if (ledger.grants[jobId] === undefined) return { answer: undefined };
      return { answer: undefined, write: { grant: undefined, expired: [], totalSlots: ledger.totalSlots } };
    });
  }

  async view(): Promise<CapacityView> {
    const ledger = await this.load();
    if (ledger === undefined) return { totalSlots: 0, usedSlots: 0, cloneSlots: 0, grants: {} };
    const grants = Object.entries(ledger.grants).map(
      ([jobId, { slots, expiresAt, clones }]) =>
        [jobId, { slots, expiresAt, ...(clones === undefined ? {} : { clones }) }] as const,
    );
    return { ...ledger, grants: Object.fromEntries(grants) };
  }

  /** Reads, decides and writes until a write is accepted or none is needed. Without `openWith` no ledger is made. */
  private async change<T>(
    jobId: JobId,
    openWith: number | undefined,
    decide: (ledger: Ledger) => Move<T>,
  ): Promise<T> {
    for (let round = 1; round <= ROUNDS; round++) {
      if (round > 1) await this.wait(round);
      const ledger =
        (await this.load()) ?? (openWith === undefined ? emptyLedger(0) : await this.open(openWith));
      const { answer, write } = decide(ledger);
      if (write === undefined) return answer;
      const change = ledgerChange({ jobId, held: ledger.grants[jobId], ...write });
      if ((await this.table.update(LEDGER, change)) !== 'refused') return answer;
    }
    throw new StoreUnavailableError('the capacity ledger is too busy', { jobId, rounds: ROUNDS });
  }

  private async load(): Promise<Ledger | undefined> {
    const item = await this.table.get(LEDGER);
    return item === undefined ? undefined : ledgerSchema.parse(item);
  }

  /** Makes the ledger; somebody else may have made it first, so that it is read again. */
  private async open(totalSlots: number): Promise<Ledger> {
    const empty = emptyLedger(totalSlots);
    const written = await this.table.putNew({ ...LEDGER, ...empty });
    return written === 'written' ? empty : ((await this.load()) ?? empty);
  }
}

const emptyLedger = (totalSlots: number): Ledger => ({ totalSlots, usedSlots: 0, cloneSlots: 0, grants: {} });

/** Grants of others that ran out, as many as one write can take. */
const expiredIn = ({ grants }: Ledger, jobId: JobId, now: number): readonly (readonly [string, Grant])[] =>
  Object.entries(grants)
    .filter(([id, grant]) => id !== jobId && grant.expiresAt < now)
    .slice(0, RECLAIMED_PER_WRITE);

const sumOf = (grants: readonly (readonly [string, Grant])[], pick: (grant: Grant) => number): number =>
  grants.reduce((sum, [, grant]) => sum + pick(grant), 0);

function grantOf(slots: number, expiresAt: Grant['expiresAt'], clones: Grant['clones']): Grant {
  const cloneSlots = Object.values(clones ?? {}).reduce((sum, charged) => sum + charged, 0);
  return { slots, expiresAt, ...(cloneSlots === 0 ? {} : { cloneSlots, clones }) };
}
