/** A number of which only bounds are known: it lies between them, ends included. */
export interface Bounds {
  readonly from: number;
  readonly until: number;
  /** Where between them it is supposed to lie, as far as this one alone tells; and from how far off that is supposed. */
  readonly guess: number;
  readonly farOff: number;
}

/** A stretch in which numbers lie, and the share of them that lies there. */
export interface Mass {
  readonly at: number;
  readonly width: number;
  readonly share: number;
}

/** What is supposed from nearer by than this is no better for it. */
const nearest = 0.01;

/** A bound that fewer numbers than this share are known to keep says more of them than of the others. */
const boundingShare = 1 / 16;

/** Beyond this many rounds, or once no share changes by more, nothing more is to be gained. */
const mostRounds = 100;
const leastChange = 1e-3;

/** Stretches that begin at the last lower bound before an upper one: outside of them there is no mass. */
function stretchesOf(bounds: readonly Bounds[]): { readonly from: number; readonly until: number }[] {
  const froms = Float64Array.from(bounds, ({ from }) => from).sort();
  const untils = Float64Array.from(bounds, ({ until }) => until).sort();
  const stretches: { from: number; until: number }[] = [];
  let next = 0;
  for (const until of untils) {
    const seen = next;
    while ((froms[next] ?? Infinity) <= until) next += 1;
    if (next > seen) stretches.push({ from: froms[next - 1] ?? until, until });
  }
  return stretches;
}

/**
 * Where in a stretch its numbers lie: where those that may lie there are supposed to, as near as the stretch lets them; by
 * those that are supposed to lie there at all, in their median, in which counts by the inverse square what is supposed from far off.
 *
 * Source of the weights: Shepard, "A two-dimensional interpolation function for irregularly-spaced data" (1968).
 */
function placeIn(from: number, until: number, inside: readonly Bounds[]): number {
  if (from === until) return from;
  const within = inside.filter(({ guess }) => guess >= from && guess <= until);
  const told = within.length > 0 ? within : inside;
  const weighed = told
    .map(({ guess, farOff }) => ({ at: guess, share: Math.max(nearest, farOff) ** -2 }))
    .sort((a, b) => a.at - b.at);
  let sum = 0;
  for (const { share } of weighed) sum += share;
  return Math.min(
    until,
    Math.max(from, medianOf(weighed.map(({ at, share }) => ({ at, share: share / sum })))),
  );
}

/** The bounds without those that a few of the numbers draw alone: one that is like no other says nothing of the others. */
function commonBounds(bounds: readonly Bounds[]): readonly Bounds[] {
  const few = Math.ceil(boundingShare * bounds.length) - 1;
  const leastUntil =
    Float64Array.from(bounds, ({ until }) => until)
      .sort()
      .at(few) ?? 0;
  const mostFrom =
    Float64Array.from(bounds, ({ from }) => from)
      .sort()
      .at(-1 - few) ?? 0;
  return bounds.map((each) => ({
    ...each,
    from: Math.min(each.from, mostFrom),
    until: Math.max(each.until, leastUntil),
  }));
}

/**
 * How numbers are distributed of which only bounds are known, some near and some far apart: the distribution under which
 * what is known is likeliest, ascending; but that no bound counts which fewer than a sixteenth of the numbers draw. Costs a few rounds of the square of how many there are.
 *
 * Source: Turnbull, "The empirical distribution function with arbitrarily grouped, censored and truncated data" (1976).
 */
export function turnbull(known: readonly Bounds[]): readonly Mass[] {
  const bounds = commonBounds(known);
  const stretches = stretchesOf(bounds);
  const inside = bounds.map(({ from, until }) =>
    stretches.flatMap((stretch, place) => (from <= stretch.from && stretch.until <= until ? [place] : [])),
  );
  let shares = stretches.map(() => 1 / stretches.length);
  for (let round = 0, change = 1; round < mostRounds && change > leastChange; round++) {
    const next = shares.map(() => 0);
    for (const places of inside) {
      let sum = 0;
      for (const place of places) sum += shares[place] ?? 0;
      for (const place of places)
        next[place] = (next[place] ?? 0) + (shares[place] ?? 0) / sum / bounds.length;
    }
    change = Math.max(...next.map((share, place) => Math.abs(share - (shares[place] ?? 0))));
    shares = next;
  }
  return stretches.map(({ from, until }, place) => {
    const own = bounds.filter((_, at) => inside[at]?.includes(place));
    return { at: placeIn(from, until, own), width: until - from, share: shares[place] ?? 0 };
  });
}

/** The number that as much lies below as above, of ascending ones; between two that halve it, their middle. 0 of none. */
export function medianOf(masses: readonly Pick<Mass, 'at' | 'share'>[]): number {
  let below = 0;
  for (const [place, { at, share }] of masses.entries()) {
    below += share;
    if (below > 0.5 + 1e-9) return at;
    if (below >= 0.5 - 1e-9) return (at + (masses[place + 1]?.at ?? at)) / 2;
  }
  return masses.at(-1)?.at ?? 0;
}
