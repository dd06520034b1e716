import { taskIdOf } from '../contracts/ids.ts';
import { elapsedMs, type EpochMs } from '../contracts/units.ts';
import type { Rng } from '../lib/rng.ts';
import type { CancelReason, Decision, Refusal, TickOutcome } from './model/decision.ts';
import {
  addAttempt, type AttemptView, cancelAttempt, isLive, type JobState, loseAttempt, nextAttemptId, stageAt, type TaskView,
} from './model/job-state.ts';
import type { TickBudget, TickConfig } from './model/tick-config.ts';
import { lostAttempts } from './policy/lost-attempts.ts';
import { owedLaunches } from './policy/owed-launches.ts';
import { readyAt } from './policy/retry-backoff.ts';

/** What a tick decides, in the order in which it is to be done. */
export interface TickDecision {
  readonly decisions: readonly Decision[];
  readonly refusals: readonly Refusal[];
  readonly outcome: TickOutcome;
}

const nothing: readonly never[] = [];

/** Cancels of every live attempt that was not told yet. */
function cancelAll(state: JobState, reason: CancelReason): Decision[] {
  return [...state.live]
    .filter((attempt) => !attempt.cancelOrdered)
    .map((attempt) => ({ kind: 'cancel', attemptId: attempt.id, reason }));
}

/** Attempts that work on although another attempt has won their task, and that were not told yet. */
const untoldLosers = (task: TaskView): readonly AttemptView[] =>
  task.attempts.filter((each) => isLive(each) && !each.cancelOrdered && each.id !== task.result?.attemptId);

function cancelsOfLosers(state: JobState): Decision[] {
  return state.justDone
    .flatMap(untoldLosers)
    .map((attempt) => ({ kind: 'cancel', attemptId: attempt.id, reason: 'sibling-won' }));
}

/** Waiting stages whose inputs are all complete, in order. */
function stagesToOpen(state: JobState): Decision[] {
  return state.stages
    .filter((stage) => stage.state === 'waiting' && stage.shape.upstream.every((up) => stageAt(state, up).state === 'done'))
    .map((stage) => ({ kind: 'open-stage', stage: stage.index }));
}

/** Why the job cannot end well, or undefined while it can. */
function fatalMessage(state: JobState, config: TickConfig): string | undefined {
  if (state.fatal !== undefined) {
    const { stage, task, failure } = state.fatal;
    return `stage ${stage}, task ${task}: ${failure.message}`;
  }
  for (const stage of state.stages) {
    for (const task of stage.retryable) {
      if (task.failures < config.attemptsPerTask) continue;
      const last = task.attempts.findLast((attempt) => attempt.failure !== undefined);
      const cause = last?.failure?.message ?? 'its workers stopped reporting';
      return `stage ${stage.shape.name}, task ${task.index} failed ${task.failures} times, at last: ${cause}`;
    }
  }
  return undefined;
}

function launches(
  state: JobState, isReady: (task: TaskView) => boolean, free: number, room: number,
): Pick<TickDecision, 'decisions' | 'refusals'> {
  const owed = owedLaunches(state, isReady, Math.min(free, room) + 1);
  const allowed = owed.slice(0, Math.min(free, room));
  const next = owed[allowed.length];
  const refusals: Refusal[] = next === undefined ? [] : [{
    kind: 'refuse',
    taskId: taskIdOf(stageAt(state, next.task.stage).shape.name, next.task.index),
    reason: free <= room ? 'no-slot' : 'tick-full',
  }];
  const decisions = allowed.map(({ task, reason }): Decision => ({
    kind: 'launch', attemptId: nextAttemptId(state, task), reason,
  }));
  return { decisions, refusals };
}

function outcomeOf(state: JobState, now: EpochMs, config: TickConfig): TickOutcome {
  if (state.doneAt === undefined) return { kind: 'continue' };
  const drained = state.live.size === 0 || elapsedMs(state.doneAt, now) > config.drainMs;
  return drained ? { kind: 'finish' } : { kind: 'continue' };
}

/**
 * Decides one tick of a job: gives up lost attempts, cancels losers, opens stages whose inputs are complete and
 * launches owed attempts into free slots, largest task first. Pure: changes nothing, reads no clock. Decisions
 * take effect by `applyDecisions`. The first owed task that gets no slot is reported as a refusal. `rng` is the
 * job's own stream, the same at every tick.
 */
export function decideTick(
  state: JobState, now: EpochMs, config: TickConfig, budget: TickBudget, rng: Rng,
): TickDecision {
  if (budget.cancelRequested) {
    return { decisions: cancelAll(state, 'job-cancelled'), refusals: nothing, outcome: { kind: 'fail', message: 'cancelled on request' } };
  }
  const fatal = fatalMessage(state, config);
  if (fatal !== undefined) {
    return { decisions: cancelAll(state, 'job-failed'), refusals: nothing, outcome: { kind: 'fail', message: fatal } };
  }
  const lost = lostAttempts(state, now, config);
  const cancels = cancelsOfLosers(state);
  const opens = stagesToOpen(state);
  const owed = [...opens, ...lost, ...cancels].slice(0, config.decisionsPerTick);
  const free = Math.max(0, budget.slots - state.live.size);
  const room = config.decisionsPerTick - owed.length;
  const { decisions, refusals } = launches(state, (task) => readyAt(task, config, rng) <= now, free, room);
  return { decisions: [...owed, ...decisions], refusals, outcome: outcomeOf(state, now, config) };
}

/**
 * Takes decisions over into the state; the second time (replay of the log) has no effect. Cancels of a tick that
 * was cut short come again, since their tasks stay in `justDone` until all of them are ordered.
 */
export function applyDecisions(
  state: JobState, decisions: readonly Decision[], context: { readonly now: EpochMs; readonly openStage: (stage: number) => void },
): void {
  for (const decision of decisions) {
    switch (decision.kind) {
      case 'open-stage':
        context.openStage(decision.stage);
        break;
      case 'launch':
        addAttempt(state, decision.attemptId, decision.reason, context.now);
        break;
      case 'cancel':
        cancelAttempt(state, decision.attemptId, context.now);
        break;
      case 'lose':
        loseAttempt(state, decision.attemptId, context.now);
        break;
    }
  }
  const untold = state.justDone.filter((task) => untoldLosers(task).length > 0);
  state.justDone.splice(0, state.justDone.length, ...untold);
}
