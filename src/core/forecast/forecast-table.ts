import type { StoredTable } from '../../contracts/forecast.ts';
import type { Rng } from '../../lib/rng.ts';
import { completionTable } from './completion-table.ts';
import type { JobProfile } from './job-profile.ts';
import { type ProgressIndicator, progressIndicator } from './progress-indicators.ts';
import { stageTotals } from './stage-totals.ts';

/** Allocations of a table, and simulated runs of each. */
const mostAllocations = 20;
const mostRuns = 50;
const leastRuns = 5;
/** Simulated task ends of a whole table: some ten seconds of one core. Larger jobs vary less, and need fewer runs. */
const mostEvents = 20_000_000;

/**
 * Numbers of slots from 1 to `most` on which a job is simulated, ascending: all where they are few, else further apart the
 * more they are, as one more slot then matters less; `count` of them at the most, which is at least 2.
 */
export function allocationGrid(most: number, count = mostAllocations): readonly number[] {
  const last = Math.max(1, Math.floor(most));
  if (last <= count) return Array.from({ length: last }, (_, index) => index + 1);
  const slots: number[] = [];
  for (let at = 0; at < count; at++) {
    const left = count - 1 - at;
    const before = slots.at(-1) ?? 0;
    // By the factor that leads from here to the last in as many steps as are left.
    const next = before === 0 ? 1 : Math.round(before * (last / before) ** (1 / (left + 1)));
    slots.push(Math.min(last - left, Math.max(before + 1, next)));
  }
  return slots;
}

/** The indicator of progress that a table was made with, by the profile that it was made from or a later one. */
export const indicatorOf = (
  profile: JobProfile,
  table: Pick<StoredTable, 'indicator' | 'basisSlots' | 'spans' | 'unlimitedSpans'>,
): ProgressIndicator =>
  progressIndicator(table.indicator, {
    totals: stageTotals(profile, table.basisSlots),
    tasks: profile.stages.map(({ tasks }) => tasks),
    ...(table.spans === undefined ? {} : { spans: table.spans }),
    ...(table.unlimitedSpans === undefined ? {} : { unlimitedSpans: table.unlimitedSpans }),
  });

/**
 * C(p, a) of a recurring job, as it is kept: for up to 20 numbers of slots, by 5 to 50 simulated runs of each. Takes
 * some ten seconds of one core at most, for up to 200,000 tasks.
 *
 * @param learned - what was learned of the job, and from how many runs.
 * @param totalSlots - of all jobs together.
 */
export function forecastTable(
  { profile, runs }: { readonly profile: JobProfile; readonly runs: number },
  { totalSlots, rng }: { readonly totalSlots: number; readonly rng: Rng },
): StoredTable {
  const tasks = profile.stages.reduce((sum, stage) => sum + stage.tasks, 0);
  const slots = allocationGrid(Math.min(totalSlots, tasks));
  const simulated = Math.floor(mostEvents / Math.max(1, tasks * slots.length));
  const ran = profile.stages[0]?.runs ?? [];
  const basis = { indicator: 'totalworkWithQ', basisSlots: ran[ran.length >> 1]?.slots ?? 1 } as const;
  const table = completionTable(profile, {
    indicator: indicatorOf(profile, basis),
    slots,
    runs: Math.min(mostRuns, Math.max(leastRuns, simulated)),
    rng,
  });
  return { ...basis, ofRuns: runs, ...table, slots: [...table.slots] };
}
