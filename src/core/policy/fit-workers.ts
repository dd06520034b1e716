import type { Worker } from '../../contracts/job-spec.ts';
import type { DurationMs } from '../../contracts/units.ts';
import type { Decision, Facts } from '../model/decision.ts';
import { stageAt, taskOfAttempt } from '../model/job-state.ts';
import type { JobState, StageView, TaskView } from '../model/job-view.ts';
import { workerOf } from '../model/stage-worker.ts';
import type { TickBudget, TickConfig } from '../model/tick-config.ts';
import { mayUseFargate, nextWorker } from './next-worker.ts';
import { type LambdaTime, outlastsLambda } from './outlasts-lambda.ts';

/** The worker for the next attempt of a task, and why it is that one where its task's failures do not tell. */
export function fitWorker(
  stage: StageView,
  task: TaskView,
  { hasFargate = false, lambdaMs }: Pick<TickConfig, 'hasFargate' | 'lambdaMs'>,
  earlierMs: LambdaTime['earlierMs'],
): { readonly worker: Worker; readonly facts?: Facts } {
  const worker = nextWorker(stage, task, hasFargate);
  if (worker.kind === 'fargate' || lambdaMs === undefined || !mayUseFargate(stage, hasFargate))
    return { worker };
  const time = { lambdaMs, ...(earlierMs === undefined ? {} : { earlierMs }) };
  const facts = outlastsLambda(stage, task, time);
  return facts === undefined ? { worker } : { worker: { ...worker, kind: 'fargate' }, facts };
}

/**
 * Launches on workers that fit their tasks: a larger one or Fargate where an attempt has failed for want of memory or
 * time, and Fargate from the first where a task will clearly outlast Lambda, with the numbers that say so. One that rides
 * with others stays with them: it is short.
 */
export function onFitWorkers(
  state: JobState,
  decisions: readonly Decision[],
  config: Pick<TickConfig, 'hasFargate' | 'lambdaMs'>,
  earlierMs: LambdaTime['earlierMs'],
): Decision[] {
  return decisions.map((each) => {
    if (each.kind !== 'launch' || each.behind !== undefined) return each;
    const task = taskOfAttempt(state, each.attemptId);
    const stage = stageAt(state, task.stage);
    const usual = workerOf(stage);
    const { worker, facts } = fitWorker(stage, task, config, earlierMs);
    if (worker.kind === usual.kind && worker.size === usual.size) return each;
    return { ...each, worker, ...(facts === undefined ? {} : { facts: { ...each.facts, ...facts } }) };
  });
}

/**
 * For how long an attempt may work on Lambda, where one that takes longer may be stopped for Fargate (`leaveEarly`); undefined where
 * there is none or it refuses launches, and in a job with a budget, whose dollars were not counted for beginning anew.
 */
export const lambdaToLeave = (
  { hasFargate, lambdaMs }: Pick<TickConfig, 'hasFargate' | 'lambdaMs'>,
  { room, dollars }: Pick<TickBudget, 'room' | 'dollars'>,
): DurationMs | undefined =>
  hasFargate === true && room?.refused === undefined && dollars === undefined ? lambdaMs : undefined;
