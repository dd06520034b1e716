/** What slots are worth to a job that keeps them: points [slots, utility], ascending by slots; the last is all that it asks for. */
export type WorthPoints = readonly (readonly [number, number])[];

interface Bidder {
  readonly bid: WorthPoints;
  /** Its weight, by which what slots bring it counts. */
  readonly weight: number;
}

const askedBy = (bid: WorthPoints): number => bid.at(-1)?.[0] ?? 0;

/**
 * Divides slots among jobs so that they bring the most in all: each has one first, as far as there are so many, that
 * none starves, and then again and again as many more go to a job as bring the most for each of them. A step may be any
 * that leads to a point of its bid, since many slots may bring what few do not. None gets more than it asks for.
 * Answers the slots of each, in their order.
 *
 * Source: the arbiter that Jockey (EuroSys 2012), §4.4 and §7, leaves to future work: by marginal utility.
 */
export function divideByMarginalUtility(totalSlots: number, bidders: readonly Bidder[]): readonly number[] {
  let left = Math.max(0, Math.floor(totalSlots));
  const given = bidders.map(({ bid }) => {
    const first = Math.min(1, askedBy(bid), left);
    left -= first;
    return first;
  });
  const steps = bidders.reduce((sum, { bid }) => sum + bid.length, 0);
  const bestOf = ({ bid }: Bidder, place: number): Step | undefined => bestStep(bid, given[place] ?? 0, left);
  const best = bidders.map(bestOf);
  for (let step = 0; step < steps && left > 0; step++) {
    let found = { place: -1, slots: 0, gain: 0 };
    for (const [place, bidder] of bidders.entries()) {
      // What there is no room for any more is another step; the others stay what they were.
      if ((best[place]?.slots ?? 0) > left) best[place] = bestOf(bidder, place);
      const { slots, gain } = best[place] ?? none;
      if (gain * bidder.weight > found.gain) found = { place, slots, gain: gain * bidder.weight };
    }
    const bidder = bidders[found.place];
    if (bidder === undefined) break;
    given[found.place] = (given[found.place] ?? 0) + found.slots;
    left -= found.slots;
    best[found.place] = bestOf(bidder, found.place);
  }
  return given;
}

/** So many slots more, and what each of them brings. */
interface Step {
  readonly slots: number;
  readonly gain: number;
}
const none: Step = { slots: 0, gain: 0 };

/** The step from `slots` to a point of the bid that brings the most for each slot; undefined where none brings anything. */
function bestStep(bid: WorthPoints, slots: number, left: number): Step | undefined {
  const from = worthOf(bid, slots);
  let best: Step | undefined;
  for (const [to, worth] of bid) {
    const more = Math.min(to - slots, left);
    if (more <= 0) continue;
    const gain = ((to - slots > left ? worthOf(bid, slots + left) : worth) - from) / more;
    if (gain > 0 && (best === undefined || gain > best.gain)) best = { slots: more, gain };
  }
  return best;
}

/** What so many slots are worth: straight between the points of the bid, and what the nearest is beyond them. */
export function worthOf(bid: WorthPoints, slots: number): number {
  const behind = bid.findIndex(([at]) => at >= slots);
  const [to, atTo] = (behind < 0 ? bid.at(-1) : bid[behind]) ?? [0, 0];
  const before = behind > 0 ? bid[behind - 1] : undefined;
  if (before === undefined || to <= slots) return atTo;
  const [from, atFrom] = before;
  return atFrom + ((atTo - atFrom) * (slots - from)) / (to - from);
}
