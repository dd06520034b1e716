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
import { SharedLinks } from './link-sharing.ts';
import {
  type End,
  medianOverSlowest,
  type Measured,
  placementFindings,
  type SchemeName,
} from './placement-findings.ts';
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

/** Answers of the rule and runs of the fluid, each made once. */
class PhaseRuns {
  private readonly phase: ShufflePhase;
  private readonly leftTo: (fromMs: number, toMs: number) => LocationLinks;
  private readonly hour: LocationLinks;
  /** What the links leave to it in the first second. */
  private readonly atStart: LocationLinks;
  private byStart: readonly number[] | undefined;
  private byEqual: readonly number[] | undefined;
  private readonly runs = new Map<string, Promise<Transfers>>();

  constructor(phase: ShufflePhase, leftTo: (fromMs: number, toMs: number) => LocationLinks) {
    this.phase = phase;
    this.leftTo = leftTo;
    this.hour = leftTo(0, hourS * 1_000);
    this.atStart = leftTo(0, 1_000);
  }

  /** As the rule places what reads so much, if phases up to `smallBytes` are small. */
  placeByRule(smallBytes: number): readonly number[] {
    const links = linksForPlacement(this.atStart, this.phase.bytes, smallBytes);
    if (links === this.atStart) return (this.byStart ??= this.place(links));
    return (this.byEqual ??= this.place(links));
  }

  private place(links: LocationLinks): readonly number[] {
    return this.placement(links, 0).locations;
  }

  private placement(links: LocationLinks, proofSteps?: number): Placement {
    return placeTasks({ inputs: this.phase.inputs, ...links, room: links.up.map(() => room) }, proofSteps);
  }

  /** By what the links are foretold to leave until the phase ends. */
  placeByForecast(foresight: Omit<Foresight, 'now'>): readonly number[] {
    const { inputs } = this.phase;
    return this.place(foreseenLinks(inputs, this.placeByRule(0), { ...foresight, now: this.atStart }));
  }

  /** By what the links will leave on the mean until the phase ends, which depends on the placement in turn. */
  placeIdeally(): Placement {
    const { inputs } = this.phase;
    const first = this.leftTo(0, placementCost({ inputs, ...this.hour }, this.placeByRule(0)));
    return this.placement(this.leftTo(0, placementCost({ inputs, ...first }, this.place(first))));
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

/** What every scheme makes of a phase. */
async function measure(
  phase: ShufflePhase,
  runs: PhaseRuns,
  foresight: Omit<Foresight, 'now'>,
): Promise<Measured> {
  const ideal = runs.placeIdeally();
  const placed = new Map<SchemeName, readonly number[]>([
    ['first free slot', phase.recorded],
    ['ours', runs.placeByForecast(foresight)],
    ['ideal reduce', ideal.locations],
  ]);
  for (const [scheme, limit] of Object.entries(limits) as [keyof typeof limits, number][])
    placed.set(scheme, runs.placeByRule(limit));
  const ends = new Map<SchemeName, End>();
  for (const [scheme, locations] of placed) {
    const { endMs, throughputs } = await runs.run(locations);
    const across = ratioAcross(phase, locations, throughputs);
    ends.set(scheme, { endMs, ratio: medianOverSlowest(throughputs), ratioAcross: across });
  }
  return {
    tasks: phase.inputs.length,
    sources: phase.sources.length,
    isSmall: phase.bytes <= smallPhaseBytes,
    ends,
    idealCostMs: ideal.cost,
    idealAtLeastMs: ideal.atLeast,
  };
}

async function run({ seeds, traces }: ExperimentInput): Promise<Findings> {
  const phases = shufflePhases(traces.get('coflow') ?? [], racks, room);
  const links = new SharedLinks(phases, racks, rackBytesPerMs);
  const setting = { bytesPerMs: rackBytesPerMs, room, shares: links.sharesOf() };
  const persistence = new Persistence(new LinkHours(setting.shares, rackBytesPerMs));
  const measured: Measured[][] = [];
  const exchanged: Exchanged[][] = [];
  for (const [turn, seed] of seeds.entries()) {
    const rng = createRng(`mantri-placement/${seed}`);
    const loads =
      turn < exchangedSeeds ? new ExchangedLoads(setting, rng.fork('exchanged loads')) : undefined;
    const ofSeed: Measured[] = [];
    for (const [index, phase] of phases.entries()) {
      const startS = Math.floor(rng.next() * hourS);
      const leftTo = (fromMs: number, toMs: number): LocationLinks =>
        links.leftTo(index, startS + fromMs / 1_000, startS + toMs / 1_000);
      const runs = new PhaseRuns(phase, leftTo);
      const usual = leftTo(1_000 * (hourS - pastS), 1_000 * hourS);
      const foresight = { usual, persistenceMs: 1_000 * persistence.secondsAt(startS) };
      ofSeed.push(await measure(phase, runs, foresight));
      if (loads === undefined || phase.bytes <= smallPhaseBytes) continue;
      loads.add({ phase, shares: links.sharesOf(index), startS, byEqual: runs.placeByRule(0) });
    }
    measured.push(ofSeed);
    exchanged.push(loads?.found() ?? []);
  }
  return placementFindings(measured, exchanged);
}

/**
 * Where reduce tasks are placed, and how soon all have their input: shuffles of Facebook's cluster of 2010 (150 racks,
 * 10:1), one at a time on a fluid network. The first free slot is where the trace has each. Other traffic is the rest of the
 * same hour, as recorded, from a drawn second on; it shares each link evenly with the phase and is not slowed down by it. What
 * tasks do beside reading is not in the trace, so that gains are gains of transfers.
 *
 * Ours goes by what links will leave as foretold from what they leave now, from the half hour before and from how long loads lasted in it.
 * Why Mantri is not near IdealReduce is tested by large phases beside the same loads in another order.
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
