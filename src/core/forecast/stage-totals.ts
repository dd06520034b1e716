import type { JobProfile, StageProfile } from './job-profile.ts';
import { meanAndLongest } from './run-times.ts';

/** Totals of a stage in which Jockey's formulas are written, in ms. */
export interface StageTotals {
  /** T_s: run time of all its tasks. */
  readonly workMs: number;
  /** Q_s: queueing time of all its tasks. */
  readonly queueMs: number;
  /** l_s: its longest task. */
  readonly longestMs: number;
  /** L_s: the longest path from its end to the end of the job, by longest tasks; itself excluded. */
  readonly afterMs: number;
}

/** How long a task waits in the mean, those that ride behind another not at all. */
export const meanWaitMs = ({ queueMs, queuedShare = 1 }: StageProfile): number =>
  (queuedShare * queueMs.reduce((sum, each) => sum + each, 0)) / Math.max(1, queueMs.length);

/** Totals of each stage, in its order, on `slots` slots (Jockey, §4.1 and §4.2). */
export function stageTotals(profile: JobProfile, slots: number): readonly StageTotals[] {
  const own = profile.stages.map((stage) => {
    const { runs, tasks } = stage;
    const { meanMs, longestMs } = meanAndLongest(runs, slots);
    return { workMs: meanMs * tasks, queueMs: meanWaitMs(stage) * tasks, longestMs };
  });
  const after = profile.stages.map(() => 0);
  for (const [index, { inputs }] of [...profile.stages.entries()].reverse()) {
    const behind = (own[index]?.longestMs ?? 0) + (after[index] ?? 0);
    for (const { stage } of inputs) after[stage] = Math.max(after[stage] ?? 0, behind);
  }
  return own.map((totals, index) => ({ ...totals, afterMs: after[index] ?? 0 }));
}
