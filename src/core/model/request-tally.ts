import type { RequestName, RequestTally } from '../../contracts/requests.ts';

/** The sums of two tallies, by name. Needs no schema: the process of user code holds it, too. */
export function addTallies(a: RequestTally, b: RequestTally): RequestTally {
  const sum: Partial<Record<RequestName, number>> = { ...a };
  for (const [name, count] of Object.entries(b) as [RequestName, number][])
    if (count > 0) sum[name] = (sum[name] ?? 0) + count;
  return sum;
}
