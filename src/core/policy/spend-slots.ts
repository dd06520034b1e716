import { type AttemptId, attemptIdOf, type TaskId, taskIdOf } from '../../contracts/ids.ts';
import type { Facts, LaunchReason, RefusalReason } from '../model/decision.ts';
import { stageAt } from '../model/job-state.ts';
import type { JobState, TaskView } from '../model/job-view.ts';
import { meetsRefusal, takesRoom } from '../model/tick-config.ts';
import type { Account, Terms } from './account.ts';
import { charge } from './budget.ts';
import { namedNodes } from './elsewhere.ts';
import type { PolicyView } from './policy-set.ts';
import { runningBackups } from './running-tasks.ts';

/** Proposals refused that one tick logs. */
export const refusalLimit = 20;

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

export const roomLeft = ({ terms, decisions }: Account): number => terms.room - decisions.length;

export const needsRoom = ({ terms }: Account, task: TaskView): boolean => takesRoom(terms.launchRoom, task);

/** Slots that an attempt of a task may take: those that are free, and that have room behind them. */
export function slotsFor(account: Account, task: TaskView): number {
  const { free, launchRoom, refusedRoom, terms } = account;
  if (needsRoom(account, task)) return Math.min(free, launchRoom);
  return meetsRefusal(terms.launchRoom, task) ? Math.min(free, refusedRoom) : free;
}

export const idOf = (state: JobState, task: TaskView): TaskId =>
  taskIdOf(stageAt(state, task.stage).shape.name, task.index);

export function refuse(
  account: Account,
  task: TaskView,
  reason: RefusalReason,
  facts: Facts,
  zone?: string,
): void {
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
export function takeSlot(account: Account, task: TaskView): void {
  account.launches += 1;
  account.free -= 1;
  if (needsRoom(account, task)) account.launchRoom -= 1;
  else if (meetsRefusal(account.terms.launchRoom, task)) account.refusedRoom -= 1;
}

export function launch(
  account: Account,
  { task, reason, avoidNodes, zone, facts, behind }: Launch,
): AttemptId {
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
