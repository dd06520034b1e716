import {
  forecastLinks,
  type LocationLinks,
  placementCost,
  placeTasks,
} from '../core/policy/mantri/placement.ts';
import type { Rng } from '../lib/rng.ts';
import { claim } from './checks.ts';
import { type Check, intervalOf, intervalText, type Row, rounded } from './experiment.ts';
import { type Exchange, exchangeSlices, LinkHours, type Slicing } from './link-hours.ts';
import { bytesByLink } from './link-replay.ts';
import type { ShufflePhase } from './shuffle-phases.ts';

/** Of the past, so much tells how long loads last and what is usual; it ends before any phase comes round to it again. */
export const pastS = 1_800;
/** How long loads last is measured anew so often. */
const learnedEveryS = 600;

/** Loads as recorded, in ever shorter slices, and in slices that come from any link. */
const exchanges = {
  'as recorded': undefined,
  'slices of 100 s': { sliceS: 100, isAcrossLinks: false },
  'slices of 10 s': { sliceS: 10, isAcrossLinks: false },
  'slices of 1 s': { sliceS: 1, isAcrossLinks: false },
  'slices of 100 s, across links': { sliceS: 100, isAcrossLinks: true },
  'slices of 1 s, across links': { sliceS: 1, isAcrossLinks: true },
} as const satisfies Record<string, Slicing | undefined>;
type Loads = keyof typeof exchanges;
const allLoads = Object.keys(exchanges) as Loads[];

const schemes = ['equal', 'start', 'ours', 'ideal reduce'] as const;
type Scheme = (typeof schemes)[number];

/** Large phases under one kind of loads and one seed. */
export interface Exchanged {
  readonly loads: Loads;
  /** In milliseconds, summed up over the phases. */
  readonly sums: Readonly<Record<Scheme, number>>;
  /** How long loads last, as learned before each phase; the mean over the phases. */
  readonly persistenceS: number;
}

/** How long loads last, by what was seen before: every ten minutes anew, of the half hour before. */
export class Persistence {
  private readonly hours: LinkHours;
  private readonly known = new Map<number, number>();

  constructor(hours: LinkHours) {
    this.hours = hours;
  }

  secondsAt(startS: number): number {
    const untilS = startS - (startS % learnedEveryS);
    const known = this.known.get(untilS) ?? this.hours.persistenceS(untilS, pastS);
    this.known.set(untilS, known);
    return known;
  }
}

/** What placing by a forecast goes by: the links now and on the mean of the past, and how long loads last. */
export interface Foresight {
  readonly now: LocationLinks;
  readonly usual: LocationLinks;
  readonly persistenceMs: number;
}

/** The links by which ours places a phase: it is expected to take what it takes by usual links as `placed`. */
export function foreseenLinks(
  inputs: ShufflePhase['inputs'],
  placed: readonly number[],
  { now, usual, persistenceMs }: Foresight,
): LocationLinks {
  const duration = placementCost({ inputs, ...usual }, placed);
  return forecastLinks({ now, usual, duration, persistence: persistenceMs });
}

/** What each link carries under a placement: uplinks, then downlinks. */
function bytesOf(phase: ShufflePhase, locations: readonly number[]): number[] {
  const racks = phase.inputs[0]?.length ?? 0;
  const bytes = Array.from({ length: 2 * racks }, () => 0);
  const { sent, received } = bytesByLink(phase, locations);
  for (const [rack, own] of sent) bytes[rack] = own;
  for (const [rack, own] of received) bytes[racks + rack] = own;
  return bytes;
}

/** What competing loads are exchanged with, and on what links. */
export interface ExchangeSetting {
  readonly bytesPerMs: number;
  /** The most tasks of a rack. */
  readonly room: number;
  /** Shares of each link that are left to somebody who is not in the trace. */
  readonly shares: readonly Float64Array[];
}

/** A large phase, whatever its start. */
export interface LargePhase {
  readonly phase: ShufflePhase;
  /** What others leave to it. */
  readonly shares: readonly Float64Array[];
  readonly startS: number;
  /** As placed by equal links. */
  readonly byEqual: readonly number[];
}

/**
 * Large phases beside loads that last less long than they did: each link's hour is cut into slices, which are put into another order.
 * A phase takes until each link has carried its part: what the fluid of its streams adds to that is left out, for it takes far longer to
 * work out.
 */
export class ExchangedLoads {
  private readonly setting: ExchangeSetting;
  private readonly kinds: readonly {
    readonly loads: Loads;
    readonly exchange: Exchange | undefined;
    readonly persistence: Persistence;
    readonly sums: Record<Scheme, number>;
    lasting: number;
  }[];
  private phases = 0;

  constructor(setting: ExchangeSetting, rng: Rng) {
    this.setting = setting;
    this.kinds = allLoads.map((loads) => {
      const slicing = exchanges[loads];
      const exchange =
        slicing === undefined ? undefined : exchangeSlices(setting.shares.length, slicing, rng.fork(loads));
      const persistence = new Persistence(new LinkHours(setting.shares, setting.bytesPerMs, exchange));
      return {
        loads,
        exchange,
        persistence,
        sums: { equal: 0, start: 0, ours: 0, 'ideal reduce': 0 },
        lasting: 0,
      };
    });
  }

  add({ phase, shares, startS, byEqual }: LargePhase): void {
    const { inputs } = phase;
    this.phases += 1;
    for (const kind of this.kinds) {
      const hours = new LinkHours(shares, this.setting.bytesPerMs, kind.exchange);
      const persistenceS = kind.persistence.secondsAt(startS);
      kind.lasting += persistenceS;
      const place = (links: LocationLinks): readonly number[] =>
        placeTasks({ inputs, ...links, room: links.up.map(() => this.setting.room) }, 0).locations;
      const takes = (locations: readonly number[]): number =>
        hours.carriedMs(startS, bytesOf(phase, locations));
      const now = hours.leftTo(startS, startS + 1);
      const usual = hours.leftTo(startS + 3_600 - pastS, startS + 3_600);
      const foreseen = foreseenLinks(inputs, byEqual, { now, usual, persistenceMs: persistenceS * 1_000 });
      let ideal = byEqual;
      for (let turn = 0; turn < 2; turn++) ideal = place(hours.leftTo(startS, startS + takes(ideal) / 1_000));
      kind.sums.equal += takes(byEqual);
      kind.sums.start += takes(place(now));
      kind.sums.ours += takes(place(foreseen));
      kind.sums['ideal reduce'] += takes(ideal);
    }
  }

  /** Nothing without a large phase. */
  found(): Exchanged[] {
    if (this.phases === 0) return [];
    return this.kinds.map(({ loads, sums, lasting }) => ({
      loads,
      sums,
      persistenceS: lasting / this.phases,
    }));
  }
}

const beside = ({ sums }: Exchanged, scheme: Scheme): number =>
  100 * (sums[scheme] / sums['ideal reduce'] - 1);

/** Rows and checks on large phases beside exchanged loads, of some seeds. */
export function exchangedFindings(bySeed: readonly (readonly Exchanged[])[]): {
  readonly rows: Row[];
  readonly checks: Check[];
} {
  if (bySeed.flat().length === 0) return { rows: [], checks: [] };
  const of = (loads: Loads) => bySeed.flatMap((found) => found.filter((each) => each.loads === loads));
  const above = (loads: Loads, scheme: Scheme) => intervalOf(of(loads).map((found) => beside(found, scheme)));
  const rows = allLoads.flatMap((loads) =>
    schemes.map((scheme): Row => ({
      table: 'large phases beside loads in another order',
      loads,
      scheme,
      seconds: rounded(intervalOf(of(loads).map(({ sums }) => sums[scheme] / 1_000)).mean),
      persistenceS: intervalOf(of(loads).map(({ persistenceS }) => persistenceS)).mean,
      aboveIdealPct: intervalText(above(loads, scheme)),
    })),
  );
  const list = (scheme: Scheme): string =>
    allLoads.map((loads) => `${loads} ${intervalText(above(loads, scheme))}`).join('; ');
  const mean = (loads: Loads, scheme: Scheme = 'equal'): number => above(loads, scheme).mean;
  const exchanged = allLoads.filter((loads) => loads !== 'as recorded');
  const checks = [
    claim('large phases, Equal beside IdealReduce, as loads last less long, % more time', {
      paper: 'differences even out over the lifetime of long phases',
      got: list('equal'),
      rule: 'less with every shorter slice, and within 5 % at a second: if it were all due to how long loads last',
      kind: 'side',
      ok:
        mean('slices of 100 s') < mean('as recorded') &&
        mean('slices of 10 s') < mean('slices of 100 s') &&
        mean('slices of 1 s') < mean('slices of 10 s') &&
        mean('slices of 1 s') <= 5,
    }),
    claim('the same, where links have the same mean load too', {
      paper: 'the bandwidth averaged over their long lifetime can be assumed to be equal for all links',
      got: `${intervalText(above('slices of 1 s, across links', 'equal'))} % more time; each with its own mean ${intervalText(above('slices of 1 s', 'equal'))} %`,
      rule: 'within 5 %, with slices of a second',
      kind: 'side',
      ok: mean('slices of 1 s, across links') <= 5,
    }),
    claim('large phases, Equal against Start, as loads last less long', {
      paper: 'Equal better',
      got: `Start: ${list('start')}`,
      rule: 'Equal ahead in slices of every length',
      kind: 'side',
      ok: exchanged.every((loads) => mean(loads) < mean(loads, 'start')),
    }),
    claim('large phases, ours beside IdealReduce, as loads last less long, % more time', {
      paper: 'not in the paper',
      got: list('ours'),
      rule: 'never behind the better of Start and Equal by more than 1 %',
      kind: 'side',
      ok: allLoads.every(
        (loads) => mean(loads, 'ours') <= Math.min(mean(loads, 'start'), mean(loads, 'equal')) + 1,
      ),
    }),
  ];
  return { rows, checks };
}
