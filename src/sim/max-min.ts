/** Flows that use the same links and get the same rate. */
export interface FlowClass {
  /** Places in the list of capacities, each once; empty: limited by `cap` alone. */
  readonly links: readonly number[];
  readonly flows: number;
}

/** A link in use: what it has left to give, to how many flows, and the classes of those by place. */
interface UsedLink {
  readonly link: number;
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
 * Costs the square of the links in use, and the classes; links that no flow uses cost nothing.
 */
export function maxMinRates(
  capacities: readonly number[],
  classes: readonly FlowClass[],
  cap = Infinity,
): number[] {
  const rates = classes.map(() => 0);
  const used = usedLinks(capacities, classes);
  const pending = new Set<number>();
  for (const [index, { flows }] of classes.entries()) if (flows > 0) pending.add(index);
  let narrowest = narrowestOf(used.values());
  while (narrowest !== undefined && narrowest.left / narrowest.open < cap) {
    const rate = narrowest.left / narrowest.open;
    for (const index of narrowest.classes) {
      if (!pending.delete(index)) continue;
      rates[index] = rate;
      const { links, flows } = classes[index] ?? { links: [], flows: 0 };
      for (const link of links) {
        const through = used.get(link);
        if (through === undefined) continue;
        through.left = Math.max(0, through.left - rate * flows);
        through.open -= flows;
      }
    }
    used.delete(narrowest.link);
    narrowest = narrowestOf(used.values());
  }
  for (const index of pending) rates[index] = cap; // Nothing narrower limits them.
  return rates;
}

/** The links that flows use, by place. */
function usedLinks(capacities: readonly number[], classes: readonly FlowClass[]): Map<number, UsedLink> {
  const used = new Map<number, UsedLink>();
  for (const [index, { links, flows }] of classes.entries()) {
    if (flows === 0) continue;
    for (const link of links) {
      const there = used.get(link);
      if (there === undefined)
        used.set(link, { link, classes: [index], left: capacities[link] ?? 0, open: flows });
      else {
        there.classes.push(index);
        there.open += flows;
      }
    }
  }
  return new Map([...used].sort(([a], [b]) => a - b));
}

/** The link with the smallest equal share for its open flows, of equals the first; undefined where none has any. */
function narrowestOf(links: Iterable<UsedLink>): UsedLink | undefined {
  let narrowest: UsedLink | undefined;
  let share = Infinity;
  for (const each of links) {
    if (each.open === 0) continue;
    const offered = each.left / each.open;
    if (narrowest !== undefined && offered >= share) continue;
    narrowest = each;
    share = offered;
  }
  return narrowest;
}
