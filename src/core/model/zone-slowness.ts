/** Of logarithms: how many, their sum, and the sum of their squares. */
export interface Sums {
  count: number;
  sum: number;
  squares: number;
}

/** How slow tasks of a stage were in one zone, for what they read: the natural logarithm of time over `costOf` their input. */
export interface ZoneSlowness {
  /** Of the attempts that won. */
  readonly won: Sums;
  /** Of those that were well on their way when another attempt of their task won, as far as they foretold it. */
  readonly outrun: Sums;
}

/** By zone; what ran nobody knows where stands under `unknownZone`. */
export type ZonesSlowness = Map<string, ZoneSlowness>;

export const unknownZone = '';

const noSums = (): Sums => ({ count: 0, sum: 0, squares: 0 });

/** Adds the logarithm of a slowness above 0. */
export function addSlowness(sums: Sums, slowness: number): void {
  const logarithm = Math.log(slowness);
  sums.count += 1;
  sums.sum += logarithm;
  sums.squares += logarithm * logarithm;
}

/** Adds how slow a task was in a zone; one that took no time tells nothing. Costs the same however many there are. */
export function recordSlowness(
  zones: ZonesSlowness,
  zone: string | undefined,
  { slowness, hasWon }: { readonly slowness: number; readonly hasWon: boolean },
): void {
  if (slowness <= 0) return;
  const name = zone ?? unknownZone;
  const known = zones.get(name) ?? { won: noSums(), outrun: noSums() };
  zones.set(name, known);
  addSlowness(hasWon ? known.won : known.outrun, slowness);
}
