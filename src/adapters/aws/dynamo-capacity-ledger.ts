import { StoreUnavailableError } from '../../contracts/errors.ts';
import type { JobId } from '../../contracts/ids.ts';
import { firstProblem } from '../../contracts/invalid.ts';
import { later } from '../../contracts/units.ts';
import type { CloneAdmission, CloneRequest, CloneTerms } from '../../core/model/clone-admission.ts';
import {
  chargedFor,
  chargedSlots,
  cloneHolding,
  type CloneHolding,
  holdClones,
  keepClones,
  type Preemption,
} from '../../core/model/clone-holding.ts';
import { admitWithPreemption, takenFrom } from '../../core/model/clone-preemption.ts';
import type { CapacityLedger, CapacityView, GrantContext } from '../../ports/capacity-ledger.ts';
import { backoff } from './backoff.ts';
import { type CloneRoom, type Grant, ledgerChange, type Transfer } from './capacity-change.ts';
import type { DynamoTable, Item } from './dynamo-table.ts';
import { type Ledger, ledgerSchema, mendingChange } from './ledger-item.ts';
import type { ReportUnreadable } from './report-unreadable.ts';

const LEDGER = { pk: 'LEDGER', sk: 'CAPACITY' } as const;
const ROUNDS = 30;
/** Keeps the update expression well under its 4 KB; the rest is reclaimed by the next write. */
const RECLAIMED_PER_WRITE = 20;
/** The same for a write that may also take clones away: of ten jobs at most. */
const RECLAIMED_BESIDE_VICTIMS = 10;

/** Readings of the ledger before it is given up to mend it. */
const MEND_ROUNDS = 10;

/** What one round makes of a reading of the ledger: an answer, and the write that it hangs on, if any. */
interface Move<T> {
  readonly answer: T;
  readonly write?: Omit<Transfer, 'jobId' | 'held'>;
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
  private readonly report: ReportUnreadable;

  /**
   * @param wait - waits before round number `round` (from 2) of a write that rivals refused.
   * @param report - is told of grants that cannot be read, which are taken out of the ledger.
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

  resize(jobId: JobId, wanted: number, { totalSlots, now, length }: GrantContext): Promise<number> {
    return this.change(jobId, totalSlots, (ledger): Move<number> => {
      const held = ledger.grants[jobId];
      const expired = expiredIn(ledger, jobId, now);
      const free = Math.max(0, totalSlots - ledger.usedSlots + sumOf(expired, ({ slots }) => slots));
      const slots = Math.max(0, Math.min(wanted, (held?.slots ?? 0) + free));
      if (slots === 0 && held === undefined && expired.length === 0) return { answer: 0 };
      const grant = slots === 0 ? undefined : grantOf(slots, later(now, length), held);
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
      const limit = request.jobTasks === undefined ? RECLAIMED_PER_WRITE : RECLAIMED_BESIDE_VICTIMS;
      const expired = expiredIn(ledger, jobId, now, limit);
      const charged = chargedFor(held ?? {}, request.phase);
      const before = {
        usedSlots: ledger.usedSlots - (held?.slots ?? 0) - sumOf(expired, ({ slots }) => slots),
        cloneSlots: ledger.cloneSlots - charged - sumOf(expired, ({ cloneSlots }) => cloneSlots ?? 0),
      };
      // Admitted before: by a scheduler that died before it could say so, or in an answer that was lost.
      if (charged > 0) return { answer: { ...before, units: Math.floor(charged / request.unitSlots) } };
      const gone = new Set(expired.map(([id]) => id));
      const holders = Object.entries(ledger.grants).filter(([id]) => !gone.has(id));
      const answer = admitWithPreemption(before, context, request, holders);
      if (answer.units === 0) return { answer };
      const slots = request.besideSlots + answer.units * request.unitSlots;
      const grant = grantOf(slots, later(now, length), holdClones(held ?? {}, request, answer.units));
      return {
        answer,
        write: {
          grant,
          expired,
          totalSlots,
          ...takingFrom(ledger, jobId, { request, answer, room: context }),
        },
      };
    });
  }

  releaseClones(jobId: JobId, phase: string, keepSlots: number, addedSlots = keepSlots): Promise<void> {
    return this.change(jobId, undefined, (ledger): Move<undefined> => {
      const held = ledger.grants[jobId];
      const kept = keepClones(held ?? {}, phase, { keepSlots, addedSlots });
      if (held === undefined || kept === held) return { answer: undefined };
      const grant = grantOf(held.slots, held.expiresAt, kept);
      return { answer: undefined, write: { grant, expired: [], totalSlots: ledger.totalSlots } };
    });
  }

  async preemptions(jobId: JobId): Promise<Readonly<Record<string, Preemption>>> {
    return (await this.load())?.grants[jobId]?.preempted ?? {};
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
      ([jobId, grant]) =>
        [jobId, { slots: grant.slots, expiresAt: grant.expiresAt, ...cloneHolding(grant) }] as const,
    );
    const { totalSlots, usedSlots, cloneSlots } = ledger;
    return { totalSlots, usedSlots, cloneSlots, grants: Object.fromEntries(grants) };
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
    for (let round = 1; round <= MEND_ROUNDS; round++) {
      const item = await this.table.get(LEDGER);
      if (item === undefined) return undefined;
      const parsed = ledgerSchema.safeParse(item);
      if (parsed.success) return parsed.data;
      await this.mend(item, firstProblem(parsed.error));
    }
    throw new StoreUnavailableError('the capacity ledger is too busy to be mended', { ...LEDGER });
  }

  /** Takes out of the ledger what cannot be read. A job whose grant goes asks for it again with its next tick. */
  private async mend(item: Item, why: string): Promise<void> {
    const { change, lost } = mendingChange(item);
    if ((await this.table.update(LEDGER, change)) === 'refused') return;
    const key = `${LEDGER.pk}/${LEDGER.sk}`;
    this.report({ key: lost.length === 0 ? key : `${key}/${lost.join(',')}`, why });
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
const expiredIn = (
  { grants }: Ledger,
  jobId: JobId,
  now: number,
  limit = RECLAIMED_PER_WRITE,
): readonly (readonly [string, Grant])[] =>
  Object.entries(grants)
    .filter(([id, grant]) => id !== jobId && grant.expiresAt < now)
    .slice(0, limit);

const sumOf = (grants: readonly (readonly [string, Grant])[], pick: (grant: Grant) => number): number =>
  grants.reduce((sum, [, grant]) => sum + pick(grant), 0);

/** The clones that make room for a request, and up to where U may go: what victims give back is not in use for long. */
function takingFrom(
  ledger: Ledger,
  jobId: JobId,
  asked: { readonly request: CloneRequest; readonly answer: CloneAdmission; readonly room: CloneRoom },
): { readonly taken: NonNullable<Transfer['taken']>; readonly room: CloneRoom } {
  const { answer, room, request } = asked;
  const { victims = [] } = answer;
  const by = { jobId, jobTasks: request.jobTasks ?? 0 };
  const taken = [...takenFrom(victims, by, (id) => ledger.grants[id])].map(
    ([id, { before, after }]) =>
      [id, { before, after: grantOf(before.slots, before.expiresAt, after) }] as const,
  );
  const freed = victims.reduce((sum, { freedSlots }) => sum + freedSlots, 0);
  return { taken, room: { budgetSlots: room.budgetSlots, ceilingSlots: room.ceilingSlots + freed } };
}

function grantOf(slots: number, expiresAt: Grant['expiresAt'], holding: CloneHolding = {}): Grant {
  const cloneSlots = chargedSlots(holding);
  return { slots, expiresAt, ...(cloneSlots === 0 ? {} : { cloneSlots }), ...cloneHolding(holding) };
}
