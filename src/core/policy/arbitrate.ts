import { type AttemptId, attemptIdOf, type TaskId, taskIdOf } from '../../contracts/ids.ts';
import type { Facts, LaunchReason, RefusalReason } from '../model/decision.ts';
import { stageAt } from '../model/job-state.ts';
import { awaitsInputs } from '../model/lost-outputs.ts';
import { namedNodes, slotsElsewhere } from './elsewhere.ts';
import type { OwedLaunch } from './owed-launches.ts';
import type { PolicyView, Proposal } from './policy-set.ts';
import { lossLeftMs } from './loss-limit.ts';
import { ranked } from './rank-proposals.ts';
import type { Account, Terms } from './account.ts';
import { affords, affordsOwed, charge, spendingFacts } from './budget.ts';
import { alone, joins, type OpenPack, openPack, type Packs } from './ride-together.ts';
import { runningBackups } from './running-tasks.ts';
import { type AttemptView, isLive, isUnclaimed, type JobState, type TaskView } from '../model/job-view.ts';
import { copiesGiven } from '../model/stage-clones.ts';
import { type LaunchRoom, meetsRefusal, takesRoom } from '../model/tick-config.ts';

/** Proposals refused that one tick logs. */
const refusalLimit = 20;

/** An account with nothing spent. */
export function openAccount(state: JobState, view: PolicyView, terms: Terms): Account {
  const live = new Map<TaskView, number>();
  for (const { tasks } of view.runs) for (const { task, copies } of tasks) live.set(task, copies.length);
  return {
    state,
    terms,
    copiesPerTask: view.config.copiesPerTask,
    backupsPerTask: view.config.backupsPerTask,
    decisions: [],
    refusals: [],
    free: view.slots.free,
    waiting: view.slots.waiting,
    launchRoom: terms.launchRoom?.launches ?? 0,
    refusedRoom: terms.launchRoom?.refused?.launches ?? Infinity,
    copies: runningBackups(view.runs),
    slotsShort: 0,
    shortByStage: new Map(),
    copiesShort: 0,
    launches: 0,
    freedNodes: [...(terms.freedNodes ?? [])],
    lossLeft: new Map(),
    view,
    launched: new Map(),
    live,
    cancelled: new Set(),
  };
}

const roomLeft = ({ terms, decisions }: Account): number => terms.room - decisions.length;

const needsRoom = ({ terms }: Account, task: TaskView): boolean => takesRoom(terms.launchRoom, task);

/** Slots that an attempt of a task may take: those that are free, and that have room behind them. */
function slotsFor(account: Account, task: TaskView): number {
  const { free, launchRoom, refusedRoom, terms } = account;
  if (needsRoom(account, task)) return Math.min(free, launchRoom);
  return meetsRefusal(terms.launchRoom, task) ? Math.min(free, refusedRoom) : free;
}

const idOf = (state: JobState, task: TaskView): TaskId =>
  taskIdOf(stageAt(state, task.stage).shape.name, task.index);

function refuse(account: Account, task: TaskView, reason: RefusalReason, facts: Facts, zone?: string): void {
  if (reason === 'no-slot') {
    account.slotsShort += 1;
    account.shortByStage.set(task.stage, (account.shortByStage.get(task.stage) ?? 0) + 1);
  }
  if (account.refusals.length < refusalLimit) {
    const taskId = idOf(account.state, task);
    account.refusals.push({ kind: 'refuse', taskId, reason, ...(zone === undefined ? {} : { zone }), facts });
  }
}

interface Launch {
  readonly task: TaskView;
  readonly reason: LaunchReason;
  /** The attempt with which it rides: it takes no slot. */
  readonly behind?: AttemptId | undefined;
  readonly avoidNodes?: readonly string[] | undefined;
  readonly zone?: string | undefined;
  readonly facts?: Facts;
}

/** Takes a slot for an attempt of a task. */
function takeSlot(account: Account, task: TaskView): void {
  account.launches += 1;
  account.free -= 1;
  if (needsRoom(account, task)) account.launchRoom -= 1;
  else if (meetsRefusal(account.terms.launchRoom, task)) account.refusedRoom -= 1;
}

function launch(account: Account, { task, reason, avoidNodes, zone, facts, behind }: Launch): AttemptId {
  const before = account.launched.get(task) ?? 0;
  const number = task.attempts.length + before;
  const attemptId = attemptIdOf(stageAt(account.state, task.stage).shape.name, task.index, number);
  const named = behind === undefined ? namedNodes(account, task, avoidNodes ?? []) : [];
  account.launched.set(task, before + 1);
  const isOwed = reason === 'first' || reason === 'retry' || reason === 'recompute';
  if (isOwed) account.waiting -= 1;
  if (account.terms.spending !== undefined) charge(account.terms.spending, isOwed ? 'owed' : 'copy', task);
  if (behind === undefined) takeSlot(account, task);
  account.decisions.push({
    kind: 'launch',
    attemptId,
    reason,
    ...(behind === undefined ? {} : { behind }),
    ...(named.length === 0 ? {} : { avoidNodes: named }),
    ...(zone === undefined ? {} : { zone }),
    ...(facts === undefined ? {} : { facts }),
  });
  return attemptId;
}

/**
 * Launches attempts that ride by themselves after all, each into a slot. One that its worker is about to take up, as
 * far as is known, holds that worker's slot already.
 */
export function launchRiders(account: Account, riders: readonly AttemptView[]): void {
  for (const { id, stage, task: index, reason, place } of riders) {
    const task = stageAt(account.state, stage).tasks[index];
    if (task === undefined || roomLeft(account) < 1) return;
    if (awaitsInputs(account.state, stageAt(account.state, stage))) continue;
    if (place !== 'carrier') {
      if (slotsFor(account, task) < 1) continue;
      takeSlot(account, task);
    }
    account.waiting -= 1;
    account.decisions.push({ kind: 'launch', attemptId: id, reason });
  }
}

function cancel(account: Account, attempt: AttemptView, reason: 'restarted' | 'pruned', facts: Facts): void {
  account.cancelled.add(attempt.id);
  account.decisions.push({ kind: 'cancel', attemptId: attempt.id, reason, facts });
}

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
  const isStoppable = isLive(attempt) && !attempt.cancelOrdered && !account.cancelled.has(attempt.id);
  const hindrance =
    obstacle(account, task) ??
    (isStoppable ? undefined : 'task-done') ??
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
  cancel(account, attempt, 'restarted', facts);
  lose(account, task, lossMs);
  account.live.set(task, (account.live.get(task) ?? 0) - 1);
  if (attempt.reason === 'backup') account.copies -= 1;
  if (killFreesSlot) account.free += 1;
  if (killFreesSlot && needsRoom(account, task)) account.launchRoom += 1;
  account.freedNodes.push(...freed);
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
  if (!isLive(attempt) || attempt.cancelOrdered || account.cancelled.has(attempt.id)) return;
  const live = account.live.get(task) ?? 0;
  if (live < 2) {
    refuse(account, task, 'last-live-copy', facts);
  } else if (roomLeft(account) < 1) {
    refuse(account, task, 'tick-full', facts);
  } else {
    cancel(account, attempt, 'pruned', facts);
    account.live.set(task, live - 1);
    if (attempt.reason === 'backup') account.copies -= 1;
    if (!account.terms.killFreesSlot) return;
    account.free += 1;
    if (needsRoom(account, task)) account.launchRoom += 1;
    if (attempt.node !== undefined) account.freedNodes.push(attempt.node);
  }
}

/**
 * Disposes of proposals, prunes first, then by gain: each becomes decisions or a refusal with its reason. Whatever
 * is proposed, no last live copy is cancelled without a new attempt beside it, no task has more copies than the
 * limit, no backup goes beyond the cap, and nothing is launched without a slot.
 */
export function dispose(account: Account, proposals: readonly Proposal[]): void {
  for (const proposal of ranked(proposals)) {
    switch (proposal.kind) {
      case 'prune':
        considerPrune(account, proposal);
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

/**
 * Launches what is owed, in order, into what is left, off the nodes to be avoided; short ones ride together as `packs`
 * says. The first that gets no slot is refused in the log. Where nothing runs and no other node is free, any will do:
 * a job must not wait for nodes that may never come.
 */
export function launchOwed(
  account: Account,
  owedUpTo: (limit: number, room: LaunchRoom | undefined) => readonly OwedLaunch[],
  declined: readonly string[] = [],
  packs: Packs = alone,
): void {
  const room = roomLeft(account);
  const isNoneElsewhere = account.state.live.size === 0 && slotsElsewhere(account, declined) < 1;
  const avoidNodes = isNoneElsewhere ? [] : declined;
  const elsewhere = slotsElsewhere(account, avoidNodes);
  const limit = Math.max(0, Math.min(account.free, room, elsewhere));
  const shared = account.terms.launchRoom;
  const each = 1 + packs.mostRiders;
  // One more than there is room for: it is told that it got none.
  const owed = owedUpTo(
    Math.min(limit * each, room) + 1,
    shared && {
      ...shared,
      launches: account.launchRoom * each + 1,
      ...(shared.refused && {
        refused: { ...shared.refused, launches: Math.max(0, account.refusedRoom) * each + 1 },
      }),
    },
  );
  const isShort = account.free <= Math.min(room, elsewhere);
  let granted = 0;
  let pack: OpenPack | undefined;
  let refused: { readonly task: TaskView; readonly reason: RefusalReason } | undefined;
  const { spending } = account.terms;
  for (const next of owed) {
    const { task, reason } = next;
    // What was launched before it in this tick counts, too.
    if (spending !== undefined && !affordsOwed(spending, task)) continue;
    const isFull = roomLeft(account) < 1;
    if (!isFull && joins(packs, pack, next)) {
      launch(account, { task, reason, behind: pack.head });
      continue;
    }
    if (granted < limit && !isFull && slotsFor(account, task) >= 1) {
      granted += 1;
      const place = account.terms.placeOf?.(task);
      pack = openPack(packs, next, launch(account, { task, reason, avoidNodes, ...place }));
    } else if (granted < limit) refused ??= { task, reason: isFull ? 'tick-full' : 'no-slot' };
    else refused ??= { task, reason: isShort ? 'no-slot' : limit === room ? 'tick-full' : 'slow-node' };
  }
  refuseOverBudget(account);
  if (refused === undefined) return;
  const taskId = idOf(account.state, refused.task);
  account.refusals.unshift({ kind: 'refuse', taskId, reason: refused.reason });
}

/** The first task that is owed an attempt for which the job has no dollars left. */
function refuseOverBudget({ state, terms: { spending }, refusals }: Account): void {
  const [task] = spending?.refused ?? [];
  if (task === undefined || spending === undefined) return;
  refusals.unshift({
    kind: 'refuse',
    taskId: idOf(state, task),
    reason: 'budget',
    facts: spendingFacts(spending, task),
  });
}
