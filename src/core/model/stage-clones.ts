import type { JobId } from '../../contracts/ids.ts';
import type { CloneRefusal } from '../capacity/clone-admission.ts';
import type { Facts } from './decision.ts';
import {
  type AttemptView,
  isLive,
  isUnclaimed,
  type StageClones,
  type StageView,
  type TaskView,
} from './job-view.ts';

/**
 * Why a policy does not even ask for clones of a small phase: how often copies straggle has not been measured, or the job
 * meets its deadline without.
 */
export type CloneDecline = 'unmeasured' | 'deadline-slack';

/** What became of clones that were wished for. */
export interface CloneAnswer {
  readonly stage: number;
  /** How the stage is cloned; undefined where it is not. */
  readonly clones: StageClones | undefined;
  /** Why it is not. */
  readonly reason: CloneRefusal | CloneDecline | 'budget' | undefined;
  /** p, n, c, and C, U and B_U as the ledger had them. */
  readonly facts: Facts;
}

/** Clones of a stage that were taken away for a smaller job's. */
export interface ClonesTaken {
  readonly stage: number;
  readonly by: JobId;
  /** Tasks of either job, and the slots that the clones were charged. */
  readonly facts: Facts;
}

/** Whether a stage is about to launch its first task, and was not decided on: clones are from the start or not at all. */
export const isAboutToStart = ({ state, clones, unstarted, tasks }: StageView): boolean =>
  state === 'open' && clones === undefined && unstarted === tasks.length;

/** What a phase is charged: all copies, the originals included, or the additional ones alone. */
export type CloneCharge = 'all-copies' | 'extra-copies';

/** The cloned tasks of a stage, in the order of launches; none of one that is not cloned. */
export function clonedTasks(
  stage: StageView,
  clones: StageClones | undefined = stage.clones,
): readonly TaskView[] {
  if (clones === undefined) return [];
  return stage.order.slice(0, clones.tasks).flatMap((index) => stage.tasks[index] ?? []);
}

/**
 * Copies that a cloned task has been given: its attempts, but for those beside its clones that came to nothing before a worker
 * took them up, as where it declines, since others are launched in their place. Clones count in any case: those are
 * never made up for, so that declines can not make clones without end.
 */
export const copiesGiven = ({ attempts }: Pick<TaskView, 'attempts'>): number =>
  attempts.reduce((count, each) => count + Number(each.reason === 'clone' || !isUnclaimed(each)), 0);

/**
 * Copies that a cloned task has not been given yet. A copy that failed or was lost is not made up for while others
 * run: it was one of those that were to be made. None once the stage's clones were taken away.
 */
export const owedCopies = (task: TaskView, { copies, preempted }: StageClones): number =>
  task.result === undefined && preempted === undefined ? Math.max(0, copies - copiesGiven(task)) : 0;

/** Slots that clones will take which are not launched yet: what the job needs beyond one for each waiting task. */
export function owedClones(stages: readonly StageView[]): number {
  let owed = 0;
  for (const stage of stages) {
    const { clones } = stage;
    if (clones === undefined || clones.preempted === true || stage.state !== 'open') continue;
    for (const task of clonedTasks(stage)) {
      const isWaiting = task.result === undefined && copiesGiven(task) === 0;
      owed += owedCopies(task, clones) - (isWaiting ? 1 : 0);
    }
  }
  return owed;
}

/** Copies that answers add to one for each task. */
export const addedCopies = (answers: readonly CloneAnswer[]): number =>
  answers.reduce(
    (sum, { clones }) => sum + (clones === undefined ? 0 : (clones.copies - 1) * clones.tasks),
    0,
  );

const liveCopies = ({ attempts }: TaskView): number =>
  attempts.filter((each: AttemptView) => isLive(each)).length;

/**
 * Slots of the cloning budget that a stage needs yet: its copies that run, and those still to be launched. Falls to
 * 0 as its clones end; 0 for a stage without clones, or one whose clones were taken away.
 */
export function chargeLeft(stage: StageView, charge: CloneCharge): number {
  const { clones } = stage;
  if (clones === undefined || clones.preempted === true) return 0;
  const unpaid = charge === 'all-copies' ? 0 : 1;
  return clonedTasks(stage).reduce(
    (sum, task) => sum + Math.max(0, liveCopies(task) + owedCopies(task, clones) - unpaid),
    0,
  );
}
