import {
  linksForPlacement,
  type LocationLinks,
  type Placement,
  placementCost,
  placeTasks,
} from '../core/policy/mantri/placement.ts';
import { createRng } from '../lib/rng.ts';
import {
  type Exchanged,
  ExchangedLoads,
  type Foresight,
  foreseenLinks,
  pastS,
  Persistence,
} from './exchanged-loads.ts';
import type { Experiment, ExperimentInput, Findings } from './experiment.ts';
import { hourS, LinkHours } from './link-hours.ts';
import { type PlacePhase, type Replay, replayPhases } from './link-replay.ts';
import { SharedLinks } from './link-sharing.ts';
import { type End, medianOverSlowest, type Measured, type SchemeName } from './placement-figures.ts';
import { placementFindings } from './placement-findings.ts';
import type { ReplayedPhase } from './placement-hour.ts';
import { runTransfers, type Transfers } from './reduce-transfers.ts';
import { type ShufflePhase, shufflePhases } from './shuffle-phases.ts';

const racks = 150;
/** 3,000 machines: 20 in a rack, each of which takes one task of a phase. */
const room = 20;
/** 1 Gb/s, as machines of 2010 had it. */
const machineBytesPerMs = 125_000;
/** Ten to one: a rack's machines could send and receive ten times as much as its links carry. */
const rackBytesPerMs = (room * machineBytesPerMs) / 10;

/** Up to how many bytes a phase is small, for the rule: the paper does not say, so others stand beside Mantri's. */
const smallPhaseBytes = 10e9;
const limits = {
  mantri: smallPhaseBytes,
  start: Infinity,
  equal: 0,
  'mantri, small to 0.1 GB': 1e8,
  'mantri, small to 1 GB': 1e9,
  'mantri, small to 100 GB': 1e11,
} as const satisfies Partial<Record<SchemeName, number>>;

/** Other loads are exchanged on so many of the seeds: it costs as much as all else, and tells much the same on each. */
const exchangedSeeds = 4;

function placeBy(phase: ShufflePhase, links: LocationLinks, proofSteps: number | undefined): Placement {
  return placeTasks({ inputs: phase.inputs, ...links, room: links.up.map(() => room) }, proofSteps);
}

/** Placements by equal links, which are the same whatever the loads. */
class EqualPlacements {
  private readonly known = new Map<ShufflePhase, readonly number[]>();

  of(phase: ShufflePhase): readonly number[] {
    const equal = Array.from({ length: racks }, () => rackBytesPerMs);
    const placed = this.known.get(phase) ?? placeBy(phase, { up: equal, down: equal }, 0).locations;
    this.known.set(phase, placed);
    return placed;
  }

  /** As the rule places a phase to which its links leave so much at its start, if phases up to `smallBytes` are small. */
  byRule(phase: ShufflePhase, atStart: LocationLinks, smallBytes: number): readonly number[] {
    const links = linksForPlacement(atStart, phase.bytes, smallBytes);
    return links === atStart ? placeBy(phase, links, 0).locations : this.of(phase);
  }
}

/** What links leave to a phase on the mean from one time after its start to another. */
type LeftTo = (fromMs: number, toMs: number) => LocationLinks;

/** Answers of the rule and runs of the fluid, each made once. */
class PhaseRuns {
  private readonly phase: ShufflePhase;
  private readonly leftTo: LeftTo;
  private readonly equal: EqualPlacements;
  private readonly hour: LocationLinks;
  /** What the links leave to it in the first second. */
  private readonly atStart: LocationLinks;
  private byStart: readonly number[] | undefined;
  private readonly runs = new Map<string, Promise<Transfers>>();

  constructor(phase: ShufflePhase, leftTo: LeftTo, equal: EqualPlacements) {
    this.phase = phase;
    this.leftTo = leftTo;
    this.equal = equal;
    this.hour = leftTo(0, hourS * 1_000);
    this.atStart = leftTo(0, 1_000);
  }

  /** As the rule places it, if phases up to `smallBytes` are small. */
  placeByRule(smallBytes: number): readonly number[] {
    if (this.phase.bytes > smallBytes) return this.equal.of(this.phase);
    return (this.byStart ??= this.equal.byRule(this.phase, this.atStart, smallBytes));
  }

  /** By what the links are foretold to leave until the phase ends. */
  placeByForecast(foresight: Omit<Foresight, 'now'>): readonly number[] {
    const { inputs } = this.phase;
    const links = foreseenLinks(inputs, this.placeByRule(0), { ...foresight, now: this.atStart });
    return placeBy(this.phase, links, 0).locations;
  }

  /** By what the links will leave on the mean until the phase ends, which depends on the placement in turn. */
  placeIdeally(): Placement {
    const { inputs } = this.phase;
    const first = this.leftTo(0, placementCost({ inputs, ...this.hour }, this.placeByRule(0)));
    const placed = placeBy(this.phase, first, 0).locations;
    return placeBy(this.phase, this.leftTo(0, placementCost({ inputs, ...first }, placed)), undefined);
  }

  run(locations: readonly number[]): Promise<Transfers> {
    const key = locations.join();
    const before = this.runs.get(key);
    if (before !== undefined) return before;
    const largest = this.phase.inputs.reduce(
      (most, row) =>
        Math.max(
          most,
          row.reduce((sum, bytes) => sum + bytes, 0),
        ),
      0,
    );
    const costMs = placementCost({ inputs: this.phase.inputs, ...this.hour }, locations);
    const expectedMs = Math.max(costMs, largest / machineBytesPerMs);
    const made = runTransfers(this.phase, locations, { leftTo: this.leftTo, machineBytesPerMs, expectedMs });
    this.runs.set(key, made);
    return made;
  }
}

/** Of those tasks that read from another rack than their own, from where they are placed. */
function ratioAcross(
  { inputs }: ShufflePhase,
  locations: readonly number[],
  throughputs: readonly number[],
): number {
  const across = throughputs.filter((_, task) =>
    inputs[task]?.some((bytes, rack) => bytes > 0 && rack !== locations[task]),
  );
  return across.length > 1 ? medianOverSlowest(across) : NaN;
}

/** A phase beside others, at one time. */
interface Surrounded {
  readonly runs: PhaseRuns;
  readonly foresight: Omit<Foresight, 'now'>;
}

/** What every scheme makes of a phase; the first free slot beside others that take it too. */
async function measure(
  phase: ShufflePhase,
  { runs, foresight }: Surrounded,
  before: Surrounded,
): Promise<Measured> {
  const ideal = runs.placeIdeally();
  const placed = new Map<SchemeName, readonly number[]>([
    ['ours', runs.placeByForecast(foresight)],
    ['ideal reduce', ideal.locations],
  ]);
  for (const [scheme, limit] of Object.entries(limits) as [keyof typeof limits, number][])
    placed.set(scheme, runs.placeByRule(limit));
  const endOf = async (beside: Surrounded, locations: readonly number[]): Promise<End> => {
    const { endMs, throughputs } = await beside.runs.run(locations);
    const across = ratioAcross(phase, locations, throughputs);
    return { endMs, ratio: medianOverSlowest(throughputs), ratioAcross: across };
  };
  const ends = new Map<SchemeName, End>([['first free slot', await endOf(before, phase.recorded)]]);
  for (const [scheme, locations] of placed) ends.set(scheme, await endOf({ runs, foresight }, locations));
  return {
    tasks: phase.inputs.length,
    sources: phase.sources.length,
    isSmall: phase.bytes <= smallPhaseBytes,
    ends,
    idealCostMs: ideal.cost,
    idealAtLeastMs: ideal.atLeast,
  };
}

/** A cluster in which all phases of the hour are placed by one scheme. */
class Cluster {
  readonly replay: Replay;
  /** What links leave to somebody who is not in the trace. */
  readonly shares: readonly Float64Array[];
  private readonly phases: readonly ShufflePhase[];
  private readonly links: SharedLinks;
  private readonly persistence: Persistence;
  private readonly equal: EqualPlacements;

  constructor(phases: readonly ShufflePhase[], equal: EqualPlacements, place: PlacePhase) {
    this.phases = phases;
    this.equal = equal;
    this.replay = replayPhases(phases, { racks, bytesPerMs: rackBytesPerMs }, place);
    this.links = new SharedLinks(this.replay, rackBytesPerMs);
    this.shares = this.links.sharesOf();
    this.persistence = new Persistence(new LinkHours(this.shares, rackBytesPerMs));
  }

  sharesLeftTo(index: number): readonly Float64Array[] {
    return this.links.sharesOf(index);
  }

  /** A phase that starts at a second of the hour, beside all others. */
  around(index: number, startS: number): Surrounded {
    const leftTo: LeftTo = (fromMs, toMs) =>
      this.links.leftTo(index, startS + fromMs / 1_000, startS + toMs / 1_000);
    const phase = this.phases[index];
    if (phase === undefined) throw new RangeError(`no phase ${index}`);
    return {
      runs: new PhaseRuns(phase, leftTo, this.equal),
      foresight: {
        usual: leftTo(1_000 * (hourS - pastS), 1_000 * hourS),
        persistenceMs: 1_000 * this.persistence.secondsAt(startS),
      },
    };
  }
}

/** The whole hour under each scheme that goes by what links leave at a phase's start at most. */
function clustersOf(phases: readonly ShufflePhase[]) {
  const equal = new EqualPlacements();
  const byRule =
    (smallBytes: number): PlacePhase =>
    (index, left) => {
      const phase = phases[index];
      return phase === undefined ? [] : equal.byRule(phase, left, smallBytes);
    };
  const cluster = (place: PlacePhase): Cluster => new Cluster(phases, equal, place);
  return {
    'first free slot': cluster((index) => phases[index]?.recorded ?? []),
    mantri: cluster(byRule(limits.mantri)),
    start: cluster(byRule(limits.start)),
    equal: cluster(byRule(limits.equal)),
  } as const satisfies Partial<Record<SchemeName, Cluster>>;
}

async function run({ seeds, traces }: ExperimentInput): Promise<Findings> {
  const phases = shufflePhases(traces.get('coflow') ?? [], racks, room);
  const clusters = clustersOf(phases);
  const recorded = clusters['first free slot'];
  const setting = { bytesPerMs: rackBytesPerMs, room, shares: recorded.shares };
  const [inside, alone]: [Measured[][], Measured[][]] = [[], []];
  const exchanged: Exchanged[][] = [];
  for (const [turn, seed] of seeds.entries()) {
    const rng = createRng(`mantri-placement/${seed}`);
    const loads =
      turn < exchangedSeeds ? new ExchangedLoads(setting, rng.fork('exchanged loads')) : undefined;
    const [insideNow, aloneNow]: [Measured[], Measured[]] = [[], []];
    for (const [index, phase] of phases.entries()) {
      const startS = Math.floor(rng.next() * hourS);
      const before = recorded.around(index, startS);
      insideNow.push(await measure(phase, clusters.mantri.around(index, startS), before));
      aloneNow.push(await measure(phase, before, before));
      if (loads === undefined || phase.bytes <= smallPhaseBytes) continue;
      const byEqual = before.runs.placeByRule(limits.equal);
      loads.add({ phase, shares: recorded.sharesLeftTo(index), startS, byEqual });
    }
    inside.push(insideNow);
    alone.push(aloneNow);
    exchanged.push(loads?.found() ?? []);
  }
  const replayed = Object.entries(clusters).map(([scheme, { replay }]) => ({
    scheme: scheme as keyof typeof clusters,
    phases: phases.map(({ bytes }, index): ReplayedPhase => ({
      isSmall: bytes <= smallPhaseBytes,
      ms: replay.tookMs[index] ?? 0,
    })),
  }));
  return placementFindings({ inside, alone, exchanged, replayed });
}

/**
 * Where reduce tasks are placed, and how soon all have their input: shuffles of Facebook's cluster of 2010 (150 racks,
 * 10:1), one at a time on a fluid network. The first free slot is where the trace has each. Other traffic is the rest of the
 * same hour, from a drawn second on; it shares each link evenly with the phase and is not slowed down by it. What
 * tasks do beside reading is not in the trace, so that gains are gains of transfers.
 *
 * The others are placed by Mantri's rule as well, as in the paper's cluster, where "every job manager takes this independent action" and
 * links are equally busy for it; beside the first free slot they have theirs. What the rule does for one job alone, among others that
 * were placed as recorded, stands beside that, and the whole hour where each scheme places everybody.
 *
 * Ours goes by what links will leave as foretold from what they leave now, from the half hour before and from how long loads lasted in it.
 * Why that job is not near IdealReduce is tested by large phases beside the same loads in another order.
 *
 * Source: Mantri §5.2, §6.3, Fig. 16 and 17.
 */
export const mantriPlacement: Experiment = {
  name: 'mantri-placement',
  title: 'Mantri: reduce tasks placed by the network, against the first free slot',
  source: 'Mantri §5.2 and §6, the figures on placement',
  defaultSeeds: 3,
  traces: ['coflow'],
  run,
};
