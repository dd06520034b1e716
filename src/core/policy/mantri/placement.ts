import { invariant } from '../../../contracts/errors.ts';
import { spreadTasks } from './spread-tasks.ts';

/** What the links of the locations can carry, by location, in any one unit. */
export interface LocationLinks {
  readonly up: readonly number[];
  readonly down: readonly number[];
}

/** The tasks of a reduce phase, which are to be divided among locations (racks or zones). */
export interface PlacementProblem extends LocationLinks {
  /** `inputs[t][k]`: bytes of the input of task t that lie in location k. */
  readonly inputs: readonly (readonly number[])[];
  /** The most tasks that each location takes; enough for all. No limit unless told. */
  readonly room?: readonly number[];
}

export interface Placement {
  /** The location of each task. */
  readonly locations: readonly number[];
  /** Transfer time over the link that takes longest, in the unit of the inputs over that of the links. */
  readonly cost: number;
  /** No placement costs less than this, not even one that divides tasks: `cost` itself where the answer is exact. */
  readonly atLeast: number;
}

/** Placements that are still gone through one by one. */
const mostPlacements = 65_536;
/** Steps towards the weights that prove most. */
const usualProofSteps = 60;

const timeOf = (bytes: number, link: number | undefined): number => (bytes > 0 ? bytes / (link ?? 0) : 0);

/**
 * The transfer time over the link that takes longest, of all up and down links, under a placement.
 *
 * Source: Mantri §5.2, max_j c_j.
 */
export function placementCost(problem: PlacementProblem, locations: readonly number[]): number {
  const up = problem.up.map(() => 0);
  const down = problem.up.map(() => 0);
  problem.inputs.forEach((row, task) => {
    const place = locations[task] ?? 0;
    row.forEach((bytes, from) => {
      if (from === place) return;
      up[from] = (up[from] ?? 0) + bytes;
      down[place] = (down[place] ?? 0) + bytes;
    });
  });
  return up.reduce(
    (most, bytes, k) => Math.max(most, timeOf(bytes, problem.up[k]), timeOf(down[k] ?? 0, problem.down[k])),
    0,
  );
}

/**
 * Puts each task where the transfers that the phase makes between locations are over soonest, if it has the links to
 * itself: minimises max(d_u/b_u, d_v/b_v) over the up and down links of all locations. Exact, of equals the
 * lexicographically first, where there are no more than 65,536 placements; else by a search that ends at a local
 * optimum, and that proves how far from the optimum it can be at most: `cost / atLeast`.
 *
 * @param proofSteps - most of the time of a large phase goes into that proof: fewer steps prove less, and place the same.
 *
 * Source: Mantri §5.2. Ours: room in a location, without which all tasks would go where all input is, and the search; the
 * paper goes through all permutations, which nobody can.
 */
export function placeTasks(problem: PlacementProblem, proofSteps = usualProofSteps): Placement {
  const { inputs, up, room } = problem;
  const places = room === undefined ? Infinity : room.reduce((sum, tasks) => sum + tasks, 0);
  invariant(up.length > 0 && places >= inputs.length, 'too little room for the tasks', { places });
  const spread = spreadTasks(problem, proofSteps);
  const found = { ...spread, cost: placementCost(problem, spread.locations) };
  if (up.length === 1 || up.length ** inputs.length > mostPlacements) {
    return { ...found, atLeast: Math.min(found.atLeast, found.cost) };
  }
  const locations = new PlacementSearch(problem, found.cost).run() ?? found.locations;
  const cost = placementCost(problem, locations);
  return { locations, cost, atLeast: cost };
}

/** What rounding may add to a cost that was summed up in another order. */
const slack = 1 + 1e-12;

/** Goes through all placements in lexicographic order, but for those that begin too dear already. */
class PlacementSearch {
  private readonly problem: PlacementProblem;
  /** What each location must send, whatever becomes of the tasks that are not placed still; and what it receives. */
  private readonly sent: number[];
  private readonly received: number[];
  private readonly taken: number[];
  private readonly chosen: number[] = [];
  private most: number;
  private best: readonly number[] | undefined;

  /** @param most - a cost that some placement has. */
  constructor(problem: PlacementProblem, most: number) {
    this.problem = problem;
    this.most = most * slack;
    this.sent = problem.up.map(() => 0);
    this.received = problem.up.map(() => 0);
    this.taken = problem.up.map(() => 0);
  }

  /** The first of the cheapest; undefined if rounding hid it. */
  run(): readonly number[] | undefined {
    this.place(0);
    return this.best;
  }

  private place(task: number): void {
    const cost = this.costSoFar();
    if (cost > this.most || (this.best !== undefined && cost * slack >= this.most)) return;
    const row = this.problem.inputs[task];
    if (row === undefined) {
      this.best = [...this.chosen];
      this.most = cost;
      return;
    }
    for (let place = 0; place < this.taken.length; place++) {
      if ((this.taken[place] ?? 0) >= (this.problem.room?.[place] ?? Infinity)) continue;
      const undo = [[...this.sent], this.received[place] ?? 0] as const;
      this.move(row, place);
      this.chosen.push(place);
      this.place(task + 1);
      this.chosen.pop();
      this.taken[place] = (this.taken[place] ?? 0) - 1;
      this.received[place] = undo[1];
      undo[0].forEach((bytes, k) => (this.sent[k] = bytes));
    }
  }

  private move(row: readonly number[], place: number): void {
    this.taken[place] = (this.taken[place] ?? 0) + 1;
    row.forEach((bytes, from) => {
      if (from === place) return;
      this.sent[from] = (this.sent[from] ?? 0) + bytes;
      this.received[place] = (this.received[place] ?? 0) + bytes;
    });
  }

  private costSoFar(): number {
    const { up, down } = this.problem;
    return this.sent.reduce(
      (most, bytes, k) => Math.max(most, timeOf(bytes, up[k]), timeOf(this.received[k] ?? 0, down[k])),
      0,
    );
  }
}

/**
 * The links by which a phase is placed: as they were at its start where it reads little, since they change little
 * before it ends; all equal where it reads much, since they even out over its life.
 *
 * Source: Mantri §5.2; how much is little it does not say.
 */
export function linksForPlacement(
  atStart: LocationLinks,
  phaseBytes: number,
  smallPhaseBytes: number,
): LocationLinks {
  if (phaseBytes <= smallPhaseBytes) return atStart;
  const all = [...atStart.up, ...atStart.down];
  const mean = all.reduce((sum, link) => sum + link, 0) / all.length;
  return { up: atStart.up.map(() => mean), down: atStart.down.map(() => mean) };
}

/** What a link's bandwidth in the life of a phase is foretold from. Times in any one unit. */
export interface LinkForecast {
  /** What the links leave now. */
  readonly now: LocationLinks;
  /** What they leave on the mean over a time that is far longer than loads last. */
  readonly usual: LocationLinks;
  /** How long the phase is expected to read. */
  readonly duration: number;
  /** How long loads last: after so long, a link's distance from its usual is 1/e of what it was, on the mean. 0: no time at all. */
  readonly persistence: number;
}

/**
 * What each link will leave on the mean while a phase reads: `w` of what it leaves now, and the rest of what is usual, where
 * w = p/d (1 - exp(-d/p)) for a phase of duration d and loads of persistence p. That is the mean from 0 to d of exp(-t/p), by
 * which a distance from the usual fades where loads return to it steadily. Near `now` for short phases, near `usual` for long ones.
 *
 * Source: ours, between the two extremes of Mantri §5.2: `now` for phases that read little and equal links for those that read much.
 */
export function forecastLinks({ now, usual, duration, persistence }: LinkForecast): LocationLinks {
  const lives = persistence > 0 ? duration / persistence : Infinity;
  const weight = lives > 0 ? -Math.expm1(-lives) / lives : 1;
  const between = (links: readonly number[], means: readonly number[]): number[] =>
    links.map((link, k) => weight * link + (1 - weight) * (means[k] ?? link));
  return { up: between(now.up, usual.up), down: between(now.down, usual.down) };
}
