import { invariant } from '../../../contracts/errors.ts';

interface Phase {
  readonly inputs: readonly (readonly number[])[];
  readonly up: readonly number[];
  readonly down: readonly number[];
  readonly room?: readonly number[];
}

/** A good placement, and what no placement can fall below. */
interface Spread {
  readonly locations: readonly number[];
  readonly atLeast: number;
}

/** How sharply each round looks at the slowest links: at first all count, in the end only those within a few per cent. */
const sharpness = [4, 8, 16, 32, 64, 128, 256, 256] as const;
/** Moves and exchanges that are tried in the end. */
const mostTrials = 300_000;
/** Of a weight in one step, as a logarithm. */
const mostGrowth = 30;
/** What rounding may have added to a proof. */
const exactness = 1 - 1e-9;

/**
 * Divides tasks among locations so that the slowest link is done soon. Tasks go where they add least to the sum over all
 * links of exp(s · time), the largest first, again and again with a larger s; then single tasks leave the slowest
 * location, or change places with others, while that helps it and harms nobody as much.
 *
 * The bound is that of linear programming's dual: whatever weights of sum 1 the links are given, the slowest link takes
 * no less than their weighted mean does where each task is put to the best of that mean. From the links that were slowest
 * in the best placement, weights move by subgradients (Polyak's step) to where that proves more, `proofSteps` times; without a step the
 * bound is that of the task which is hardest to place.
 */
export function spreadTasks(phase: Phase, proofSteps: number): Spread {
  const loads = new LinkLoads(phase);
  let best = { cost: Infinity, locations: [] as readonly number[] };
  let bound = { proven: -Infinity, weights: loads.weights(0) };
  for (const alpha of sharpness) {
    loads.settle(alpha);
    if (loads.cost() < best.cost) best = { cost: loads.cost(), locations: loads.locations() };
    if (proofSteps === 0) continue;
    const weights = loads.weights(alpha);
    const proven = loads.prove(weights, 1);
    if (proven > bound.proven) bound = { proven, weights };
  }
  loads.take(best.locations);
  loads.repair();
  const proven = Math.max(loads.leastOfOne(), loads.prove(bound.weights, proofSteps)) * exactness;
  return { locations: loads.locations(), atLeast: proven };
}

/** What each location's links carry under a placement that changes task by task. */
class LinkLoads {
  private readonly r: number;
  /** Largest first. */
  private readonly order: readonly number[];
  /** By task and location: how much longer its downlink takes with the task, and how much shorter its uplink. */
  private readonly adds: readonly Float64Array[];
  private readonly saves: readonly Float64Array[];
  private readonly room: readonly number[];
  private readonly count: number[];
  private readonly up: Float64Array;
  private readonly down: Float64Array;
  private readonly at: (number | undefined)[];
  private readonly allUp: Float64Array;
  private trials = 0;

  constructor({ inputs, up, down, room }: Phase) {
    invariant(
      [...up, ...down].every((link) => link > 0),
      'a link that carries nothing',
      {},
    );
    this.r = up.length;
    const totals = inputs.map((row) => row.reduce((sum, bytes) => sum + bytes, 0));
    this.order = totals.map((_, task) => task).sort((a, b) => (totals[b] ?? 0) - (totals[a] ?? 0) || a - b);
    this.adds = inputs.map((row, task) =>
      Float64Array.from(down, (link, k) => Math.max(0, (totals[task] ?? 0) - (row[k] ?? 0)) / link),
    );
    this.saves = inputs.map((row) => Float64Array.from(up, (link, k) => (row[k] ?? 0) / link));
    this.room = room ?? up.map(() => Infinity);
    this.count = up.map(() => 0);
    this.up = Float64Array.from(up, (_, k) => this.saves.reduce((sum, row) => sum + (row[k] ?? 0), 0));
    this.allUp = this.up.slice();
    this.down = new Float64Array(this.r);
    this.at = inputs.map(() => undefined);
  }

  locations(): readonly number[] {
    return this.at.map((place) => place ?? 0);
  }

  cost(): number {
    let most = 0;
    for (let k = 0; k < this.r; k++) most = Math.max(most, this.timeAt(k));
    return most;
  }

  /** Goes back to an earlier placement. */
  take(locations: readonly number[]): void {
    this.at.forEach((_, task) => {
      this.leave(task);
    });
    locations.forEach((place, task) => {
      this.enter(task, place);
    });
  }

  /** Puts every task anew, one after the other, where it adds least. */
  settle(alpha: number): void {
    const scale = this.scale();
    if (scale === 0 && this.at.every((place) => place !== undefined)) return;
    const sharp = scale === 0 ? 0 : alpha / scale;
    const [up, down] = [this.up, this.down].map((times) =>
      times.map((time) => Math.exp(sharp * time - alpha)),
    );
    if (up === undefined || down === undefined) return;
    const renew = (k: number): void => {
      up[k] = Math.exp(sharp * (this.up[k] ?? 0) - alpha);
      down[k] = Math.exp(sharp * (this.down[k] ?? 0) - alpha);
    };
    for (const task of this.order) {
      const left = this.leave(task);
      if (left !== undefined) renew(left);
      const place = this.cheapest(task, sharp, [up, down]);
      this.enter(task, place);
      renew(place);
    }
  }

  private cheapest(task: number, sharp: number, [up, down]: readonly [Float64Array, Float64Array]): number {
    const [adds, saves] = [this.adds[task], this.saves[task]];
    let [place, least] = [-1, Infinity];
    for (let k = 0; k < this.r; k++) {
      if ((this.count[k] ?? 0) >= (this.room[k] ?? 0)) continue;
      const added =
        (up[k] ?? 0) * Math.expm1(-sharp * (saves?.[k] ?? 0)) +
        (down[k] ?? 0) * Math.expm1(sharp * (adds?.[k] ?? 0));
      if (added < least || place < 0) [place, least] = [k, added];
    }
    return place;
  }

  /** No placement is done before the task that is hardest to place has arrived. */
  leastOfOne(): number {
    return this.adds.reduce(
      (most, row) =>
        Math.max(
          most,
          row.reduce((a, b) => Math.min(a, b), Infinity),
        ),
      0,
    );
  }

  /** Of all uplinks, then all downlinks: the slower a link is, the more it weighs. */
  weights(alpha: number): Float64Array {
    const cost = this.cost();
    return Float64Array.from([...this.up, ...this.down], (time) =>
      cost > 0 ? Math.exp(alpha * (time / cost - 1)) : 1,
    );
  }

  /** What every placement costs at least, by the best weights that are found from these. */
  prove(from: Float64Array, steps: number): number {
    const reach = this.cost();
    let [weights, proven] = [from, 0];
    for (let step = 0; step < steps && proven < reach; step++) {
      const sum = weights.reduce((a, b) => a + b, 0);
      weights = weights.map((weight) => weight / sum);
      const times = this.bestFor(weights);
      const least = times.reduce((mean, time, link) => mean + time * (weights[link] ?? 0), 0);
      proven = Math.max(proven, least);
      const widest = times.reduce((a, b) => Math.max(a, Math.abs(b - least)), 0);
      if (widest === 0) break;
      const pace = Math.max(0, reach - least) / widest ** 2;
      weights = weights.map(
        (weight, link) => weight * Math.exp(Math.min(mostGrowth, pace * ((times[link] ?? 0) - least))),
      );
    }
    return proven;
  }

  /** The times of all links where each task is put to the best of their weighted mean, whatever the room. */
  private bestFor(weights: Float64Array): Float64Array {
    const times = new Float64Array(2 * this.r);
    times.set(this.allUp);
    for (const task of this.order) {
      const [adds, saves] = [this.adds[task], this.saves[task]];
      let [place, least] = [0, Infinity];
      for (let k = 0; k < this.r; k++) {
        const added = (weights[this.r + k] ?? 0) * (adds?.[k] ?? 0) - (weights[k] ?? 0) * (saves?.[k] ?? 0);
        if (added < least) [place, least] = [k, added];
      }
      times[place] = (times[place] ?? 0) - (saves?.[place] ?? 0);
      times[this.r + place] = (times[this.r + place] ?? 0) + (adds?.[place] ?? 0);
    }
    return times;
  }

  /** Moves tasks out of the slowest location, into it, or across, while it gets faster and the other stays faster than it was. */
  repair(): void {
    for (let isBetter = true; isBetter;) {
      let slowest = 0;
      for (let k = 1; k < this.r; k++) if (this.timeAt(k) > this.timeAt(slowest)) slowest = k;
      isBetter = this.relieve(slowest);
    }
  }

  private relieve(slowest: number): boolean {
    const before = this.timeAt(slowest);
    for (const task of this.order) {
      const from = this.at[task];
      if (from === slowest) {
        for (let k = 0; k < this.r; k++) if (k !== slowest && this.tryMove(task, k, before)) return true;
      } else if (this.tryMove(task, slowest, before)) return true;
    }
    for (const task of this.order) {
      if (this.at[task] !== slowest || this.trials > mostTrials) continue;
      for (const other of this.order) {
        if (this.at[other] !== slowest && this.trySwap(task, other, before)) return true;
      }
    }
    return false;
  }

  private tryMove(task: number, to: number, before: number): boolean {
    if ((this.count[to] ?? 0) >= (this.room[to] ?? 0)) return false;
    const from = this.leave(task) ?? 0;
    this.enter(task, to);
    if (this.isBelow(before, from, to)) return true;
    this.leave(task);
    this.enter(task, from);
    return false;
  }

  private trySwap(task: number, other: number, before: number): boolean {
    const [from, to] = [this.leave(task) ?? 0, this.leave(other) ?? 0];
    this.enter(task, to);
    this.enter(other, from);
    if (this.isBelow(before, from, to)) return true;
    this.leave(task);
    this.leave(other);
    this.enter(task, from);
    this.enter(other, to);
    return false;
  }

  /** By more than rounding, so that repairs end. */
  private isBelow(before: number, a: number, b: number): boolean {
    this.trials += 1;
    return Math.max(this.timeAt(a), this.timeAt(b)) < before * (1 - 1e-9);
  }

  private timeAt(k: number): number {
    return Math.max(this.up[k] ?? 0, this.down[k] ?? 0);
  }

  /** The slowest link's time, or what it would be if tasks that are not placed yet were spread evenly. */
  private scale(): number {
    if (this.at.every((place) => place !== undefined)) return this.cost();
    const loads = this.adds.reduce((sum, row) => sum + row.reduce((a, b) => a + b, 0) / this.r, 0);
    return Math.max(this.cost(), loads / this.r);
  }

  private enter(task: number, place: number): void {
    this.at[task] = place;
    this.shift(task, place, 1);
  }

  /** Where the task was. */
  private leave(task: number): number | undefined {
    const place = this.at[task];
    this.at[task] = undefined;
    if (place !== undefined) this.shift(task, place, -1);
    return place;
  }

  private shift(task: number, place: number, sign: 1 | -1): void {
    this.count[place] = (this.count[place] ?? 0) + sign;
    this.up[place] = (this.up[place] ?? 0) - sign * (this.saves[task]?.[place] ?? 0);
    this.down[place] = (this.down[place] ?? 0) + sign * (this.adds[task]?.[place] ?? 0);
  }
}
