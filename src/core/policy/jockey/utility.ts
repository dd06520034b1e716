/** What the end of a job is worth, by its time from the job's begin: straight between points, ascending by time. */
export interface Utility {
  /** At least two, [ms, worth]; before the first as there, behind the last as straight on. */
  readonly points: readonly (readonly [number, number])[];
}

/** Utility of ending at `endMs`. */
export function utilityAt({ points }: Utility, endMs: number): number {
  const behind = points.findIndex(([ms]) => ms >= endMs);
  const place = behind < 0 ? points.length - 1 : behind;
  const [to, atTo] = points[place] ?? [0, 0];
  if (place === 0) return atTo;
  const [from, atFrom] = points[place - 1] ?? [to, atTo];
  return to === from ? atTo : atFrom + ((atTo - atFrom) * (endMs - from)) / (to - from);
}

/**
 * The paper's for a deadline: worth 1 up to it, −1 so much later, and −1,000 a hundred times as much later, and so on.
 *
 * @param lateMs - ten minutes in the paper.
 *
 * Source: Jockey (EuroSys 2012), §5.1.
 */
export const softDeadline = (deadlineMs: number, lateMs: number): Utility => ({
  points: [
    [0, 1],
    [deadlineMs, 1],
    [deadlineMs + lateMs, -1],
    [deadlineMs + 100 * lateMs, -1_000],
  ],
});

/**
 * Of a result that nobody wants once it is late: what it is worth falls at once, by far more than that of a job which
 * may be a little late, and hardly any more from then on, so that the slots of a lost job do more good elsewhere.
 */
export const hardDeadline = (deadlineMs: number, lateMs: number): Utility => ({
  points: [
    [0, 1],
    [deadlineMs, 1],
    [deadlineMs + lateMs / 100, -100],
    [deadlineMs + 100 * lateMs, -101],
  ],
});

/** The same, wanted by so much earlier: the dead zone (§4.3). */
export const shiftedLeft = ({ points }: Utility, byMs: number): Utility => ({
  points: points.map(([ms, worth]) => [ms - byMs, worth]),
});
