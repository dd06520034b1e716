/** O(T, d) = ⌈T / d⌉: the fewest slots on which so much work ends in time, whatever its structure (Jockey, §5.1). */
export const oracleSlots = (workMs: number, deadlineMs: number): number =>
  Math.max(1, Math.ceil(workMs / deadlineMs));

/** Slots that a job asked for, from `atMs` until the next entry. */
export interface AskedSlots {
  readonly atMs: number;
  readonly slots: number;
}

/**
 * The share of what a job asked for that was more than the oracle's, ∫ max(0, A − O) / ∫ A, from its first entry to
 * `endMs`; 0 where it asked for nothing.
 */
export function shareAboveOracle(asked: readonly AskedSlots[], oracle: number, endMs: number): number {
  let above = 0;
  let all = 0;
  for (const [place, { atMs, slots }] of asked.entries()) {
    const lastsMs = Math.max(0, Math.min(endMs, asked[place + 1]?.atMs ?? endMs) - atMs);
    above += lastsMs * Math.max(0, slots - oracle);
    all += lastsMs * slots;
  }
  return all === 0 ? 0 : above / all;
}
