/** Flows that use the same links and get the same rate. */
export interface FlowClass {
  /** Places in the list of capacities; empty: limited by `cap` alone. */
  readonly links: readonly number[];
  readonly flows: number;
}

/**
 * Max-min fair rates, one per class and for each of its flows: no flow can get more without taking from one
 * that has no more. `capacities[l]` is what link l carries in all; no flow gets more than `cap`. Classes without
 * flows get 0. Infinite capacities limit nothing; a flow that nothing limits gets `Infinity`.
 *
 * Progressive filling: the link with the least to give to each of its open flows fixes them; the rest shares on.
 */
export function maxMinRates(
  capacities: readonly number[],
  classes: readonly FlowClass[],
  cap = Infinity,
): number[] {
  const left = [...capacities];
  const open = capacities.map(() => 0);
  const rates = classes.map(() => 0);
  const pending = new Set<number>();
  for (const [index, { links, flows }] of classes.entries()) {
    if (flows === 0) continue;
    pending.add(index);
    for (const link of links) open[link] = (open[link] ?? 0) + flows;
  }
  while (pending.size > 0) {
    const { link, share } = narrowest(left, open);
    const rate = Math.min(share, cap);
    for (const index of pending) {
      const flow = classes[index];
      if (flow === undefined || (share < cap && !flow.links.includes(link))) continue;
      rates[index] = rate;
      pending.delete(index);
      for (const used of flow.links) {
        left[used] = Math.max(0, (left[used] ?? 0) - rate * flow.flows);
        open[used] = (open[used] ?? 0) - flow.flows;
      }
    }
    if (share >= cap) break; // Everybody left got the cap.
  }
  return rates;
}

/** The link with the smallest equal share for its open flows; an infinite share where no link limits. */
function narrowest(left: readonly number[], open: readonly number[]): { link: number; share: number } {
  let link = -1;
  let share = Infinity;
  for (const [index, flows] of open.entries()) {
    if (flows === 0) continue;
    const offered = (left[index] ?? 0) / flows;
    if (offered < share) {
      share = offered;
      link = index;
    }
  }
  return { link, share };
}
