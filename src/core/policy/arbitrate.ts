import { isLive, isUnclaimed, type AttemptView, type TaskView } from '../model/job-view.ts';
import type { RefusalReason } from '../model/decision.ts';
import { stageAt } from '../model/job-state.ts';
import { awaitsInputs } from '../model/lost-outputs.ts';
import { copiesGiven } from '../model/stage-clones.ts';
import type { Account } from './account.ts';
import { affords, spendingFacts } from './budget.ts';
import { slotsElsewhere } from './elsewhere.ts';
import { lossLeftMs } from './loss-limit.ts';
import type { Proposal } from './policy-set.ts';
import { ranked } from './rank-proposals.ts';
import { idOf, launch, needsRoom, refusalLimit, refuse, roomLeft, slotsFor } from './spend-slots.ts';

/** Tells a copy of a task to stop, and counts what the task and the job then have. */
function stop(
  account: Account,
  { task, attempt, facts }: Extract<Proposal, { kind: 'prune' | 'restart' | 'leave' }>,
  reason: 'restarted' | 'pruned' | 'outlasts-lambda',
): void {
  account.cancelled.add(attempt.id);
  account.decisions.push({ kind: 'cancel', attemptId: attempt.id, reason, facts });
  account.live.set(task, (account.live.get(task) ?? 0) - 1);
  if (attempt.reason === 'backup') account.copies -= 1;
  if (!account.terms.killFreesSlot) return;
  account.free += 1;
  if (needsRoom(account, task)) account.launchRoom += 1;
  if (attempt.node !== undefined) account.freedNodes.push(attempt.node);
}

const isStoppable = ({ cancelled }: Account, attempt: AttemptView): boolean =>
  isLive(attempt) && !attempt.cancelOrdered && !cancelled.has(attempt.id);

/** Copies of a task that will run on once this tick's decisions are carried out. */
function copiesAfter({ live, launched }: Account, task: TaskView): number {
  return (live.get(task) ?? 0) + (launched.get(task) ?? 0);
}

/** Why a task may have no other copy now, or undefined where it may. */
function obstacle(account: Account, task: TaskView): RefusalReason | undefined {
  if (task.result !== undefined) return 'task-done';
  // A task without a running attempt is owed one: that is a retry, not a copy.
  if ((account.live.get(task) ?? 0) === 0) return 'last-live-copy';
  // None of them has begun: they wait for room, and so would another.
  if (!task.attempts.some(({ state }) => state === 'running')) return 'still-starting';
  if (awaitsInputs(account.state, stageAt(account.state, task.stage))) return 'input-lost';
  return account.terms.isReady(task) ? undefined : 'backing-off';
}

function obstacleToClone(account: Account, task: TaskView): RefusalReason | undefined {
  if (task.result !== undefined) return 'task-done';
  if (awaitsInputs(account.state, stageAt(account.state, task.stage))) return 'input-lost';
  return account.terms.isReady(task) ? undefined : 'backing-off';
}

/** Whether the job's dollars suffice for a copy of a task; refuses it in the log where they do not. */
function affordsCopy(account: Account, task: TaskView): boolean {
  const { spending } = account.terms;
  if (spending === undefined || affords(spending, 'copy', task)) return true;
  refuse(account, task, 'budget', spendingFacts(spending, task));
  return false;
}

/** Backups in a task's life. One that was told to stop counts though it never began, or a policy could launch without end. */
const backupsOf = ({ attempts }: TaskView): number =>
  attempts.reduce(
    (count, attempt) =>
      count + Number(attempt.reason === 'backup' && (attempt.state === 'cancelled' || !isUnclaimed(attempt))),
    0,
  );

/** Whether no backup more may run: by the job's cap, or since all jobs together run as many as they may. */
function isCapped(account: Account): boolean {
  const { copyCap, admitted = Infinity } = account.terms;
  if (account.copies + account.copiesShort >= copyCap) return true;
  if (account.copies < admitted) return false;
  account.copiesShort += 1;
  return true;
}

/** Whether a stage can bear another loss of so much slot time. */
const mayLose = (account: Account, { stage }: TaskView, lossMs: number): boolean =>
  lossMs <= 0 || lossMs <= leftToLose(account, stage);

/** Costs a look at all attempts of what runs: most ticks lose nothing. */
function leftToLose({ lossLeft, view }: Account, stage: number): number {
  const known = lossLeft.get(stage);
  if (known !== undefined) return known;
  const runs = view.runs.find((each) => each.stage.index === stage);
  const leftMs = runs === undefined ? 0 : lossLeftMs(runs, view);
  lossLeft.set(stage, leftMs);
  return leftMs;
}

function lose(account: Account, { stage }: TaskView, lossMs: number): void {
  if (lossMs > 0) account.lossLeft.set(stage, leftToLose(account, stage) - lossMs);
}

function considerBackup(account: Account, proposal: Extract<Proposal, { kind: 'backup' }>): void {
  const { task, facts, urgent, zone, lossMs = 0 } = proposal;
  const avoidNodes = proposal.avoidNodes ?? [];
  const hindrance =
    obstacle(account, task) ??
    (copiesAfter(account, task) >= account.copiesPerTask || backupsOf(task) >= account.backupsPerTask
      ? 'copy-limit'
      : undefined) ??
    (mayLose(account, task, lossMs) ? undefined : 'loss-limit');
  if (hindrance === undefined && !affordsCopy(account, task)) return;
  const reason =
    hindrance ??
    (isCapped(account) ? 'copy-cap' : undefined) ??
    (slotsFor(account, task) < 1 || (!urgent && account.free <= account.waiting) ? 'no-slot' : undefined) ??
    (slotsElsewhere(account, avoidNodes) < 1 ? 'slow-node' : undefined) ??
    (roomLeft(account) < 1 ? 'tick-full' : undefined);
  if (reason !== undefined) {
    refuse(account, task, reason, facts);
    return;
  }
  account.copies += 1;
  lose(account, task, lossMs);
  launch(account, { task, reason: 'backup', avoidNodes, zone, facts });
}

function considerRestart(account: Account, proposal: Extract<Proposal, { kind: 'restart' }>): void {
  const { task, attempt, facts, avoidNodes, zone, lossMs } = proposal;
  const { killFreesSlot } = account.terms;
  const freed = killFreesSlot && attempt.node !== undefined ? [attempt.node] : [];
  const hindrance =
    obstacle(account, task) ??
    (isStoppable(account, attempt) ? undefined : 'task-done') ??
    (copiesAfter(account, task) > account.copiesPerTask ? 'copy-limit' : undefined) ??
    (mayLose(account, task, lossMs) ? undefined : 'loss-limit');
  if (hindrance === undefined && !affordsCopy(account, task)) return;
  const reason =
    hindrance ??
    (!killFreesSlot && slotsFor(account, task) < 1 ? 'no-slot' : undefined) ??
    (slotsElsewhere(account, avoidNodes ?? [], freed) < 1 ? 'slow-node' : undefined) ??
    (roomLeft(account) < 2 ? 'tick-full' : undefined);
  if (reason !== undefined) {
    refuse(account, task, reason, facts);
    return;
  }
  stop(account, proposal, 'restarted');
  lose(account, task, lossMs);
  launch(account, { task, reason: 'restart', facts, avoidNodes, zone });
}

/** Clones that the budget has admitted: nothing but slots and the room of a tick stands in their way. */
function considerClone(
  account: Account,
  { task, copies, facts }: Extract<Proposal, { kind: 'clone' }>,
): void {
  // Without its original there is nothing to clone: it waits for a slot, or for its next retry.
  if (copiesAfter(account, task) === 0 || obstacleToClone(account, task) !== undefined) return;
  for (let made = copiesGiven(task) + (account.launched.get(task) ?? 0); made < copies; made++) {
    if (!affordsCopy(account, task)) return;
    const isFull = roomLeft(account) < 1;
    if (slotsFor(account, task) < 1 || isFull) {
      // The slots are in the job's demand already, so that they are not counted as short.
      const refusal = {
        kind: 'refuse',
        taskId: idOf(account.state, task),
        reason: isFull ? 'tick-full' : 'no-slot',
        facts,
      } as const;
      if (account.refusals.length < refusalLimit) account.refusals.push(refusal);
      return;
    }
    const place = account.terms.placeOf?.(task, made);
    launch(account, { task, reason: 'clone', ...place, facts: { ...facts, ...place?.facts } });
  }
}

function considerPrune(account: Account, proposal: Extract<Proposal, { kind: 'prune' }>): void {
  const { task, attempt, facts } = proposal;
  if (!isStoppable(account, attempt)) return;
  const live = account.live.get(task) ?? 0;
  if (live < 2) {
    refuse(account, task, 'last-live-copy', facts);
  } else if (roomLeft(account) < 1) {
    refuse(account, task, 'tick-full', facts);
  } else {
    stop(account, proposal, 'pruned');
  }
}

/** Its task is owed another attempt once none is left. */
function considerLeave(account: Account, proposal: Extract<Proposal, { kind: 'leave' }>): void {
  const { task, attempt, facts } = proposal;
  if (task.result !== undefined || !isStoppable(account, attempt)) return;
  if (roomLeft(account) < 1) refuse(account, task, 'tick-full', facts);
  else stop(account, proposal, 'outlasts-lambda');
}

/**
 * Disposes of proposals, what only stops attempts first, then by gain: each becomes decisions or a refusal with its reason.
 * Whatever is proposed, no last live copy is cancelled without a new attempt beside it, but for one that Lambda would end anyway,
 * no task has more copies than the limit, no backup goes beyond the cap, and nothing is launched without a slot.
 */
export function dispose(account: Account, proposals: readonly Proposal[]): void {
  for (const proposal of ranked(proposals)) {
    switch (proposal.kind) {
      case 'prune':
        considerPrune(account, proposal);
        break;
      case 'leave':
        considerLeave(account, proposal);
        break;
      case 'restart':
        considerRestart(account, proposal);
        break;
      case 'backup':
        considerBackup(account, proposal);
        break;
      case 'clone':
        considerClone(account, proposal);
        break;
      case 'decline':
        refuse(account, proposal.task, proposal.reason, proposal.facts, proposal.zone);
        break;
    }
  }
}
