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

/** It bounds the write of a round. The turn of what was cut comes with the next bids. */
const mostChanges = 50;

/** Slots that others were promised, or ask for: those of jobs that were taken on before. */
const promised = (holdings: ReadonlyMap<JobId, Holding>, jobId: JobId): number =>
  [...holdings].reduce(
    (sum, [id, holding]) =>
      id === jobId ? sum : sum + Math.max(guaranteeOf(holding), holding.bid?.asks ?? 0),
    0,
  );

/** Slots that jobs with bids may have: what others are guaranteed is theirs, and each of them that wants some has one. */
function roomFor(totalSlots: number, holdings: Iterable<Holding>): number {
  let room = Math.floor(totalSlots);
  let others = 0;
  for (const holding of holdings) {
    if (isBidder(holding)) continue;
    room -= guaranteeOf(holding);
    if (guaranteeOf(holding) === 0 && holding.wanted > 0) others += 1;
  }
  return room - Math.min(others, Math.max(0, Math.floor(room / 2)));
}

/**
 * Divides among all jobs that bid the slots that others are not guaranteed, less one for each job that bids for none and
 * wants some, that none starves. Where there are enough each gets what it asks for, and else as all ends together are
 * worth the most. What is taken from a job it loses as a guarantee alone: what runs goes on, and its grant falls when slots are
 * shared out next. Divides once for all bids that come together, whose order counts for who is refused. Answers how many
 * each job that bids is guaranteed now; none where it is not in the ledger.
 */
export function arbitrateBids(
  ledger: Ledger,
  asked: readonly BidAsking[],
): Move<readonly (number | 'refused')[]> {
  const all = new Map<JobId, Holding>(ledger.holdings);
  const turnedAway = new Map<BidAsking, 0 | 'refused'>();
  for (const asking of asked) {
    const { jobId, epoch, bid, totalSlots, needed } = asking;
    const own = all.get(jobId);
    if (own === undefined || own.epoch > epoch) turnedAway.set(asking, 0);
    else if (needed !== undefined && !isBidder(own) && needed > Math.floor(totalSlots) - promised(all, jobId))
      turnedAway.set(asking, 'refused');
    else all.set(jobId, { ...own, bid });
  }
  const totalSlots = asked.at(-1)?.totalSlots ?? ledger.totalSlots;
  const heard = new Map(asked.flatMap((each) => (turnedAway.has(each) ? [] : [[each.jobId, each] as const])));
  const changes = new Map<JobId, Holding>();
  const given = heard.size === 0 ? new Map<JobId, number>() : sharesOf({ all, heard, totalSlots });
  for (const [jobId, guaranteed] of given) {
    const holding = all.get(jobId);
    if (holding === undefined) continue;
    const isNews = heard.has(jobId) && !isSame(ledger.holdings.get(jobId)?.bid, holding.bid);
    if (guaranteed !== guaranteeOf(holding) || isNews) changes.set(jobId, { ...holding, guaranteed });
  }
  for (const jobId of heard.keys()) {
    const [before, after] = [ledger.holdings.get(jobId), all.get(jobId)];
    // What it is guaranteed still it gives back by its own word, as far as its spec does not ask for it.
    if (before !== undefined && after !== undefined && isBidder(before) && !isBidder(after))
      changes.set(jobId, after);
  }
  const answer = asked.map(
    (each) =>
      turnedAway.get(each) ?? given.get(each.jobId) ?? guaranteeOf(ledger.holdings.get(each.jobId) ?? {}),
  );
  return { answer, totalSlots, changes };
}

/** What each job that bids is guaranteed from now on. */
function sharesOf({
  all,
  heard,
  totalSlots,
}: {
  readonly all: ReadonlyMap<JobId, Holding>;
  readonly heard: ReadonlyMap<JobId, BidAsking>;
  readonly totalSlots: number;
}): ReadonlyMap<JobId, number> {
  const bidders = [...all].filter(([, holding]) => isBidder(holding));
  const room = roomFor(totalSlots, all.values());
  const isAlone = [...heard.values()].every(({ alone = false }) => alone);
  const given = isAlone
    ? besideOthers(room, bidders, heard)
    : bounded(room, bidders, { wanted: divided(room, bidders), heard });
  return new Map(bidders.map(([jobId], place) => [jobId, given[place] ?? 0]));
}

const isSame = (a: SlotBid | undefined, b: SlotBid | undefined): boolean =>
  JSON.stringify(a) === JSON.stringify(b);

type Bidder = readonly [JobId, Holding];

function divided(room: number, bidders: readonly Bidder[]): readonly number[] {
  const bids = bidders.flatMap(([, { bid, weight, ...holding }]) =>
    bid === undefined ? [] : [{ bid, weight, has: guaranteeOf(holding) }],
  );
  const asked = bids.reduce((sum, { bid }) => sum + bid.asks, 0);
  return asked <= room ? bids.map(({ bid }) => bid.asks) : divideSlots(room, bids);
}

/** What those who bid ask for, one after the other, as far as others leave it; they keep what they have. */
function besideOthers(
  room: number,
  bidders: readonly Bidder[],
  heard: ReadonlyMap<JobId, BidAsking>,
): readonly number[] {
  const given = bidders.map(([, each]) => guaranteeOf(each));
  let sum = given.reduce((all, each) => all + each, 0);
  for (const [place, [jobId, { bid }]] of bidders.entries()) {
    if (!heard.has(jobId)) continue;
    const had = given[place] ?? 0;
    const has = Math.max(0, Math.min(bid?.asks ?? 0, room - (sum - had)));
    given[place] = has;
    sum += has - had;
  }
  return given;
}

/**
 * A division as far as it changes few jobs at once: those that bid now, then those that lose the most, and with what is free
 * by then those that gain the most. So it promises no more than there is, whatever is cut.
 */
function bounded(
  room: number,
  bidders: readonly Bidder[],
  { wanted, heard }: { readonly wanted: readonly number[]; readonly heard: ReadonlyMap<JobId, BidAsking> },
): readonly number[] {
  const had = bidders.map(([, each]) => guaranteeOf(each));
  const moreFor = (place: number): number => (wanted[place] ?? 0) - (had[place] ?? 0);
  const isHeard = (place: number): boolean => heard.has(bidders[place]?.[0] ?? ('' as JobId));
  const changed = [...had.keys()]
    .filter((place) => moreFor(place) !== 0)
    .sort(
      (a, b) =>
        Number(isHeard(b)) - Number(isHeard(a)) || Math.abs(moreFor(b)) - Math.abs(moreFor(a)) || a - b,
    );
  if (changed.length <= mostChanges) return wanted;
  const raised = changed.filter((place) => moreFor(place) > 0);
  const lowered = changed
    .filter((place) => moreFor(place) < 0)
    .slice(0, Math.max(mostChanges / 2, mostChanges - raised.length));
  const given = [...had];
  for (const place of lowered) given[place] = wanted[place] ?? 0;
  let left = room - given.reduce((sum, each) => sum + each, 0);
  for (const place of raised.slice(0, mostChanges - lowered.length)) {
    const more = Math.max(0, Math.min(moreFor(place), left));
    given[place] = (had[place] ?? 0) + more;
    left -= more;
  }
  return given;
}
