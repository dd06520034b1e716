import { attemptParts, isCopy, type TaskId, taskOf } from '../../contracts/ids.ts';
import type { LossKind } from '../../contracts/records.ts';
import type { Decision, LoseOutput } from '../model/decision.ts';
import type { FoundLoss, TickConfig } from '../model/tick-config.ts';
import { isLive, type JobState, type TaskView } from '../model/job-view.ts';
import { isCopiedToo, isNeeded, taskWithOutput, timesRedone } from '../model/lost-outputs.ts';

/** Outputs that are gone, those of later stages first: whether an input is needed hangs on what is done again. */
function byLaterStage(
  state: JobState,
  found: readonly FoundLoss[],
): readonly (readonly [FoundLoss, TaskView])[] {
  return found
    .flatMap((each) => {
      const task = taskWithOutput(state, each.attemptId);
      return task === undefined ? [] : [[each, task] as const];
    })
    .toSorted(([, a], [, b]) => b.stage - a.stage || a.index - b.index);
}

/**
 * The first copy of a task's output that is neither among the lost nor copied from what was harmed, by the number of its
 * attempt. One that another attempt has made by itself is good.
 */
const copyLeft = ({ replicas }: TaskView, lost: ReadonlySet<number>, how: LossKind): number | undefined =>
  replicas.find((number) => !lost.has(number) && !(isCopiedToo(how) && isCopy(number)));

/**
 * What is done about outputs that are gone: readers go by a replica where there is one; else the task is done again, if
 * anybody needs its output, also for a task that is itself done again here. So exactly those tasks are reopened whose
 * output is gone and needed, each once for each loss: an output that is not read any more is nobody's loss. Attempts
 * that still work on a reopened task are told to stop, since their result came too late for its last life. At most
 * `limit` decisions.
 *
 * Source: Mantri §5.3 (a lost output is made again from its inputs, those too where they are gone).
 */
export function lossDecisions(
  state: JobState,
  found: readonly FoundLoss[],
  limit: number,
): readonly Decision[] {
  const lost = Map.groupBy(found, ({ attemptId }): TaskId => taskOf(attemptId));
  const reopening = new Set<TaskView>();
  const decisions: Decision[] = [];
  const seen = new Set<string>();
  for (const [{ attemptId, how, by }, task] of byLaterStage(state, found)) {
    if (decisions.length >= limit) break;
    if (seen.has(attemptId) || !isNeeded(state, task, reopening)) continue;
    seen.add(attemptId);
    const decision: LoseOutput = { kind: 'lose-output', attemptId, how, ...(by === undefined ? {} : { by }) };
    if (task.result?.attemptId !== attemptId) {
      decisions.push(decision); // A replica: nobody is sent there any more.
      continue;
    }
    const gone = new Set(lost.get(taskOf(attemptId))?.map((each) => attemptParts(each.attemptId).attempt));
    const use = copyLeft(task, gone, how);
    decisions.push(use === undefined ? decision : { ...decision, use });
    if (use !== undefined) continue;
    reopening.add(task);
    for (const { id, cancelOrdered, ...attempt } of task.attempts)
      if (isLive(attempt) && !cancelOrdered)
        decisions.push({ kind: 'cancel', attemptId: id, reason: 'sibling-won' });
  }
  return decisions;
}

/**
 * Losses that a tick leaves to the next. One that decides on some may have been too full for the others, which nobody would
 * look for again but a reader that fails for each; one that decides on none has found that nobody needs what is left.
 */
export function undecidedLosses(
  decisions: readonly Decision[],
  found: readonly FoundLoss[] = [],
): readonly FoundLoss[] {
  const decided = new Set(decisions.flatMap((each) => (each.kind === 'lose-output' ? [each.attemptId] : [])));
  return decided.size === 0 ? [] : found.filter(({ attemptId }) => !decided.has(attemptId));
}

/** Why a job fails whose outputs are lost over and over, no copy left, or undefined while it does not. */
export function lostTooOften(
  state: JobState,
  found: readonly FoundLoss[],
  { lossesPerTask = Infinity }: TickConfig,
): string | undefined {
  for (const decision of lossDecisions(state, found, Infinity)) {
    if (decision.kind !== 'lose-output' || decision.use !== undefined) continue;
    const { attemptId, how } = decision;
    const task = taskWithOutput(state, attemptId);
    if (task?.result?.attemptId !== attemptId || timesRedone(task) < lossesPerTask) continue;
    const times = timesRedone(task) + 1;
    return `the output of task ${taskOf(attemptId)} was lost ${times} times, at last that of attempt ${attemptId} (${how})`;
  }
  return undefined;
}
