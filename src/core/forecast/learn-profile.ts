import { fnv1a } from '../../contracts/fnv1a.ts';
import { forecastFormat, type StoredForecast } from '../../contracts/forecast.ts';
import type { JobId } from '../../contracts/ids.ts';
import type { Worker } from '../../contracts/job-spec.ts';
import { limits } from '../../contracts/limits.ts';
import type { Plan } from '../../contracts/plan.ts';
import type { AttemptRecord } from '../../contracts/records.ts';
import { ascending, evenly } from '../../lib/quantiles.ts';
import type { ProfiledRun, SlotPast } from './job-profile.ts';
import { meanAndLongest } from './run-times.ts';
import { mostAtOnce, timesOfStages } from './task-times.ts';

/** A finished run of a job. */
export interface FinishedRun {
  readonly jobId: JobId;
  readonly plan: Plan;
  readonly attempts: readonly AttemptRecord[];
}

type Profile = StoredForecast['profile'];
type Stage = Profile['stages'][number];
type Run = Stage['runs'][number];

/** Input that is larger or smaller by more than this is another job's, of which the old profile tells little. */
const inputFactor = 2;
/** Share of the samples that the newest run has at least, so that a profile follows a job that changes slowly. */
const newestShare = 0.25;

const bytesOf = (plan: Plan): number =>
  plan.stages.reduce((sum, { sourceBytes }) => sum + sourceBytes.reduce((all, each) => all + each, 0), 0);

/** What a fingerprint is taken of: known of a job before it is planned, too. */
export interface PlannedMatter {
  readonly stages: readonly {
    readonly description: Pick<Plan['stages'][number]['description'], 'name' | 'operator'> & {
      readonly worker: Worker;
      readonly inputs: readonly (
        | { readonly kind: 'source'; readonly format: string }
        | { readonly kind: 'stage'; readonly stage: string; readonly pattern: string }
      )[];
    };
  }[];
}

/**
 * What of a plan makes a profile useless where it changes: the stages, what they do and read, and on what they run. Not how
 * many tasks there are, which follows the input, nor the code or the options of a stage: who mends a line of a job does
 * not start anew, and a job that has become slower is learned run by run.
 */
export function fingerprintOf(plan: PlannedMatter): string {
  const text = JSON.stringify(
    plan.stages.map(({ description: { name, operator, worker, inputs } }) => [
      name,
      operator ?? 'code',
      worker.kind,
      worker.size,
      inputs.map((input) => (input.kind === 'stage' ? [input.stage, input.pattern] : [input.format])),
    ]),
  );
  const hex = (part: string): string => fnv1a(part).toString(16).padStart(8, '0');
  return `${hex(text)}${hex(`${text}/`)}`;
}

/** The profile of one run; undefined where a stage has no task that told how long it took. */
function profileOfRun({ plan, attempts }: FinishedRun): Profile | undefined {
  const told = timesOfStages(attempts);
  const slots = mostAtOnce(attempts);
  const places = new Map(plan.stages.map(({ description }, index) => [description.name, index]));
  const stages: Stage[] = [];
  for (const { description } of plan.stages) {
    const { name, tasks, inputs } = description;
    const of = told.get(name);
    if (of === undefined) return undefined;
    const planned = Math.max(1, tasks);
    // Where partitions were split the times are those of parts: so is their number, or their product is of neither.
    const ran = Math.max(planned, of.times.cold.length + of.times.first.length + of.times.later.length);
    stages.push({
      name,
      tasks: ran,
      ...(ran === planned ? {} : { plannedTasks: planned }),
      // A stage opens when all that it reads have ended, whatever its tasks read of them.
      inputs: inputs.flatMap((input) =>
        input.kind === 'stage' ? [{ stage: places.get(input.stage) ?? 0, isBarrier: true }] : [],
      ),
      runs: [{ slots, times: thinned(of.times, limits.profileSamples) }],
      queueMs: [...evenly(of.queueMs, limits.profileSamples)],
      ...queuedOf(of.queuedShare),
      failureShare: of.failureShare,
      ...(of.taskBytes === undefined ? {} : { taskBytes: of.taskBytes }),
    });
  }
  return { stages };
}

/** The share of attempts that waited for a launch, where not all did. */
const queuedOf = (queuedShare: number): Pick<Stage, 'queuedShare'> =>
  queuedShare >= 1 ? {} : { queuedShare };

/** A share as it was, and as it is in the newest run, which counts for so much. */
const blended = (before: number, newest: number, share: number): number => before + (newest - before) * share;

const thinned = (times: ProfiledRun['times'], limit: number): Run['times'] => ({
  cold: [...evenly(times.cold, limit)],
  first: [...evenly(times.first, limit)],
  later: [...evenly(times.later, limit)],
});

/** Two ascending samples in one of at most `limit`, of which the newer has a share of `share` where both are long. */
function pooled(
  older: readonly number[],
  newer: readonly number[],
  { limit, share }: { limit: number; share: number },
): number[] {
  if (older.length + newer.length <= limit) return ascending([...older, ...newer]);
  const kept = Math.min(newer.length, Math.max(Math.ceil(limit * share), limit - older.length));
  return ascending([...evenly(older, limit - kept), ...evenly(newer, kept)]);
}

const pooledTimes = (older: Run['times'], newer: Run['times'], share: number): Run['times'] => {
  const of = (past: SlotPast): number[] =>
    pooled(older[past], newer[past], { limit: limits.profileSamples, share });
  return { cold: of('cold'), first: of('first'), later: of('later') };
};

/** Runs with one more, those on as many slots as one; of too many the two become one whose slots differ least. */
function withRun(runs: readonly Run[], run: Run, share: number): Run[] {
  const same = runs.find(({ slots }) => slots === run.slots);
  const all =
    same === undefined
      ? [...runs, run]
      : runs.map((each) =>
          each === same ? { slots: run.slots, times: pooledTimes(each.times, run.times, share) } : each,
        );
  const ordered = all.toSorted((a, b) => a.slots - b.slots);
  if (ordered.length <= limits.profileRuns) return ordered;
  const ratio = (at: number): number => (ordered[at + 1]?.slots ?? Infinity) / (ordered[at]?.slots ?? 1);
  let nearest = 0;
  for (let at = 1; at < ordered.length - 1; at++) if (ratio(at) < ratio(nearest)) nearest = at;
  const [one, other] = ordered.slice(nearest, nearest + 2);
  if (one === undefined || other === undefined) return ordered;
  const both = { slots: Math.sqrt(one.slots * other.slots), times: pooledTimes(one.times, other.times, 0.5) };
  return [...ordered.slice(0, nearest), both, ...ordered.slice(nearest + 2)];
}

/** Work of all tasks of a profile's run, in ms of slots, by its mean times. */
const workOf = ({ stages }: Profile): number =>
  stages.reduce((sum, { runs, tasks }) => sum + tasks * meanAndLongest(runs, runs[0]?.slots ?? 1).meanMs, 0);

/** How much work each run was beside the profile, ascending: those known, and the newest. */
function workFactors(before: Profile, merged: Profile, newest: Profile): number[] {
  const whole = Math.max(1, workOf(merged));
  const known = (before.workFactors ?? [1]).map((factor) => factor * workOf(before));
  const works = [...evenly(known, limits.profileRuns - 1), workOf(newest)];
  return ascending(works.map((work) => Math.max(Number.EPSILON, work / whole)));
}

function merged(before: Profile, newest: Profile, runs: number): Profile {
  const share = Math.max(newestShare, 1 / (runs + 1));
  const stages = newest.stages.map((stage, index): Stage => {
    const old = before.stages[index];
    const [run] = stage.runs;
    if (old === undefined || run === undefined) return stage;
    const { queuedShare = 1, ...newly } = stage;
    return {
      ...newly,
      runs: withRun(old.runs, run, share),
      queueMs: pooled(old.queueMs, stage.queueMs, { limit: limits.profileSamples, share }),
      ...queuedOf(blended(old.queuedShare ?? 1, queuedShare, share)),
      failureShare: blended(old.failureShare, stage.failureShare, share),
    };
  });
  return { stages, workFactors: workFactors(before, { stages }, newest) };
}

/** Whether a profile tells of a run: its plan is the same, and its input not another one's. */
export function tellsOf(
  before: Pick<StoredForecast, 'fingerprint' | 'inputBytes'>,
  run: Pick<StoredForecast, 'fingerprint' | 'inputBytes'>,
): boolean {
  const [less, more] = ascending([before.inputBytes, run.inputBytes]);
  return before.fingerprint === run.fingerprint && (more ?? 0) <= (less ?? 0) * inputFactor;
}

/** What a plan is compared with a profile by. */
export const matterOf = (plan: Plan): Pick<StoredForecast, 'fingerprint' | 'inputBytes'> => ({
  fingerprint: fingerprintOf(plan),
  inputBytes: bytesOf(plan),
});

/**
 * What is known of a recurring job once a run of it has finished: the run merged into what was known before, or it alone
 * where its plan is another, or its input more than twice as large or small. A table of before stays until a new one is
 * computed. Undefined where there is nothing to learn: the run counts already, or a stage told nothing.
 */
export function learnProfile(
  run: FinishedRun,
  before: StoredForecast | undefined,
): StoredForecast | undefined {
  const { plan, jobId } = run;
  if (before?.jobs.includes(jobId) === true || plan.stages.length > limits.forecastStages) return undefined;
  const newest = profileOfRun(run);
  if (newest === undefined || newest.stages.length === 0) return undefined;
  const own = { version: forecastFormat, name: plan.name, ...matterOf(plan) } as const;
  if (before === undefined || !tellsOf(before, own))
    return { ...own, runs: 1, jobs: [jobId], profile: newest };
  return {
    ...own,
    runs: before.runs + 1,
    jobs: [...before.jobs, jobId].slice(-limits.profileJobs),
    profile: merged(before.profile, newest, before.runs),
    ...(before.table === undefined ? {} : { table: before.table }),
  };
}
