import { type AttemptId, attemptIdOf, type TaskId, taskIdOf } from '../../contracts/ids.ts';
import type { Decision, Facts, LaunchReason, Refusal, RefusalReason } from '../model/decision.ts';
import { stageAt } from '../model/job-state.ts';
import type { OwedLaunch } from './owed-launches.ts';
import type { PolicyView, Proposal } from './policy-set.ts';
import { runningBackups } from './running-tasks.ts';
import { type AttemptView, isLive, isUnclaimed, type JobState, type TaskView } from '../model/job-view.ts';
import { type LaunchRoom, takesRoom } from '../model/tick-config.ts';

/** Proposals refused that one tick logs. */
const refusalLimit = 20;
/** Nodes that one launch names where the host does not say which are free. */
const avoidLimit = 32;

/** What a tick may spend, and on what terms. */
export interface Terms {
  /** Decisions that the tick may still take. */
  readonly room: number;
  /** Backups that may run at once. */
  readonly copyCap: number;
  /** Those of them that the job was admitted, of what all jobs may run together; absent: all. */
  readonly admitted?: number | undefined;
  readonly killFreesSlot: boolean;
  /** Free slots of each node that has any, by its name, where the host knows. */
  readonly freeNodes?: ReadonlyMap<string, number> | undefined;
  /** The node of each slot that was freed by this tick already; absent: none was. */
  readonly freedNodes?: readonly string[];
  /** Whether a task may be launched again now. */
  readonly isReady: (task: TaskView) => boolean;
  /** Room of stages whose launches may wait for it unseen; absent: slots are all that launches need. */
  readonly launchRoom?: LaunchRoom | undefined;
}

/** The account of one tick: what it has decided, and what is left to spend. */
export interface Ledger {
  readonly state: JobState;
  readonly terms: Terms;
  readonly copiesPerTask: number;
  readonly backupsPerTask: number;
  readonly decisions: Decision[];
  readonly refusals: Refusal[];
  free: number;
  /** Launches that may begin yet in the stages of `terms.launchRoom`. */
  launchRoom: number;
  copies: number;
  /** Copies that wanted for nothing but a slot. */
  slotsShort: number;
  /** The same by the place of their stage. */
  readonly shortByStage: Map<number, number>;
  /** Copies that were not admitted yet, of those that the job's own cap allows. */
  copiesShort: number;
  launches: number;
  /** The node of each slot that this tick has freed. */
  readonly freedNodes: string[];
  readonly launched: Map<TaskView, number>;
  readonly live: Map<TaskView, number>;
  readonly cancelled: Set<AttemptId>;
}

/** An account with nothing spent. */
export function openLedger(state: JobState, view: PolicyView, terms: Terms): Ledger {
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
    launchRoom: terms.launchRoom?.launches ?? 0,
    copies: runningBackups(view.runs),
    slotsShort: 0,
    shortByStage: new Map(),
    copiesShort: 0,
    launches: 0,
    freedNodes: [...(terms.freedNodes ?? [])],
    launched: new Map(),
    live,
    cancelled: new Set(),
  };
}

const roomLeft = ({ terms, decisions }: Ledger): number => terms.room - decisions.length;

const needsRoom = ({ terms }: Ledger, task: TaskView): boolean => takesRoom(terms.launchRoom, task);

/** Slots that an attempt of a task may take: those that are free, and that have room behind them. */
const slotsFor = (ledger: Ledger, task: TaskView): number =>
  needsRoom(ledger, task) ? Math.min(ledger.free, ledger.launchRoom) : ledger.free;

const idOf = (state: JobState, task: TaskView): TaskId =>
  taskIdOf(stageAt(state, task.stage).shape.name, task.index);

function refuse(ledger: Ledger, task: TaskView, reason: RefusalReason, facts: Facts): void {
  if (reason === 'no-slot') {
    ledger.slotsShort += 1;
    ledger.shortByStage.set(task.stage, (ledger.shortByStage.get(task.stage) ?? 0) + 1);
  }
  if (ledger.refusals.length < refusalLimit) {
    ledger.refusals.push({ kind: 'refuse', taskId: idOf(ledger.state, task), reason, facts });
  }
}

interface Launch {
  readonly task: TaskView;
  readonly reason: LaunchReason;
  readonly avoidNodes?: readonly string[] | undefined;
  readonly facts?: Facts;
}

/** The nodes to name with a launch: of those to be avoided, the ones that could run it. */
function namedNodes(ledger: Ledger, avoid: readonly string[]): readonly string[] {
  const { freeNodes } = ledger.terms;
  if (freeNodes === undefined) return avoid.slice(0, avoidLimit);
  const freed = new Set(ledger.freedNodes);
  return avoid.filter((node) => freeNodes.has(node) || freed.has(node));
}

function launch(ledger: Ledger, { task, reason, avoidNodes, facts }: Launch): void {
  const before = ledger.launched.get(task) ?? 0;
  const number = task.attempts.length + before;
  const named = namedNodes(ledger, avoidNodes ?? []);
  ledger.launched.set(task, before + 1);
  ledger.launches += 1;
  ledger.free -= 1;
  if (needsRoom(ledger, task)) ledger.launchRoom -= 1;
  ledger.decisions.push({
    kind: 'launch',
    attemptId: attemptIdOf(stageAt(ledger.state, task.stage).shape.name, task.index, number),
    reason,
    ...(named.length === 0 ? {} : { avoidNodes: named }),
    ...(facts === undefined ? {} : { facts }),
  });
}

function cancel(ledger: Ledger, attempt: AttemptView, reason: 'restarted' | 'pruned', facts: Facts): void {
  ledger.cancelled.add(attempt.id);
  ledger.decisions.push({ kind: 'cancel', attemptId: attempt.id, reason, facts });
}

/** Copies of a task that will run on once this tick's decisions are carried out. */
function copiesAfter({ live, launched }: Ledger, task: TaskView): number {
  return (live.get(task) ?? 0) + (launched.get(task) ?? 0);
}

/** Free slots that lie on other nodes than those to be avoided. Launches of this tick may have taken any of them. */
function slotsElsewhere(ledger: Ledger, avoid: readonly string[], freed: readonly string[] = []): number {
  const { freeNodes } = ledger.terms;
  if (freeNodes === undefined || avoid.length === 0) return Infinity;
  const avoided = new Set(avoid);
  let others = [...ledger.freedNodes, ...freed].filter((node) => !avoided.has(node)).length;
  for (const [node, slots] of freeNodes) if (!avoided.has(node)) others += slots;
  return Math.max(0, others - ledger.launches);
}

/** Why a task may have no other copy now, or undefined where it may. */
function obstacle(ledger: Ledger, task: TaskView): RefusalReason | undefined {
  if (task.result !== undefined) return 'task-done';
  // A task without a running attempt is owed one: that is a retry, not a copy.
  if ((ledger.live.get(task) ?? 0) === 0) return 'last-live-copy';
  // None of them has begun: they wait for room, and so would another.
  if (!task.attempts.some(({ state }) => state === 'running')) return 'still-starting';
  return ledger.terms.isReady(task) ? undefined : 'backing-off';
}

function obstacleToClone(ledger: Ledger, task: TaskView): RefusalReason | undefined {
  if (task.result !== undefined) return 'task-done';
  return ledger.terms.isReady(task) ? undefined : 'backing-off';
}

/** Backups in a task's life. One that was told to stop counts though it never began, or a policy could launch without end. */
const backupsOf = ({ attempts }: TaskView): number =>
  attempts.reduce(
    (count, attempt) =>
      count + Number(attempt.reason === 'backup' && (attempt.state === 'cancelled' || !isUnclaimed(attempt))),
    0,
  );

/** Whether no backup more may run: by the job's cap, or since all jobs together run as many as they may. */
function isCapped(ledger: Ledger): boolean {
  const { copyCap, admitted = Infinity } = ledger.terms;
  if (ledger.copies + ledger.copiesShort >= copyCap) return true;
  if (ledger.copies < admitted) return false;
  ledger.copiesShort += 1;
  return true;
}

function considerBackup(ledger: Ledger, proposal: Extract<Proposal, { kind: 'backup' }>): void {
  const { task, facts } = proposal;
  const avoidNodes = proposal.avoidNodes ?? [];
  const reason =
    obstacle(ledger, task) ??
    (copiesAfter(ledger, task) >= ledger.copiesPerTask || backupsOf(task) >= ledger.backupsPerTask
      ? 'copy-limit'
      : undefined) ??
    (isCapped(ledger) ? 'copy-cap' : undefined) ??
    (slotsFor(ledger, task) < 1 ? 'no-slot' : undefined) ??
    (slotsElsewhere(ledger, avoidNodes) < 1 ? 'slow-node' : undefined) ??
    (roomLeft(ledger) < 1 ? 'tick-full' : undefined);
  if (reason !== undefined) {
    refuse(ledger, task, reason, facts);
    return;
  }
  ledger.copies += 1;
  launch(ledger, { task, reason: 'backup', avoidNodes, facts });
}

function considerRestart(ledger: Ledger, proposal: Extract<Proposal, { kind: 'restart' }>): void {
  const { task, attempt, facts, avoidNodes } = proposal;
  const { killFreesSlot } = ledger.terms;
  const freed = killFreesSlot && attempt.node !== undefined ? [attempt.node] : [];
  const isStoppable = isLive(attempt) && !attempt.cancelOrdered && !ledger.cancelled.has(attempt.id);
  const reason =
    obstacle(ledger, task) ??
    (isStoppable ? undefined : 'task-done') ??
    (copiesAfter(ledger, task) > ledger.copiesPerTask ? 'copy-limit' : undefined) ??
    (!killFreesSlot && slotsFor(ledger, task) < 1 ? 'no-slot' : undefined) ??
    (slotsElsewhere(ledger, avoidNodes ?? [], freed) < 1 ? 'slow-node' : undefined) ??
    (roomLeft(ledger) < 2 ? 'tick-full' : undefined);
  if (reason !== undefined) {
    refuse(ledger, task, reason, facts);
    return;
  }
  cancel(ledger, attempt, 'restarted', facts);
  ledger.live.set(task, (ledger.live.get(task) ?? 0) - 1);
  if (attempt.reason === 'backup') ledger.copies -= 1;
  if (killFreesSlot) ledger.free += 1;
  if (killFreesSlot && needsRoom(ledger, task)) ledger.launchRoom += 1;
  ledger.freedNodes.push(...freed);
  launch(ledger, { task, reason: 'restart', facts, avoidNodes });
}

/** Clones that the budget has admitted: nothing but slots and the room of a tick stands in their way. */
function considerClone(ledger: Ledger, { task, copies, facts }: Extract<Proposal, { kind: 'clone' }>): void {
  // Without its original there is nothing to clone: it waits for a slot, or for its next retry.
  if (copiesAfter(ledger, task) === 0 || obstacleToClone(ledger, task) !== undefined) return;
  for (let made = task.attempts.length + (ledger.launched.get(task) ?? 0); made < copies; made++) {
    const isFull = roomLeft(ledger) < 1;
    if (slotsFor(ledger, task) < 1 || isFull) {
      // The slots are in the job's demand already, so that they are not counted as short.
      const refusal = {
        kind: 'refuse',
        taskId: idOf(ledger.state, task),
        reason: isFull ? 'tick-full' : 'no-slot',
        facts,
      } as const;
      if (ledger.refusals.length < refusalLimit) ledger.refusals.push(refusal);
      return;
    }
    launch(ledger, { task, reason: 'clone', facts });
  }
}

function considerPrune(ledger: Ledger, proposal: Extract<Proposal, { kind: 'prune' }>): void {
  const { task, attempt, facts } = proposal;
  if (!isLive(attempt) || attempt.cancelOrdered || ledger.cancelled.has(attempt.id)) return;
  const live = ledger.live.get(task) ?? 0;
  if (live < 2) {
    refuse(ledger, task, 'last-live-copy', facts);
  } else if (roomLeft(ledger) < 1) {
    refuse(ledger, task, 'tick-full', facts);
  } else {
    cancel(ledger, attempt, 'pruned', facts);
    ledger.live.set(task, live - 1);
    if (attempt.reason === 'backup') ledger.copies -= 1;
    if (!ledger.terms.killFreesSlot) return;
    ledger.free += 1;
    if (needsRoom(ledger, task)) ledger.launchRoom += 1;
    if (attempt.node !== undefined) ledger.freedNodes.push(attempt.node);
  }
}

/**
 * Disposes of proposals, prunes first, then by gain: each becomes decisions or a refusal with its reason. Whatever
 * is proposed, no last live copy is cancelled without a new attempt beside it, no task has more copies than the
 * limit, no backup goes beyond the cap, and nothing is launched without a slot.
 */
export function dispose(ledger: Ledger, proposals: readonly Proposal[]): void {
  for (const proposal of ranked(proposals)) {
    switch (proposal.kind) {
      case 'prune':
        considerPrune(ledger, proposal);
        break;
      case 'restart':
        considerRestart(ledger, proposal);
        break;
      case 'backup':
        considerBackup(ledger, proposal);
        break;
      case 'clone':
        considerClone(ledger, proposal);
        break;
      case 'decline':
        refuse(ledger, proposal.task, proposal.reason, proposal.facts);
        break;
    }
  }
}

/**
 * Launches what is owed, in order, into what is left, off the nodes to be avoided. The first that gets no slot is
 * refused in the log. Where nothing runs, any node will do: a job must not wait for nodes that may never come.
 */
export function launchOwed(
  ledger: Ledger,
  owedUpTo: (limit: number, room: LaunchRoom | undefined) => readonly OwedLaunch[],
  declined: readonly string[] = [],
): void {
  const avoidNodes = ledger.state.live.size === 0 ? [] : declined;
  const room = roomLeft(ledger);
  const elsewhere = slotsElsewhere(ledger, avoidNodes);
  const limit = Math.max(0, Math.min(ledger.free, room, elsewhere));
  const shared = ledger.terms.launchRoom;
  // One more than there is room for: it is told that it got none.
  const owed = owedUpTo(limit + 1, shared && { ...shared, launches: ledger.launchRoom + 1 });
  const isShort = ledger.free <= Math.min(room, elsewhere);
  let granted = 0;
  let refused: { readonly task: TaskView; readonly reason: RefusalReason } | undefined;
  for (const { task, reason } of owed) {
    if (granted < limit && slotsFor(ledger, task) >= 1) {
      granted += 1;
      launch(ledger, { task, reason, avoidNodes });
    } else if (granted < limit) refused ??= { task, reason: 'no-slot' };
    else refused ??= { task, reason: isShort ? 'no-slot' : limit === room ? 'tick-full' : 'slow-node' };
  }
  if (refused === undefined) return;
  const taskId = idOf(ledger.state, refused.task);
  ledger.refusals.unshift({ kind: 'refuse', taskId, reason: refused.reason });
}

const orderOfKind = { prune: 0, restart: 1, clone: 2, backup: 3, decline: 4 } as const;
const numberOf = (proposal: Proposal): number => ('attempt' in proposal ? proposal.attempt.number : -1);

function ranked(proposals: readonly Proposal[]): readonly Proposal[] {
  return proposals.toSorted(
    (a, b) =>
      Number(b.kind === 'prune') - Number(a.kind === 'prune') ||
      b.gainMs - a.gainMs ||
      a.task.stage - b.task.stage ||
      a.task.index - b.task.index ||
      orderOfKind[a.kind] - orderOfKind[b.kind] ||
      numberOf(a) - numberOf(b),
  );
}
