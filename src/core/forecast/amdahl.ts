import type { JobProfile } from './job-profile.ts';
import { type StageTotals, stageTotals } from './stage-totals.ts';

/**
 * What is left of a job by Amdahl's law, S_t + P_t / a, in ms: the longest chain of what has not ended, and its work
 * shared by the slots (Jockey, §4.1). 0 where all stages have ended.
 *
 * @param fractions - finished tasks of each stage, in [0, 1].
 * @param slots - a, above 0.
 */
export function amdahlRemainingMs(
  totals: readonly StageTotals[],
  fractions: readonly number[],
  slots: number,
): number {
  const { serialMs, parallelMs } = amdahlParts(totals, fractions);
  return serialMs + parallelMs / slots;
}

/** S_t = max over unfinished stages of (1 − f_s) l_s + L_s, and P_t = Σ (1 − f_s) T_s, in ms. */
export function amdahlParts(
  totals: readonly StageTotals[],
  fractions: readonly number[],
): { readonly serialMs: number; readonly parallelMs: number } {
  let serialMs = 0;
  let parallelMs = 0;
  for (const [index, { workMs, longestMs, afterMs }] of totals.entries()) {
    const left = 1 - (fractions[index] ?? 0);
    if (left <= 0) continue;
    serialMs = Math.max(serialMs, left * longestMs + afterMs);
    parallelMs += left * workMs;
  }
  return { serialMs, parallelMs };
}

/**
 * What is left of a job of a profile, in ms, by what share of each stage's tasks has finished and on how many slots.
 *
 * @param countsStarts - what tasks take to start is work too, as it holds slots; the paper's T_s is run time alone.
 */
export function amdahlOf(
  profile: JobProfile,
  countsStarts: boolean,
): (fractions: readonly number[], slots: number) => number {
  const known = new Map<number, readonly StageTotals[]>();
  const totalsAt = (slots: number): readonly StageTotals[] => {
    const totals =
      known.get(slots) ??
      stageTotals(profile, slots).map((stage) => ({
        ...stage,
        workMs: stage.workMs + (countsStarts ? stage.queueMs : 0),
      }));
    known.set(slots, totals);
    return totals;
  };
  return (fractions, slots) => amdahlRemainingMs(totalsAt(slots), fractions, slots);
}
