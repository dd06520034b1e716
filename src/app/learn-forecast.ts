import type { AttemptRecord, JobRecord } from '../contracts/records.ts';
import type { Plan } from '../contracts/plan.ts';
import { learnProfile } from '../core/forecast/learn-profile.ts';
import type { ForecastStore } from '../ports/forecast-store.ts';
import type { Forecaster } from '../ports/forecaster.ts';
import type { Log } from '../ports/log.ts';
import type { ObjectStore } from '../ports/object-store.ts';
import { loadPlan } from './load-plan.ts';

/** What learns from finished jobs; nothing is learned where either is absent. */
export interface LearnDeps {
  readonly forecasts?: ForecastStore;
  readonly forecaster?: Forecaster;
  readonly log: Log;
}

/** Runs of a job that end at the same time write one after the other; one that comes to nothing is a run less. */
const mostTries = 5;

/**
 * The plan of a job that something is to be learned of, which must be read before it goes with the job's data. Undefined
 * where nothing is learned, or it is gone already, as where a Finish is repeated. Never throws.
 */
export async function planToLearn(
  deps: LearnDeps & { readonly objects: ObjectStore; readonly dataBucket: string },
  job: Pick<JobRecord, 'jobId' | 'planNonce'>,
): Promise<Plan | undefined> {
  if (deps.forecasts === undefined) return undefined;
  try {
    return await loadPlan(deps.objects, deps.dataBucket, job);
  } catch (cause) {
    deps.log.warn('nothing-learned', { jobId: job.jobId, cause: String(cause) });
    return undefined;
  }
}

/**
 * Adds a finished job to what is known of the jobs of its name, once however often it is called, and asks that their
 * forecast be computed anew. Good to know and nothing more: never throws.
 */
export async function learnForecast(
  deps: LearnDeps,
  plan: Plan | undefined,
  attempts: readonly AttemptRecord[],
): Promise<void> {
  const { forecasts, forecaster, log } = deps;
  if (forecasts === undefined || plan === undefined) return;
  const { jobId, name } = plan;
  try {
    const isKnown = await learn(forecasts, log, { plan, attempts });
    if (isKnown) await forecaster?.ask(name);
  } catch (cause) {
    log.warn('nothing-learned', { jobId, cause: String(cause) });
  }
}

/** Whether something is known of the job, by this run or before. */
async function learn(
  forecasts: ForecastStore,
  log: Log,
  { plan, attempts }: { readonly plan: Plan; readonly attempts: readonly AttemptRecord[] },
): Promise<boolean> {
  const { jobId, name } = plan;
  for (let tries = 0; tries < mostTries; tries++) {
    const found = await forecasts.get(name);
    if (found?.unreadable !== undefined) log.warn('forecast-unreadable', { name, why: found.unreadable });
    const learned = learnProfile({ jobId, plan, attempts }, found?.forecast);
    // Told twice: whoever did so first may have died before it asked.
    if (learned === undefined) return found?.forecast?.jobs.includes(jobId) === true;
    if ((await forecasts.put(name, learned, found?.tag)) === 'stored') return true;
  }
  log.warn('nothing-learned', { jobId, cause: 'others write what was learned of its name at the same time' });
  return false;
}
