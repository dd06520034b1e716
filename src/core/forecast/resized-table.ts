import { amdahlOf } from './amdahl.ts';
import { type CompletionTable, remainingMs } from './completion-table.ts';
import type { JobProfile } from './job-profile.ts';
import { stageTotals } from './stage-totals.ts';

/** How many times as many tasks a job has as before; each stage's count for the work that one of them was. */
function growthOf(learned: JobProfile, now: JobProfile): number {
  let [before, after] = [0, 0];
  for (const [index, { workMs }] of stageTotals(learned, 1).entries()) {
    const tasks = learned.stages[index]?.tasks ?? 1;
    before += workMs;
    after += (workMs * (now.stages[index]?.tasks ?? tasks)) / tasks;
  }
  return before <= 0 ? 1 : after / before;
}

/**
 * Reads C(p, a) of a job for one of other numbers of tasks, or of longer ones, in ms. Twice the tasks on twice the slots
 * go in the same waves: it reads the table there, as far as that reaches. What else differs (stages that grow apart, longer
 * tasks, slots beyond the table's) counts as by Amdahl's law: its answer for the job as it is, over that for what was read.
 *
 * @param learned - the profile of which the table was made.
 * @param now - the same stages as large as they are now.
 */
export function tableFor(
  table: CompletionTable,
  learned: JobProfile,
  now: JobProfile,
): (fractions: readonly number[], at: Parameters<typeof remainingMs>[1]) => number {
  if (now.stages.every((stage, index) => stage === learned.stages[index]))
    return (_, at) => remainingMs(table, at);
  const growth = growthOf(learned, now);
  const [fewest, most] = [table.slots[0] ?? 1, table.slots.at(-1) ?? 1];
  // Beyond one for each task more slots change nothing, as beyond the table's.
  const useful = now.stages.reduce((sum, { tasks }) => sum + tasks, 0);
  const lawBefore = amdahlOf(learned, true);
  const lawNow = amdahlOf(now, true);
  return (fractions, at) => {
    const used = Math.min(at.slots, useful);
    const slots = Math.min(most, Math.max(fewest, used / growth));
    const beforeMs = lawBefore(fractions, slots);
    const times = beforeMs <= 0 ? 1 : lawNow(fractions, used) / beforeMs;
    return times * remainingMs(table, { ...at, slots });
  };
}
