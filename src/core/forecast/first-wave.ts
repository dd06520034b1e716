import type { EpochMs } from '../../contracts/units.ts';
import { ascending } from '../../lib/quantiles.ts';
import { ranMs } from '../estimate/progress-rate.ts';
import type { JobState, StageView } from '../model/job-view.ts';
import type { JobProfile, StageProfile } from './job-profile.ts';

/** A stage tells how long its tasks take once so many have ended, or all of them. */
const tellingTasks = 4;

/** A profile that a run tells of itself. */
export interface FirstWave {
  readonly profile: JobProfile;
  /** Tasks that it rests on. */
  readonly tasks: number;
}

/** Tasks that have told how long they took. */
export const tasksTold = ({ stages }: Pick<JobState, 'stages'>): number =>
  stages.reduce((sum, { statistics }) => sum + statistics.samples.length, 0);

const meanOf = (sample: readonly number[]): number =>
  sample.reduce((sum, each) => sum + each, 0) / Math.max(1, sample.length);

/**
 * Times of a stage's tasks, in ms, none where too few have ended. Those that end first are short: one that has run for
 * longer than they took in the mean counts by its age.
 */
function timesOf(stage: StageView, live: JobState['live'], now: EpochMs): readonly number[] {
  const ended = stage.statistics.samples.map(({ ms }) => ms);
  if (ended.length === 0 || ended.length < Math.min(tellingTasks, stage.tasks.length)) return [];
  const meanMs = meanOf(ended);
  const ages = [...live].flatMap((attempt) => {
    const isOfStage = attempt.stage === stage.index && !attempt.cancelOrdered;
    const ageMs = isOfStage ? ranMs(attempt, now) : 0;
    return ageMs > meanMs ? [ageMs] : [];
  });
  return ascending([...ended, ...ages]);
}

/**
 * What a job's own first tasks tell of it. Stages that have told nothing yet are taken for what jobs like it tell of
 * them, as many times as long as the others were beside that, and else for what the tasks have taken that have ended,
 * whatever their stage. Undefined while no stage has told anything.
 *
 * @param others - what jobs like it tell, with the same stages; undefined: nothing.
 */
export function firstWave(state: JobState, now: EpochMs, others?: JobProfile): FirstWave | undefined {
  const told = state.stages.map((stage) => timesOf(stage, state.live, now));
  const all = ascending(told.flat());
  if (all.length === 0) return undefined;
  const foretold = others?.stages.map(({ runs }) => runs[0]?.times.later ?? []);
  const ratio = foretold === undefined ? 1 : ratioOf(told, foretold);
  const stages = state.stages.map((stage, index): StageProfile => {
    const own = told[index] ?? [];
    const like = (foretold?.[index] ?? []).map((ms) => ms * ratio);
    return {
      name: stage.shape.name,
      tasks: Math.max(1, stage.tasks.length),
      inputs: stage.shape.upstream.map((upstream) => ({ stage: upstream, isBarrier: true })),
      runs: [
        {
          slots: 1,
          times: { cold: [], first: [], later: own.length > 0 ? own : like.length > 0 ? like : all },
        },
      ],
      queueMs: [],
      failureShare: 0,
    };
  });
  return { profile: { stages }, tasks: tasksTold(state) };
}

/** How many times as long as foretold the tasks take that have told. */
function ratioOf(told: readonly (readonly number[])[], foretold: readonly (readonly number[])[]): number {
  let [took, expected] = [0, 0];
  for (const [index, own] of told.entries()) {
    const like = foretold[index] ?? [];
    if (own.length === 0 || like.length === 0) continue;
    took += own.length * meanOf(own);
    expected += own.length * meanOf(like);
  }
  return expected === 0 ? 1 : took / expected;
}
