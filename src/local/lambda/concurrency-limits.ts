/** How many invocations may run at once. */
export interface ConcurrencyLimits {
  /** By the name of each function that has a reservation; at least 1. */
  readonly reserved: ReadonlyMap<string, number>;
  /** Of all other functions together; at least 1. */
  readonly unreserved: number;
}

/** AWS keeps 100 of its 1,000 free of reservations. */
const UNRESERVED_SHARE = 0.1;

/**
 * Divides `maxConcurrency` as reservations ask for.
 *
 * Reservations are made for an account's 1,000, and a laptop has room for a
 * few. Where they do not fit they shrink in proportion, so that functions with
 * large ones (workers) cannot lock out the others (schedulers).
 */
export function divideConcurrency(
  functions: readonly { readonly name: string; readonly reservedConcurrency?: number }[],
  maxConcurrency: number,
): ConcurrencyLimits {
  const wanted = functions.flatMap(({ name, reservedConcurrency }) =>
    reservedConcurrency === undefined ? [] : [{ name, slots: reservedConcurrency }],
  );
  const sum = wanted.reduce((total, { slots }) => total + slots, 0);
  const reservable = maxConcurrency - Math.max(1, Math.floor(maxConcurrency * UNRESERVED_SHARE));
  const scale = sum > reservable ? reservable / sum : 1;
  const reserved = new Map(wanted.map(({ name, slots }) => [name, Math.max(1, Math.floor(slots * scale))]));
  const given = [...reserved.values()].reduce((total, slots) => total + slots, 0);
  return { reserved, unreserved: Math.max(1, maxConcurrency - given) };
}
