import { hasLeft } from '../model/left-lambda.ts';
import type { OnBudget, Worker } from '../../contracts/job-spec.ts';
import { listPrices, type Prices } from '../../contracts/prices.ts';
import type { EpochMs } from '../../contracts/units.ts';
import { quantileOf } from '../../lib/sorted-numbers.ts';
import { billedMsOf, workerMsOf } from '../estimate/progress-rate.ts';
import { computeDollars, tallyDollars } from '../model/cost.ts';
import type { Facts } from '../model/decision.ts';
import { stageAt } from '../model/job-state.ts';
import { type AttemptView, isLive, type JobState, type StageView, type TaskView } from '../model/job-view.ts';
import { awaitsInputs, isRedone } from '../model/lost-outputs.ts';
import { workerOf } from '../model/stage-worker.ts';
import { savedFor } from '../model/taken-up.ts';
import type { BudgetTerms, TickBudget, TickConfig } from '../model/tick-config.ts';
import { longestInvocationMs } from '../model/time-limit.ts';
import { foretoldMs } from './expected-run.ts';
import { nextWorker } from './next-worker.ts';

/** What an attempt asks for beside its worker's time: four writes, three reads, two objects in, two out, a launch. */
const requestsOfAnAttempt = { writeUnits: 5, readUnits: 1.5, put: 2, get: 2, lambda: 1 } as const;

/**
 * What an attempt is for. `first`: its task has had none that began, or the last one handed on what it had done, so that
 * nothing is paid for twice; `again`: an earlier one failed, or its output was lost; `copy`: one runs already.
 */
export type SpendingKind = 'first' | 'again' | 'copy';

/** The dollars of one tick: what was counted, and what was promised beyond. */
export interface Spending {
  readonly capDollars: number;
  readonly onBudget: OnBudget;
  /** Counted so far: the time of all attempts, those that run included, and what they and the coordinator asked for. */
  readonly spent: number;
  /** What attempts that run are foretold to cost yet, those that this tick launches included. */
  running: number;
  /** The same of tasks of open stages that are owed their first attempt, and of those that are owed another. */
  firsts: number;
  readonly agains: number;
  /** The same of stages that wait, and of first attempts that wait until what they read was made again. */
  readonly later: number;
  /** Whether nothing runs and nothing was launched: then a first attempt is tried whose cost nobody can foretell. */
  isIdle: boolean;
  /** Tasks that are owed an attempt and were refused it. */
  readonly refused: Set<TaskView>;
  readonly dollarsOf: (task: TaskView) => { readonly dollars: number; readonly isKnown: boolean };
}

/** Whether an attempt of a task has begun: until then nothing was paid for it. */
const hasBegun = ({ attempts }: TaskView): boolean =>
  attempts.some(({ claimedAt }) => claimedAt !== undefined);

/** Whether the next attempt of a task goes on where the last one that began had to end. */
const goesOn = (task: TaskView): boolean => {
  const last = task.attempts.findLast(
    ({ number, claimedAt, state }) =>
      number >= task.since && claimedAt !== undefined && state !== 'cancelled',
  );
  return last?.saved !== undefined && savedFor(task, task.attempts.length) !== undefined;
};

const kindOf = (task: TaskView): 'first' | 'again' => (hasBegun(task) && !goesOn(task) ? 'again' : 'first');

/** The median run of a stage's tasks; undefined while none has ended. */
const medianOf = ({ statistics: { runMs } }: StageView): number | undefined => quantileOf(runMs, 0.5);

/** What an attempt that runs will cost yet. One that takes longer than foretold is taken to last as long again. */
function dollarsLeft(
  attempt: AttemptView,
  context: { readonly stage: StageView; readonly now: EpochMs; readonly prices: Prices },
): number {
  const { stage, now, prices } = context;
  const task = stage.tasks[attempt.task];
  if (attempt.cancelOrdered || task === undefined) return 0;
  const worker = workerOf(stage, attempt);
  const median = medianOf(stage);
  const foretold = median === undefined ? longestInvocationMs : foretoldMs(stage, median, task);
  const ran = workerMsOf(attempt, now);
  const longest = worker.kind === 'lambda' ? Math.max(ran, longestInvocationMs) : Infinity;
  const whole = ran < foretold ? foretold : Math.min(longest, 2 * ran);
  const requests = attempt.progress?.requests === undefined ? tallyDollars(requestsOfAnAttempt, prices) : 0;
  return computeDollars(worker, whole, prices) - computeDollars(worker, ran, prices) + requests;
}

/** What a task of a stage that waits is taken to cost: as those of other stages have. */
function typicalMs(state: JobState): number {
  let [sum, count] = [0, 0];
  for (const stage of state.stages) {
    const { runMs } = stage.statistics;
    sum += (medianOf(stage) ?? 0) * runMs.size;
    count += runMs.size;
  }
  return count === 0 ? longestInvocationMs : sum / count;
}

/** Counted cost of a job so far, in dollars: the same sum as its record tells. Costs one pass over all attempts. */
export function dollarsSoFar(
  state: JobState,
  now: EpochMs,
  { coordination = {}, prices = listPrices }: Pick<BudgetTerms, 'coordination' | 'prices'> = {},
): number {
  let sum = tallyDollars(coordination, prices);
  for (const attempt of state.attempts.values()) {
    const worker = workerOf(stageAt(state, attempt.stage), attempt);
    sum += computeDollars(worker, billedMsOf(attempt, now), prices);
    if (attempt.progress?.requests !== undefined) sum += tallyDollars(attempt.progress.requests, prices);
  }
  return sum;
}

/** Opens the account of a tick's dollars. It follows from the log and the records alone: a takeover finds the same. */
export function openSpending(
  state: JobState,
  now: EpochMs,
  terms: BudgetTerms,
  hasFargate: boolean,
): Spending {
  const { capDollars, onBudget, prices = listPrices } = terms;
  const least = tallyDollars(requestsOfAnAttempt, prices);
  const attemptDollars = (worker: Worker, ms: number): number => least + computeDollars(worker, ms, prices);
  let running = 0;
  for (const attempt of [...state.live, ...state.riding])
    running += dollarsLeft(attempt, { stage: stageAt(state, attempt.stage), now, prices });
  let [firsts, agains, later] = [0, 0, 0];
  for (const stage of state.stages) {
    if (stage.state === 'done') continue;
    const ms = medianOf(stage) ?? (stage.state === 'open' ? longestInvocationMs : typicalMs(state));
    const each = attemptDollars(workerOf(stage), ms);
    if (stage.state !== 'open') later += stage.tasks.length * each;
    else {
      const begun = [...stage.retryable].filter((task) => kindOf(task) === 'again').length;
      const dollars = (stage.unstarted + stage.retryable.size - begun) * each;
      agains += begun * each;
      // They cannot be launched before what they read is there: it must not wait until they are paid for.
      if (awaitsInputs(state, stage)) later += dollars;
      else firsts += dollars;
    }
  }
  return {
    ...{ capDollars, onBudget, running, firsts, agains, later },
    spent: dollarsSoFar(state, now, terms),
    isIdle: state.live.size + state.riding.size === 0,
    refused: new Set(),
    dollarsOf: (task) => {
      const stage = stageAt(state, task.stage);
      const median = medianOf(stage);
      const ms = median === undefined ? longestInvocationMs : foretoldMs(stage, median, task);
      return {
        dollars: attemptDollars(nextWorker(stage, task, hasFargate), ms),
        isKnown: median !== undefined,
      };
    },
  };
}

/** The account of the job's dollars; undefined where it may cost what it takes, or has nothing left to run. */
export const spendingOf = (
  state: JobState,
  now: EpochMs,
  { hasFargate = false }: TickConfig,
  { dollars }: TickBudget,
): Spending | undefined =>
  dollars === undefined || state.doneAt !== undefined
    ? undefined
    : openSpending(state, now, dollars, hasFargate);

/** What the job is foretold to cost in the end, with one attempt more of each task that needs one. */
const wholeJob = ({ spent, running, firsts, agains, later }: Spending): number =>
  spent + running + firsts + agains + later;

/**
 * Whether the budget has room for another attempt of a task. Counted with what was spent: what runs, to its foretold
 * end; for an attempt beyond one per task also the first attempts that are owed, and for a copy all that the job still
 * needs. So copies stop first, then second attempts, and with `stop` first ones. While nothing is known of what a task
 * costs the most that it can is taken; where nothing runs, one is tried, or nothing would ever be known.
 */
export function affords(spending: Spending, kind: SpendingKind, task: TaskView): boolean {
  const { capDollars, onBudget, spent, running, firsts, isIdle } = spending;
  if (kind === 'first' && onBudget === 'finish') return true;
  const { dollars, isKnown } = spending.dollarsOf(task);
  if (kind === 'copy') return wholeJob(spending) + dollars <= capDollars;
  const before = kind === 'again' ? firsts : 0;
  if (isIdle && !isKnown && before === 0) return spent < capDollars;
  return spent + running + before + dollars <= capDollars;
}

/** Whether the budget has room for so many clones of tasks like one, beside all that the job needs without them. */
export const affordsClones = (spending: Spending, task: TaskView, clones: number): boolean =>
  wholeJob(spending) + clones * spending.dollarsOf(task).dollars <= spending.capDollars;

/** As `affords`, of a task that is owed an attempt; notes where it is refused. */
export function affordsOwed(spending: Spending, task: TaskView): boolean {
  const isAfforded = affords(spending, kindOf(task), task);
  if (!isAfforded) spending.refused.add(task);
  return isAfforded;
}

/** Takes the cost of an attempt that this tick launches from what is left. */
export function charge(spending: Spending, kind: 'owed' | 'copy', task: TaskView): void {
  const { dollars } = spending.dollarsOf(task);
  spending.running += dollars;
  spending.isIdle = false;
  if (kind === 'owed' && kindOf(task) === 'first') spending.firsts = Math.max(0, spending.firsts - dollars);
}

/** The numbers of a refusal, in dollars. */
export const spendingFacts = (spending: Spending, task?: TaskView): Facts => ({
  budgetDollars: spending.capDollars,
  spentDollars: rounded(spending.spent),
  runningDollars: rounded(spending.running),
  owedDollars: rounded(spending.firsts + spending.agains + spending.later),
  ...(task === undefined ? {} : { attemptDollars: rounded(spending.dollarsOf(task).dollars) }),
});

/** To a ten-thousandth of a cent. */
const rounded = (dollars: number): number => Math.round(dollars * 1e6) / 1e6;
const told = (dollars: number): string => `$${String(rounded(dollars))}`;

/** Tasks that are owed an attempt and may be launched, and how many are owed one, those of stages that wait included. */
function owedTasks(state: JobState): { readonly open: readonly TaskView[]; readonly count: number } {
  const open: TaskView[] = [];
  let count = 0;
  for (const stage of state.stages) {
    if (stage.state === 'waiting') count += stage.tasks.length;
    if (stage.state !== 'open') continue;
    count += stage.unstarted + stage.retryable.size;
    if (awaitsInputs(state, stage)) continue;
    open.push(...stage.retryable);
    const first = stage.unstarted === 0 ? undefined : stage.tasks[stage.order[stage.nextFirst] ?? -1];
    if (first !== undefined) open.push(first);
  }
  return { open, count };
}

/**
 * Why the budget ends the job now; undefined while it does not. With `stop`: something is owed an attempt that cannot be
 * launched any more, since all is spent, or nothing runs whose end might leave more. With `finish`: a task needs another
 * attempt and cannot have it, for the same reason. What runs may end otherwise, and is waited for.
 */
export function budgetEnd(state: JobState, spending: Spending): string | undefined {
  const { onBudget, spent, capDollars } = spending;
  const isSpent = spent >= capDollars;
  if (!isSpent && !spending.isIdle) return undefined;
  const { open, count } = owedTasks(state);
  const again = open.filter((task) => kindOf(task) === 'again');
  const budget = `the budget of $${String(capDollars)} is used up: ${told(spent)} counted so far`;
  if (onBudget === 'finish') {
    const [task] = again;
    if (task === undefined) return undefined;
    const mayGoOn = open.some((each) => affords(spending, kindOf(each), each));
    if (!isSpent && mayGoOn) return undefined;
    const name = `stage ${stageAt(state, task.stage).shape.name}, task ${String(task.index)}`;
    return `${budget}, and ${name} may have no second attempt after its first: ${causeOf(task)}`;
  }
  if (
    count === 0 ||
    (!isSpent && (open.length === 0 || open.some((each) => affords(spending, kindOf(each), each))))
  )
    return undefined;
  const [next] = open;
  const each = next === undefined || !spending.dollarsOf(next).isKnown ? '' : nextCosts(spending, next);
  const tasks = count === 1 ? '1 task is' : `${String(count)} tasks are`;
  return `${budget}, ${tasks} still owed an attempt${each}, and it is to stop there (onBudget "stop")`;
}

const isEnded = (attempt: AttemptView): boolean => !isLive(attempt);
/** Why a task is owed another attempt. */
function causeOf(task: TaskView): string {
  if (isRedone(task)) return 'its output was lost';
  const last = task.attempts.findLast(isEnded);
  if (last !== undefined && hasLeft(last)) return 'it would not have been done when Lambda ends it';
  return last?.failure?.message ?? 'its worker stopped reporting';
}
const nextCosts = (spending: Spending, task: TaskView): string =>
  `, which costs about ${told(spending.dollarsOf(task).dollars)}`;
