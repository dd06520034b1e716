import type { JobId } from '../../contracts/ids.ts';
import { type Holding, isBidder, type Ledger, type Move, occupiedBy } from './ledger.ts';

/** Slots that a job asks to have before any are shared. */
export interface GuaranteeAsking {
  readonly jobId: JobId;
  /** Which of the job's schedulers asks: one that was replaced gets nothing. */
  readonly epoch: number;
  readonly wanted: number;
  readonly totalSlots: number;
}

/** Slots that are a job's own before any are shared. */
export const guaranteeOf = ({ guaranteed = 0 }: Pick<Holding, 'guaranteed'>): number => guaranteed;

/** Whether a job is to be guaranteed more: what one that bids has of its own is settled with its bid. */
export const lacksGuarantee = (holding: Pick<Holding, 'guaranteed' | 'bid'>, asked: number): boolean =>
  asked > guaranteeOf(holding) && !isBidder(holding);

/** Slots that are guaranteed to these and that they do not use now. */
export function reserved(holdings: Iterable<Holding>): number {
  let sum = 0;
  for (const holding of holdings) sum += Math.max(0, guaranteeOf(holding) - occupiedBy(holding));
  return sum;
}

/**
 * What is guaranteed to a job once it has said how much it asks for: less where it asks for less, never more. Undefined:
 * it was never admitted any, or has said nothing.
 */
export const guaranteeStated = (before: number | undefined, asked: number | undefined): number | undefined =>
  before === undefined || asked === undefined ? before : Math.min(before, asked);

/**
 * Guarantees a job as many of the slots that it asks for as nobody else is guaranteed, so that all guarantees together
 * are never more than there is; answers how many are its own now. What it was guaranteed before it keeps. A job that is
 * not in the ledger is guaranteed none.
 *
 * Source: Jockey (EuroSys 2012): guaranteed tokens of a job, which its controller sets; the rest is spare.
 */
export function admitGuarantee(ledger: Ledger, asking: GuaranteeAsking): Move<number> {
  const { jobId, epoch, wanted, totalSlots } = asking;
  const own = ledger.holdings.get(jobId);
  if (own === undefined || own.epoch > epoch) return { answer: 0, totalSlots, changes: new Map() };
  const had = guaranteeOf(own);
  let others = -had;
  for (const holding of ledger.holdings.values()) others += guaranteeOf(holding);
  const guaranteed = Math.max(had, Math.min(wanted, Math.floor(totalSlots) - others));
  if (guaranteed === had) return { answer: had, totalSlots, changes: new Map() };
  return { answer: guaranteed, totalSlots, changes: new Map([[jobId, { ...own, guaranteed }]]) };
}
