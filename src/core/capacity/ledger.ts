import type { JobId } from '../../contracts/ids.ts';
import type { EpochMs } from '../../contracts/units.ts';
import { chargedSlots, cloneHolding, type CloneHolding } from './clone-holding.ts';

/** What a job says of itself, in the words of its own scheduler. Nobody else changes it. */
export interface Statement {
  /** Slots that it could use at once. */
  readonly wanted: number;
  /** Its share where slots are short, beside those of others. */
  readonly weight: number;
  /** When the job was submitted: among equals the oldest is served first. */
  readonly since: EpochMs;
  /** Differs with each statement. A job whose beat has not changed for long counts as dead, by the watcher's own clock. */
  readonly beat: number;
  /** Which of the job's schedulers says it: one that was replaced says nothing more. */
  readonly epoch: number;
}

/** A job in the ledger. */
export interface Holding extends Statement, CloneHolding {
  /** Slots that it may launch with. */
  readonly slots: number;
  /**
   * Slots that it may still be using: at least `slots`, and more after some were taken away, until its scheduler says
   * that what ran there has ended. What runs is never stopped for the sake of others.
   */
  readonly held: number;
  /** Backups that it may run of those that all jobs may: by admission, less what it needs no more. Absent: none. */
  readonly backups?: number | undefined;
  /** Slots that are its own before any are shared, as far as it wants them; by admission. Absent: none. */
  readonly guaranteed?: number | undefined;
  /** Bytes of replicas that it may have made; by admission, of the tokens that it has earned. Absent: none. */
  readonly tokens?: number | undefined;
  /** What slots of its own were worth to it when it bid for them last. Absent: it has no deadline to meet. */
  readonly bid?: SlotBid | undefined;
}

/** What slots of its own are worth to a job, from the time on when it bids. */
export interface SlotBid {
  /** Slots that it asks for. */
  readonly asks: number;
  /** Points [slots, ms until it ends on so many], ascending by slots; also beyond what it asks for. */
  readonly left: readonly (readonly [number, number])[];
  /** Points [ms from now, utility of its end then], ascending; before now too. */
  readonly utility: readonly (readonly [number, number])[];
}

/** Of a job that takes back what it has bid. */
export const noBid: SlotBid = { asks: 0, left: [], utility: [] };

/** Whether a job bids for slots: one that has taken its bid back does so no more. */
export const isBidder = ({ bid = noBid }: Pick<Holding, 'bid'>): boolean => bid.left.length > 0;

/** What a job was admitted of what all share, beside slots: its own word lowers it, and only a round raises it. */
export const admittedParts = ['backups', 'guaranteed', 'tokens'] as const;
export type AdmittedPart = (typeof admittedParts)[number];
export type Admitted = Readonly<Partial<Record<AdmittedPart, number>>>;

/** Those parts of a holding that are there. */
export function admittedOf(holding: Pick<Holding, AdmittedPart>): Admitted {
  const found: Partial<Record<AdmittedPart, number>> = {};
  for (const part of admittedParts) {
    const value = holding[part];
    if (value !== undefined) found[part] = value;
  }
  return found;
}

/** Whether two holdings were admitted the same. */
export const isAdmittedAlike = (a: Pick<Holding, AdmittedPart>, b: Pick<Holding, AdmittedPart>): boolean =>
  admittedParts.every((part) => a[part] === b[part]);

/** Slots of all jobs together, and who holds them. */
export interface Ledger {
  readonly totalSlots: number;
  readonly holdings: ReadonlyMap<JobId, Holding>;
}

/** What a rule makes of a ledger. It strikes nobody out: that is a write of its own. */
export interface Move<T> {
  readonly answer: T;
  /** Jobs of the ledger whose grants change. */
  readonly changes: ReadonlyMap<JobId, Holding>;
  readonly totalSlots: number;
}

/** A pure function of the ledger: the same answer for the same ledger, since it may be asked several times. */
export type CapacityRule<T> = (ledger: Ledger) => Move<T>;

/** A job's holding with other clones; parts that are empty are gone. */
export function withClones(holding: Holding, clones: CloneHolding): Holding {
  const { wanted, weight, since, beat, epoch, slots, held, bid } = holding;
  return {
    ...{ wanted, weight, since, beat, epoch, slots, held },
    ...admittedOf(holding),
    ...(bid === undefined ? {} : { bid }),
    ...cloneHolding(clones),
  };
}

/** Slots that a job may be using. */
export const occupiedBy = ({ slots, held }: Pick<Holding, 'slots' | 'held'>): number => Math.max(slots, held);

/** Slots that all of these may be using together. */
export function occupied(holdings: Iterable<Holding>): number {
  let sum = 0;
  for (const holding of holdings) sum += occupiedBy(holding);
  return sum;
}

/** Slots charged to the cloning budget, over all of these. */
export function cloned(holdings: Iterable<Holding>): number {
  let sum = 0;
  for (const holding of holdings) sum += chargedSlots(holding);
  return sum;
}

/** The ledger as it is once a move has been made. */
export function moved(ledger: Ledger, { changes, totalSlots }: Move<unknown>): Ledger {
  if (changes.size === 0) return { ...ledger, totalSlots };
  return { totalSlots, holdings: new Map([...ledger.holdings, ...changes]) };
}

/** Whether a move has to be written down. */
export const isMove = (ledger: Ledger, { changes, totalSlots }: Move<unknown>): boolean =>
  changes.size > 0 || totalSlots !== ledger.totalSlots;
