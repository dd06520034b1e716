import type { StoredForecast } from '../contracts/forecast.ts';
import type { Plan } from '../contracts/plan.ts';
import type { EpochMs } from '../contracts/units.ts';
import { firstWave, tasksTold } from '../core/forecast/first-wave.ts';
import {
  type JobProfile,
  type ProfiledInput,
  slotPasts,
  type StageProfile,
} from '../core/forecast/job-profile.ts';
import { matterOf, tellsOf } from '../core/forecast/learn-profile.ts';
import { predictorOf } from '../core/forecast/predictor.ts';
import { learnedBytes, resized, type StageSizes } from '../core/forecast/resize-profile.ts';
import { jobsBehind, type NewStage, similarProfile } from '../core/forecast/similar-jobs.ts';
import { storedProfile } from '../core/forecast/stored-profile.ts';
import { ascending } from '../lib/quantiles.ts';
import type { JobState } from '../core/model/job-view.ts';
import type { SchedulerDeps } from './scheduler-deps.ts';
import type { FoundForecast, Session } from './scheduler-session.ts';

const nothing: FoundForecast = {
  ...{ basis: 'nothing', runs: 0, predictor: undefined, slackFactor: 1, tasks: 0 },
};
/** Finished jobs that are looked through for stages like a new job's. */
const mostJobs = 30;
/**
 * Of others' runs, and of a job's first tasks: how much more slack is kept, and how far off the forecast may be, as work
 * over what is foretold. Our choice: nine of ten forecasts by others are within a factor of two.
 */
const guesses = {
  similar: { slackFactor: 1.5, workFactors: [0.5, 0.75, 1, 1.4, 2] },
  'first-wave': { slackFactor: 1.25, workFactors: [0.7, 0.9, 1, 1.15, 1.4] },
} as const;
/** A job's own tasks are looked at anew once there are as many times as many. */
const tellingGrowth = 1.3;

const guessed = (
  basis: keyof typeof guesses,
  profile: JobProfile,
): Pick<FoundForecast, 'basis' | 'predictor' | 'slackFactor'> => {
  const { slackFactor, workFactors } = guesses[basis];
  // No table is computed for one run: Amdahl's law.
  const predictor = { ...predictorOf(storedProfile(basis, profile), 'amdahl'), workFactors };
  return { basis, predictor, slackFactor };
};

/** The time below which one of four tasks of a stage stayed, on any number of slots. */
function quarterOf({ runs }: StageProfile): number | undefined {
  const all = ascending(runs.flatMap(({ times }) => slotPasts.flatMap((past) => times[past])));
  return all[Math.floor(all.length / 4)];
}

/** How large a plan's stages are: as its sources are to those of earlier runs, so is all that its stages read to what was read. */
function sizesOf(plan: Plan, { profile, inputBytes }: StoredForecast): StageSizes {
  const growth = inputBytes === 0 ? 1 : matterOf(plan).inputBytes / inputBytes;
  const sizes = plan.stages.map(({ description: { name, tasks } }, index) => {
    const learned = profile.stages[index];
    const before = learned === undefined ? undefined : learnedBytes(learned);
    const bytes = before === undefined ? undefined : before * growth;
    return [name, { tasks: Math.max(1, tasks), bytes }] as const;
  });
  return Object.fromEntries(sizes);
}

/** What the job's own finished runs tell, as large as it is, or undefined. Says in the log why they tell nothing. */
async function byOwnRuns(
  { forecasts, log }: SchedulerDeps,
  { jobId, plan }: Session,
): Promise<FoundForecast | undefined> {
  const found = await forecasts?.get(plan.name);
  if (found?.unreadable !== undefined) log.warn('forecast-unreadable', { jobId, why: found.unreadable });
  const forecast = found?.forecast;
  if (forecast === undefined) return undefined;
  const { runs, profile } = forecast;
  if (profile.stages.length !== plan.stages.length || !tellsOf(forecast, matterOf(plan))) {
    log.info('forecast-of-another', { jobId, name: plan.name, runs });
    return undefined;
  }
  const now = resized(profile, sizesOf(plan, forecast));
  const predictor = predictorOf(forecast, plan.policyConfig.jockey.predictor, now);
  return { ...nothing, basis: 'profile', runs, predictor, earlierMs: now.stages.map(quarterOf) };
}

function stagesOf(plan: Plan): readonly NewStage[] {
  const places = new Map(plan.stages.map(({ description }, place) => [description.name, place]));
  return plan.stages.map(({ description, sourceBytes }): NewStage => {
    const { name, operator = 'code', tasks, inputs } = description;
    const upstream = inputs.flatMap((input): readonly ProfiledInput[] =>
      input.kind === 'stage' ? [{ stage: places.get(input.stage) ?? 0, isBarrier: true }] : [],
    );
    const bytes = sourceBytes.reduce((sum, each) => sum + each, 0);
    return { name, operator, tasks: Math.max(1, tasks), sourceBytes: bytes, inputs: upstream };
  });
}

/** What finished jobs with the same operators tell. */
async function byOthers({ jobs }: SchedulerDeps, { plan }: Session): Promise<FoundForecast> {
  const { jobs: records } = await jobs.list({ limit: mostJobs });
  const done = records.filter(({ state }) => state === 'succeeded');
  const similar = similarProfile(
    stagesOf(plan),
    done.flatMap((job) => job.stages),
  );
  if ('unknown' in similar) return nothing;
  const { profile } = similar;
  return { ...nothing, ...guessed('similar', profile), runs: jobsBehind(similar, done), others: profile };
}

/**
 * What is known of a job before it runs: by its own finished runs, else by those of jobs like it where it has a deadline.
 * Never throws: a job goes on without a forecast.
 */
export async function findForecast(
  deps: SchedulerDeps,
  session: Session,
  hasDeadline: boolean,
): Promise<FoundForecast> {
  try {
    const own = await byOwnRuns(deps, session);
    return own ?? { ...(hasDeadline ? await byOthers(deps, session) : nothing), hasSought: hasDeadline };
  } catch (cause) {
    deps.log.warn('no-forecast', { jobId: session.jobId, cause: String(cause) });
    return { ...nothing, hasSought: hasDeadline };
  }
}

/** Whether a job that has a deadline now, as it had none before, is to be foretold by others that were not looked for then. */
export const lacksOthers = ({ basis, hasSought = false }: FoundForecast): boolean =>
  basis !== 'profile' && !hasSought;

/** A forecast that does not rest on the job's own runs, as its own first tasks tell it better. */
export function withFirstWave(found: FoundForecast, state: JobState, now: EpochMs): FoundForecast {
  const tasks = found.basis === 'profile' ? 0 : tasksTold(state);
  if (tasks === 0 || tasks < found.tasks * tellingGrowth) return found;
  const wave = firstWave(state, now, found.others);
  return wave === undefined ? found : { ...found, ...guessed('first-wave', wave.profile), runs: 0, tasks };
}
