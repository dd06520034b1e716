/**
 * The score of a task whose phases count alike, such as Hadoop's copy, sort and reduce: finished phases, and the
 * fraction of the current one, over the number of phases.
 *
 * Source: LATE §2 (a reduce half-way through copy scores 1/6, half-way through reduce 5/6).
 */
export const phasedScore = (finished: number, fraction: number, phases = 3): number =>
  (finished + fraction) / phases;
