import { launchMadeAt, ranMs } from '../../estimate/progress-rate.ts';
import type { Predictor } from '../../forecast/predictor.ts';
import type { StageForecast } from '../../forecast/stage-forecast.ts';
import type { AttemptView, JobState, StageView } from '../../model/job-view.ts';
import { meanMs } from '../../model/stage-statistics.ts';
import { elapsedMs, type EpochMs } from '../../../contracts/units.ts';

/** How the work of a run compares with what was learned of the job. */
export interface ObservedWork {
  /** Time that its tasks take over what they were expected to; 1 while little is known. */
  readonly factor: number;
  /** How far that may still be off: standard deviation of its logarithm. */
  readonly spread: number;
  /** How far the factor is known, from 0 to 1. */
  readonly weight: number;
  /** Time that attempts take to start over what was expected; 1 while little is known. */
  readonly queueFactor: number;
  /** Finished tasks that it rests on. */
  readonly tasks: number;
}

/** Runs of one job vary so much, before anything is seen of one: Jockey's middle job (Table 1). */
const priorSpread = 0.28;
/** A stage alone may be so much off, however many of its tasks have ended: what slows one need not slow the others. */
const stageSpread = 0.1;
/** Starts as which the expectation counts beside those seen. */
const priorStarts = 20;
/** Rounds of the estimate; each comes nearer by the share of tasks that still run. */
const rounds = 12;
/** Tasks that all run still tell how long they have run, and nothing of how long they take. */
const mostCensored = 0.99;
/** A forecast is wrong where tasks take so many times as long, or as short, once so many have told. */
const wrongFactor = 3;
const wrongTasks = 20;

/** What a stage of the run tells: the logarithm of its factor, and the variance of that. */
interface Told {
  readonly logFactor: number;
  readonly variance: number;
}

/** When a run is looked at, and since when this scheduler has seen what happens in it. */
interface Look {
  readonly now: EpochMs;
  readonly takenOverAt: EpochMs | undefined;
}

/**
 * How long a task that has ended could have run by now, in ms: since its first attempt began. Who takes a job over has not seen
 * when that ended: all that had ended by then would seem to end just then, each after its own time at the most. Of those it goes
 * by when their launches were made, and by what passes until a launch is taken up.
 */
function couldHaveRunMs(first: AttemptView, { statistics }: StageView, { now, takenOverAt }: Look): number {
  const sinceSeenMs = ranMs(first, now);
  if (first.claimedAt === undefined || takenOverAt === undefined || first.seenAt > takenOverAt)
    return sinceSeenMs;
  return Math.max(sinceSeenMs, elapsedMs(launchMadeAt(first), now) - meanMs(statistics.lag));
}

/**
 * A stage of which all tasks have ended tells by their mean. While some run, the short ones have ended first: what was
 * seen of each task by now is compared with what would be expected of it by now, Σ min(xᵢ, ageᵢ) = Σ W·E[min(X, ageᵢ/W)].
 */
function toldBy(
  stage: StageView,
  forecast: StageForecast,
  live: readonly AttemptView[],
  look: Look,
): Told | undefined {
  const { samples } = stage.statistics;
  if (samples.length === 0 || forecast.meanMs <= 0) return undefined;
  const isOver = stage.done === stage.tasks.length;
  const running = live.map((attempt) => ranMs(attempt, look.now));
  const ages = isOver
    ? []
    : samples.map(({ task, ms }) => {
        const [first] = task.attempts;
        return first === undefined ? ms : Math.max(ms, couldHaveRunMs(first, stage, look));
      });
  const took = samples.reduce((sum, { ms }) => sum + ms, 0) + running.reduce((sum, age) => sum + age, 0);
  if (took <= 0) return undefined;
  const seen = [...ages, ...running];
  const over = isOver ? samples.length * forecast.meanMs : 0;
  let factor = 1;
  let censored = 0;
  for (let round = 0; round < rounds; round++) {
    let expected = over;
    let going = 0;
    for (const age of seen) {
      const { withinMs, share } = forecast.within(age / factor);
      expected += withinMs;
      going += share * (age / factor);
    }
    if (expected <= 0) return undefined;
    censored = going / expected;
    factor = took / expected;
  }
  if (censored > mostCensored) return undefined;
  const own = forecast.variation ** 2 * (1 / samples.length + 1 / forecast.tasks);
  return { logFactor: Math.log(factor), variance: own / (1 - censored) ** 2 + stageSpread ** 2 };
}

/**
 * How many times as long as expected the tasks of a run take, and their starts: stage by stage from what has ended and
 * what still runs, weighed by how well each is known, beside what runs of a job vary by.
 */
export function observedWork(state: JobState, predictor: Predictor, now: EpochMs): ObservedWork {
  const running = Map.groupBy(
    [...state.live].filter(({ claimedAt, cancelOrdered }) => claimedAt !== undefined && !cancelOrdered),
    ({ stage }) => stage,
  );
  let [precision, sum, tasks] = [1 / priorSpread ** 2, 0, 0];
  let [lagMs, expectedLagMs] = [0, 0];
  for (const stage of state.stages) {
    const forecast = predictor.stages[stage.index];
    if (forecast === undefined) continue;
    const { lag } = stage.statistics;
    lagMs += lag.sumMs;
    expectedLagMs += lag.count * forecast.queueMs;
    const told = toldBy(stage, forecast, running.get(stage.index) ?? [], {
      now,
      takenOverAt: state.takenOverAt,
    });
    if (told === undefined) continue;
    precision += 1 / told.variance;
    sum += told.logFactor / told.variance;
    tasks += stage.statistics.samples.length;
  }
  const prior = priorStarts * Math.max(1, meanOf(predictor.stages.map(({ queueMs }) => queueMs)));
  return {
    factor: Math.exp(sum / precision),
    spread: 1 / Math.sqrt(precision),
    weight: 1 - 1 / (precision * priorSpread ** 2),
    queueFactor: (prior + lagMs) / (prior + expectedLagMs),
    tasks,
  };
}

const meanOf = (values: readonly number[]): number =>
  values.reduce((sum, each) => sum + each, 0) / Math.max(1, values.length);

/** Whether what was learned of the job tells nothing of this run. */
export const isForecastWrong = ({ factor, tasks }: ObservedWork): boolean =>
  tasks >= wrongTasks && (factor > wrongFactor || factor < 1 / wrongFactor);
