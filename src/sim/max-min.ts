/** Flows that use the same links and get the same rate. */
export interface FlowClass {
  /** Places in the list of capacities; one listed twice is used twice by each flow. Empty: limited by `cap` alone. */
  readonly links: readonly number[];
  readonly flows: number;
}

/** A link in use: what it has left to give, to how many flows, and the classes of those by place. */
interface UsedLink {
  readonly place: number;
  readonly classes: number[];
  left: number;
  open: number;
}

/**
 * Max-min fair rates, one per class and for each of its flows: no flow can get more without taking from one
 * that has no more. `capacities[l]` is what link l carries in all; no flow gets more than `cap`. Classes without
 * flows get 0. Infinite capacities limit nothing; a flow that nothing limits gets `Infinity`.
 *
 * Progressive filling: the link with the least to give to each of its open flows fixes them; the rest shares on.
 * Costs the classes, and the square of the links in use, each step of which is one comparison of numbers.
 */
export function maxMinRates(
  capacities: readonly number[],
  classes: readonly FlowClass[],
  cap = Infinity,
): number[] {
  const rates = classes.map(({ flows }) => (flows === 0 ? 0 : cap)); // What nothing narrower limits.
  const isFixed = classes.map(({ flows }) => flows === 0);
  const { byLink, used } = usedLinks(capacities, classes);
  const shares = Float64Array.from(used, ({ left, open }) => left / open);
  for (let step = 0; step < used.length; step++) {
    const place = smallest(shares);
    const rate = shares[place] ?? Infinity;
    const narrowest = used[place];
    if (narrowest === undefined || rate >= cap) break;
    for (const index of narrowest.classes) {
      const fixed = classes[index];
      if (fixed === undefined || isFixed[index] === true) continue;
      isFixed[index] = true;
      rates[index] = rate;
      for (const link of fixed.links) {
        const through = byLink[link];
        if (through === undefined) continue;
        through.left = Math.max(0, through.left - rate * fixed.flows);
        through.open -= fixed.flows;
        shares[through.place] = through.open === 0 ? Infinity : through.left / through.open;
      }
    }
  }
  return rates;
}

/** The links that flows use: by link, and in order. */
function usedLinks(
  capacities: readonly number[],
  classes: readonly FlowClass[],
): { readonly byLink: readonly (UsedLink | undefined)[]; readonly used: readonly UsedLink[] } {
  const isUsed = new Uint8Array(capacities.length);
  for (const { links, flows } of classes) if (flows > 0) for (const link of links) isUsed[link] = 1;
  const byLink: (UsedLink | undefined)[] = [];
  const used: UsedLink[] = [];
  for (const [link, left] of capacities.entries()) {
    const entry = isUsed[link] === 1 ? { place: used.length, classes: [], left, open: 0 } : undefined;
    byLink.push(entry);
    if (entry !== undefined) used.push(entry);
  }
  for (let index = 0; index < classes.length; index++) {
    const { links, flows } = classes[index] ?? { links: [], flows: 0 };
    if (flows === 0) continue;
    for (const link of links) {
      const through = byLink[link];
      if (through === undefined) continue;
      through.classes.push(index);
      through.open += flows;
    }
  }
  return { byLink, used };
}

/** Place of the smallest value, of equals the first; -1 of none below infinity. */
function smallest(values: Float64Array): number {
  let place = -1;
  let least = Infinity;
  for (let index = 0; index < values.length; index++) {
    const value = values[index] ?? Infinity;
    if (value < least) {
      least = value;
      place = index;
    }
  }
  return place;
}
