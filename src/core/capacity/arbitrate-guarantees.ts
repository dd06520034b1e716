import type { JobId } from '../../contracts/ids.ts';
import { divideSlots } from '../policy/jockey/arbiter.ts';
import { guaranteeOf } from './guarantees.ts';
import { type Holding, isBidder, type Ledger, type Move, type SlotBid } from './ledger.ts';

/** On what terms a job bids. */
export interface BidTerms {
  /** Of a job that is to be taken on: refused, and nothing changes, unless so many are left beside what others ask for. */
  readonly needed?: number | undefined;
  /** Nothing of others is divided anew: it has what they leave. Absent: all is. */
  readonly alone?: boolean | undefined;
}

/** A job with a deadline, and what slots of its own are worth to it now. */
export interface BidAsking extends BidTerms {
  readonly jobId: JobId;
  /** Which of the job's schedulers asks: one that was replaced gets nothing. */
  readonly epoch: number;
  readonly bid: SlotBid;
  readonly totalSlots: number;
}

/** Slots that others were promised, or ask for: those of jobs that were taken on before. */
const promised = (ledger: Ledger, jobId: JobId): number =>
  [...ledger.holdings].reduce(
    (sum, [id, holding]) =>
      id === jobId ? sum : sum + Math.max(guaranteeOf(holding), holding.bid?.asks ?? 0),
    0,
  );

/**
 * Divides among all jobs that bid the slots that others are not guaranteed, less one for each job that bids for none and
 * wants some, that none starves. Where there are enough each gets what it asks for, and else as all ends together are
 * worth the most. What is taken from a job it loses as a guarantee alone: what runs goes on, and its grant falls when slots are
 * shared out next. Answers how many the job is guaranteed now; none where it is not in the ledger.
 */
export function arbitrateGuarantees(ledger: Ledger, asking: BidAsking): Move<number | 'refused'> {
  const { jobId, epoch, bid, totalSlots, needed, alone = false } = asking;
  const own = ledger.holdings.get(jobId);
  if (own === undefined || own.epoch > epoch) return { answer: 0, totalSlots, changes: new Map() };
  if (needed !== undefined && !isBidder(own) && needed > Math.floor(totalSlots) - promised(ledger, jobId))
    return { answer: 'refused', totalSlots, changes: new Map() };
  const all = new Map<JobId, Holding>([...ledger.holdings, [jobId, { ...own, bid }]]);
  const bidders = [...all].filter(([, holding]) => isBidder(holding));
  let room = Math.floor(totalSlots);
  let others = 0;
  for (const holding of all.values()) {
    if (isBidder(holding)) continue;
    room -= guaranteeOf(holding);
    if (guaranteeOf(holding) === 0 && holding.wanted > 0) others += 1;
  }
  room -= Math.min(others, Math.max(0, Math.floor(room / 2)));
  const given = alone ? besideOthers(room, bidders, jobId) : divided(room, bidders);
  const changes = new Map<JobId, Holding>();
  for (const [place, [id, holding]] of bidders.entries()) {
    const guaranteed = given[place] ?? 0;
    if (guaranteed !== guaranteeOf(holding) || (id === jobId && !isSame(own.bid, bid)))
      changes.set(id, { ...holding, guaranteed });
  }
  if (isBidder({ bid })) {
    const ownPlace = bidders.findIndex(([id]) => id === jobId);
    return { answer: given[ownPlace] ?? 0, totalSlots, changes };
  }
  // What it is guaranteed still it gives back by its own word, as far as its spec does not ask for it.
  if (isBidder(own)) changes.set(jobId, { ...own, bid });
  return { answer: guaranteeOf(own), totalSlots, changes };
}

const isSame = (a: SlotBid | undefined, b: SlotBid): boolean => JSON.stringify(a) === JSON.stringify(b);

type Bidder = readonly [JobId, Holding];

function divided(room: number, bidders: readonly Bidder[]): readonly number[] {
  const bids = bidders.flatMap(([, { bid, weight, ...holding }]) =>
    bid === undefined ? [] : [{ bid, weight, has: guaranteeOf(holding) }],
  );
  const asked = bids.reduce((sum, { bid }) => sum + bid.asks, 0);
  return asked <= room ? bids.map(({ bid }) => bid.asks) : divideSlots(room, bids);
}

/** What the job asks for, as far as others leave it; they keep what they have. */
function besideOthers(room: number, bidders: readonly Bidder[], jobId: JobId): readonly number[] {
  const others = bidders.reduce((sum, [id, each]) => (id === jobId ? sum : sum + guaranteeOf(each)), 0);
  return bidders.map(([id, each]) =>
    id === jobId ? Math.max(0, Math.min(each.bid?.asks ?? 0, room - others)) : guaranteeOf(each),
  );
}
