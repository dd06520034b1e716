import type { ToldAllocation } from '../contracts/api.ts';
import type { AttemptRecord, JobRecord } from '../contracts/records.ts';
import { oracleSlots } from '../core/policy/jockey/oracle.ts';
import type { Plot, PlotPoint } from '../experiments/experiment.ts';

/** Looks at the attempts of a job over its time: as many as a picture shows. */
const looks = 160;

/** A level that holds from `at` on. */
interface Step {
  readonly at: number;
  readonly level: number;
}

type Run = Pick<AttemptRecord, 'claimedAt' | 'endedAt'>;

/**
 * A job's slots over its time, in seconds since its submission: attempts that ran, the slots that it asked to be its own
 * for its deadline, and the oracle's, ⌈work / deadline⌉, which knows the work before (Jockey, §5.1). What a job without a
 * deadline asked for is left out, and so is its oracle.
 *
 * @param now - until when a job is drawn that goes on.
 */
export function timelinePlot(
  job: Pick<JobRecord, 'jobId' | 'createdAt' | 'endedAt' | 'deadlineAt'>,
  attempts: readonly Run[],
  { allocations, now }: { readonly allocations: readonly ToldAllocation[]; readonly now: number },
): Plot {
  const from = job.createdAt;
  const to = Math.max(from + 1, job.endedAt ?? now);
  const seconds = (at: number): number => (Math.min(to, Math.max(from, at)) - from) / 1_000;
  const asked = allocations.map(({ at, slots }): Step => ({ at, level: slots }));
  const steps = (levels: readonly Step[]): PlotPoint[] =>
    levels.flatMap(({ at, level }, place) => [
      ...(place === 0 ? [] : [{ x: seconds(at), y: levels[place - 1]?.level ?? 0 }]),
      { x: seconds(at), y: level },
    ]);
  const oracle = oracleOf(job, attempts, to);
  return {
    name: 'timeline',
    kind: 'lines',
    title: `Slots of ${job.jobId}`,
    xLabel: 'seconds since submission',
    yLabel: 'slots',
    series: [
      { name: 'attempts that ran', points: running(attempts, { from, to, seconds }) },
      ...(asked.length === 0
        ? []
        : [{ name: 'asked for', points: steps([...asked, { at: to, level: asked.at(-1)?.level ?? 0 }]) }]),
      ...(oracle === undefined
        ? []
        : [
            {
              name: 'oracle',
              points: steps([from, Math.min(to, job.deadlineAt ?? to)].map((at) => ({ at, level: oracle }))),
            },
          ]),
    ],
  };
}

/** The oracle's slots for the work of all attempts; undefined without a deadline, or without work. */
export function oracleOf(
  { createdAt, deadlineAt }: Pick<JobRecord, 'createdAt' | 'deadlineAt'>,
  attempts: readonly Run[],
  to: number,
): number | undefined {
  if (deadlineAt === undefined || deadlineAt <= createdAt) return undefined;
  const workMs = attempts.reduce(
    (sum, { claimedAt, endedAt }) =>
      sum + (claimedAt === undefined ? 0 : Math.max(0, (endedAt ?? to) - claimedAt)),
    0,
  );
  return workMs === 0 ? undefined : oracleSlots(workMs, deadlineAt - createdAt);
}

/** How many attempts ran at evenly spaced times. */
function running(
  attempts: readonly Run[],
  { from, to, seconds }: { from: number; to: number; seconds: (at: number) => number },
): PlotPoint[] {
  const sorted = (pick: (run: Run) => number | undefined): number[] =>
    attempts.flatMap((run) => pick(run) ?? []).toSorted((a, b) => a - b);
  const begins = sorted(({ claimedAt }) => claimedAt);
  const ends = sorted(({ claimedAt, endedAt }) => (claimedAt === undefined ? undefined : endedAt));
  let [begun, ended] = [0, 0];
  return Array.from({ length: looks + 1 }, (_, look) => {
    const at = from + ((to - from) * look) / looks;
    while (begun < begins.length && (begins[begun] ?? 0) <= at) begun += 1;
    while (ended < ends.length && (ends[ended] ?? 0) <= at) ended += 1;
    return { x: seconds(at), y: Math.max(0, begun - ended) };
  });
}
