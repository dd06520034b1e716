import { describe, expect, it } from 'vitest';
import type { SlotBid } from '../../../../../src/core/capacity/ledger.ts';
import { divideSlots } from '../../../../../src/core/policy/jockey/arbiter.ts';
import { followPlan, paceOn, type PlannedJob } from '../../../../../src/core/policy/jockey/slot-plan.ts';
import { createRng, type Rng } from '../../../../../src/lib/rng.ts';

/** Work that any slot can do: so long on one slot, half of it on two. */
const spread = (ms: number, most: number): SlotBid['left'] =>
  Array.from({ length: most }, (_, index) => [index + 1, ms / (index + 1)]);
/** Worth 1 until it is due, and by so much less each ms from then on. */
const dueAt = (ms: number, perMs: number): SlotBid['utility'] => [
  [0, 1],
  [ms, 1],
  [ms + 1_000, 1 - 1_000 * perMs],
];
const bidder = (bid: SlotBid, has = 0) => ({ bid, weight: 1, has });
const jobOf = ({ asks, left, utility }: SlotBid): PlannedJob => ({
  ...{ asks, left, weight: 1 },
  utility: { points: utility },
});
const places = (count: number): number[] => Array.from({ length: count }, (_, place) => place);

describe('a plan of slots', () => {
  const left = spread(100, 10);
  const jobs = [
    jobOf({ asks: 10, left, utility: dueAt(0, 1) }),
    jobOf({ asks: 10, left, utility: dueAt(0, 1) }),
  ];

  it('ends jobs one after another where one comes before the other', () => {
    const plan = followPlan(10, jobs, { order: [1, 0], shares: [Infinity, Infinity] });
    expect(plan.now).toEqual([1, 9]);
    // The second ends after 100 / 9 ms, the first has done a tenth as much by then and needs 88 8/9 on ten slots.
    expect(plan.worth).toBeCloseTo(2 - 100 / 9 - (100 / 9 + (100 - 100 / 9) / 10), 6);
  });

  it('ends them together where they share', () => {
    const plan = followPlan(10, jobs, { order: [0, 1], shares: [5, 5] });
    expect(plan.now).toEqual([5, 5]);
    expect(plan.worth).toBeCloseTo(2 - 20 - 20, 6);
  });

  it('gives beyond its share what nobody else can use, and never more than is asked for', () => {
    const [job] = jobs as [PlannedJob];
    expect(followPlan(10, [job, { ...job, asks: 3 }], { order: [0, 1], shares: [5, 5] }).now).toEqual([7, 3]);
    expect(
      followPlan(
        10,
        [
          { ...job, asks: 4 },
          { ...job, asks: 3 },
        ],
        { order: [0, 1], shares: [9, 9] },
      ).now,
    ).toEqual([4, 3]);
  });

  it('shares what a job leaves idle of its own with those that have the fewest', () => {
    // On nine slots it goes on at 0.0375 of its way a ms, and has 3.75 of them busy: six of the others are left whole.
    const lumpy = jobOf({
      asks: 10,
      left: [
        [1, 100],
        [2, 50],
        [10, 25],
      ],
      utility: dueAt(0, 1),
    });
    const [even] = jobs as [PlannedJob];
    const plan = followPlan(10, [lumpy, even], { order: [0, 1], shares: [9, 1] });
    expect(plan.now).toEqual([9, 1]);
    // The other ends on six slots; the first has done 0.625 by then, and the rest on ten.
    expect(plan.worth).toBeCloseTo(2 - 100 / 6 - (100 / 6 + 0.375 * 25), 6);
    // Twice its weight is twice its share, up to all that it can use.
    const heavy = followPlan(10, [lumpy, { ...even, weight: 2 }], { order: [0, 1], shares: [9, 1] });
    expect(heavy.worth).toBeCloseTo(3 - 2 * (100 / 6) - (100 / 6 + 0.375 * 25), 6);
  });

  it('is straight between points of a bid, and no faster beyond the last', () => {
    const job = {
      left: [
        [2, 100],
        [4, 50],
      ],
    } as const;
    expect(paceOn(job, 0)).toBe(0);
    expect(paceOn(job, 1)).toBeCloseTo(1 / 200, 9);
    expect(paceOn(job, 3)).toBeCloseTo(1.5 / 100, 9);
    expect(paceOn(job, 9)).toBeCloseTo(1 / 50, 9);
  });
});

describe('the division of slots among jobs', () => {
  it('lets a short job go before a long one that is as late, though more slots would bring the long one more', () => {
    const [short, long] = [spread(100, 10), spread(1_000, 10)];
    const utility = dueAt(0, 1);
    expect(
      divideSlots(10, [
        bidder({ asks: 10, left: long, utility }),
        bidder({ asks: 10, left: short, utility }),
      ]),
    ).toEqual([1, 9]);
  });

  it('lets a job wait that is not due for long', () => {
    const left = spread(100, 10);
    const [soon, later] = [dueAt(11.2, 1), dueAt(100, 1)];
    expect(
      divideSlots(10, [
        bidder({ asks: 10, left, utility: later }),
        bidder({ asks: 10, left, utility: soon }),
      ]),
    ).toEqual([1, 9]);
  });

  it('gives a job no more than brings it on, where another can use the rest', () => {
    // On three slots as long as on ten.
    const narrow: SlotBid['left'] = [
      [1, 300],
      [3, 100],
      [10, 100],
    ];
    const utility = dueAt(0, 1);
    expect(
      divideSlots(10, [
        bidder({ asks: 10, left: narrow, utility }),
        bidder({ asks: 10, left: spread(700, 10), utility }),
      ]),
    ).toEqual([3, 7]);
  });

  it('lets a job that is lost go last where being later costs nothing more', () => {
    const left = spread(100, 10);
    const lost: SlotBid['utility'] = [
      [-20, 1],
      [-10, -100],
      [1_000, -100],
    ];
    expect(
      divideSlots(10, [
        bidder({ asks: 10, left, utility: lost }),
        bidder({ asks: 10, left, utility: dueAt(11.2, 1) }),
      ]),
    ).toEqual([1, 9]);
  });

  it('moves no slots for nothing', () => {
    const bid = { asks: 10, left: spread(100, 10), utility: dueAt(1_000, 1) };
    expect(divideSlots(10, [bidder(bid, 3), bidder(bid, 7)])).toEqual([3, 7]);
  });

  it('goes by the best of a few plans where there are very many jobs', () => {
    const bids = places(400).map((place) => ({
      asks: 9,
      left: spread(100 + place, 9),
      utility: dueAt(place, 1),
    }));
    const given = divideSlots(
      500,
      bids.map((bid) => bidder(bid)),
    );
    expect(given.reduce((sum, each) => sum + each, 0)).toBe(500);
    expect(Math.min(...given)).toBe(1);
  });

  // A step is a pace that is looked up, and 150,000 of them take some ten ms of one core.
  it.each([
    [10, 900],
    [20, 900],
    [200, 900],
    [1_000, 4_000],
  ])(
    'of %i jobs that ask for twice as many slots as there are takes no more steps than it may',
    (count, slots) => {
      const bids = places(count).map((place) => ({
        asks: 2 * Math.ceil(slots / count),
        left: [1, 3, 6, 13, 25, 50, 100].map(
          (each) => [each, 20_000 + (1_200_000 * (1 + (place % 7))) / each] as const,
        ),
        utility: dueAt(285_000, 4e-5),
      }));
      const effort = { steps: 0, most: 150_000 };
      const given = divideSlots(
        slots,
        bids.map((bid) => bidder(bid, 2)),
        effort,
      );
      // Beyond that the round of looks that is under way, and one more: for each job ten at the most.
      expect(effort.steps).toBeLessThan(150_000 + 2 * 10 * count);
      expect(given.reduce((sum, each) => sum + each, 0)).toBe(slots);
      expect(Math.min(...given)).toBeGreaterThan(0);
    },
  );

  it.each([20, 100, 150, 160, 190, 200, 240, 260])(
    'serves one that comes with the tightest deadline, though %i have slots',
    (count) => {
      const left = [1, 2, 4, 8, 12, 16, 20, 25, 30, 40, 50, 55, 60].map(
        (each) => [each, 6_000_000 / each] as const,
      );
      const bids = places(count).map((place) => ({
        asks: 60,
        left,
        utility: dueAt(place === count - 1 ? 110_000 : 3_000_000 + 1_000 * place, 4e-5),
      }));
      const given = divideSlots(
        1_000,
        bids.map((bid, place) => bidder(bid, place === count - 1 ? 0 : place < 10 ? 60 : 1)),
      );
      expect(given.at(-1)).toBe(60);
    },
  );

  it('serves those first that are due first where there are too many jobs to follow any plan', () => {
    const bids = places(5).map((place) => ({
      asks: 9,
      left: spread(100, 9),
      utility: dueAt(50 - place, 1),
    }));
    const effort = { steps: 0, most: 1 };
    expect(
      divideSlots(
        22,
        bids.map((bid) => bidder(bid)),
        effort,
      ),
    ).toEqual([1, 1, 2, 9, 9]);
  });

  it('leaves none without a slot while there are any', () => {
    const bid = { asks: 5, left: spread(100, 5), utility: dueAt(0, 1) };
    expect(
      divideSlots(
        3,
        [bid, bid, bid].map((each) => bidder(each)),
      ),
    ).toEqual([1, 1, 1]);
    expect(
      divideSlots(
        2,
        [bid, bid, bid].map((each) => bidder(each)),
      ),
    ).toEqual([1, 1, 0]);
    expect(divideSlots(0, [bidder(bid)])).toEqual([0]);
    expect(divideSlots(5, [])).toEqual([]);
    expect(divideSlots(5, [bidder({ asks: 0, left: [], utility: [] }), bidder(bid)])).toEqual([0, 5]);
  });
});

/** A bid whose pace is concave in its slots, or has an S: slow on few slots, quick from a number on. */
function anyBid(rng: Rng, slots: number): SlotBid {
  const work = 50 + rng.next() * 500;
  const knee = 1 + Math.floor(rng.next() * slots);
  const isSteep = rng.next() < 0.5;
  const left = places(slots).map((index): readonly [number, number] => {
    const used = index + 1;
    const pace = isSteep ? (used < knee ? used / 3 : used) : Math.min(used, knee) + 0.1 * used;
    return [used, work / pace];
  });
  const due = rng.next() * 200;
  const perMs = 0.1 + rng.next();
  const utility =
    rng.next() < 0.3
      ? ([
          [0, 1],
          [due, 1],
          [due + 1, -50],
          [due + 1_000, -51],
        ] as const)
      : dueAt(due, perMs);
  return { asks: slots, left, utility };
}

/** Utility where each keeps its slots until all have ended. */
const keptWorth = (bids: readonly SlotBid[], division: readonly number[]): number =>
  followPlan(
    division.reduce((sum, slots) => sum + slots, 0),
    bids.map((bid, place) => jobOf({ ...bid, left: bid.left.slice(0, division[place]) })),
    { order: places(bids.length), shares: division },
  ).worth;

function* permutations(items: readonly number[]): Generator<number[]> {
  if (items.length === 0) yield [];
  for (const item of items)
    for (const rest of permutations(items.filter((other) => other !== item))) yield [item, ...rest];
}

/** What a division comes to where the best order is found by trying all from then on. */
function bestFrom(slots: number, bids: readonly SlotBid[], shares: readonly number[]): number {
  let best = -Infinity;
  for (const order of permutations(places(bids.length)))
    best = Math.max(best, followPlan(slots, bids.map(jobOf), { order, shares }).worth);
  return best;
}

describe('what the division comes to', () => {
  it.each(places(60))('is no less than that of equal shares that are kept (seed %i)', (seed) => {
    const { slots, bids, given } = anyDivision(seed);
    expect(given.reduce((sum, each) => sum + each, 0)).toBeLessThanOrEqual(slots);
    expect(Math.min(...given)).toBeGreaterThanOrEqual(1);
    const equal = bids.map(() => Math.floor(slots / bids.length));
    expect(bestFrom(slots, bids, given)).toBeGreaterThanOrEqual(keptWorth(bids, equal) - 1e-6);
  });

  it('is nearly as much as that of the best of all orders and divisions, but for one case in twenty', () => {
    let near = 0;
    for (const seed of places(100)) {
      const { slots, bids, given } = anyDivision(seed);
      let best = bestFrom(
        slots,
        bids,
        bids.map(() => Infinity),
      );
      for (const division of divisions(slots, bids.length))
        best = Math.max(best, bestFrom(slots, bids, division));
      if (best - bestFrom(slots, bids, given) <= 0.05 * (10 + Math.abs(best))) near += 1;
    }
    expect(near).toBeGreaterThanOrEqual(95);
  });
});

function anyDivision(seed: number): {
  readonly slots: number;
  readonly bids: readonly SlotBid[];
  readonly given: readonly number[];
} {
  const rng = createRng(`division/${seed}`);
  const slots = 4 + Math.floor(rng.next() * 5);
  const bids = places(2 + Math.floor(rng.next() * 3)).map(() => anyBid(rng, slots));
  const given = divideSlots(
    slots,
    bids.map((bid) => bidder(bid)),
  );
  return { slots, bids, given };
}

function* divisions(slots: number, count: number): Generator<number[]> {
  if (count === 1) yield [slots];
  else
    for (let first = 1; first <= slots - count + 1; first++)
      for (const rest of divisions(slots - first, count - 1)) yield [first, ...rest];
}
