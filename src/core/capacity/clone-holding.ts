import type { JobId } from '../../contracts/ids.ts';
import { ownValue } from '../../lib/own.ts';
import type { CloneRequest } from './clone-admission.ts';

/** That clones of a phase were taken away: for which job, of how many tasks, and the slots they were charged. */
export interface Preemption {
  readonly by: JobId;
  readonly byTasks: number;
  readonly slots: number;
}

/** What the capacity ledger has on record of a job's clones. Parts that are empty are absent. */
export interface CloneHolding {
  /** Slots charged to the cloning budget, by phase. */
  readonly clones?: Readonly<Record<string, number>> | undefined;
  /** Tasks of the whole job, where its clones make room for those of smaller jobs. */
  readonly jobTasks?: number | undefined;
  /** Of its slots, by phase, those of copies beside one of each task; only where `jobTasks` is there. */
  readonly addedSlots?: Readonly<Record<string, number>> | undefined;
  /** Phases whose clones were taken away, until their scheduler has told them to stop. */
  readonly preempted?: Readonly<Record<string, Preemption>> | undefined;
}

type ByPhase<T> = Readonly<Record<string, T>>;

/** Slots charged for all phases of a job together. */
export const chargedSlots = ({ clones = {} }: CloneHolding): number =>
  Object.values(clones).reduce((sum, slots) => sum + slots, 0);

/** Slots charged for one phase. */
export const chargedFor = ({ clones }: CloneHolding, phase: string): number => ownValue(clones, phase) ?? 0;

/** Without one phase. */
const without = <T>(phases: ByPhase<T> = {}, phase: string): ByPhase<T> =>
  Object.fromEntries(Object.entries(phases).filter(([name]) => name !== phase));

const isEmpty = (phases: ByPhase<unknown>): boolean => Object.keys(phases).length === 0;

/** Leaves out what is empty, and the size of a job without clones. */
function tidy({ clones = {}, jobTasks, addedSlots = {}, preempted = {} }: CloneHolding): CloneHolding {
  return {
    ...(isEmpty(clones) ? {} : { clones }),
    ...(isEmpty(clones) || jobTasks === undefined ? {} : { jobTasks, addedSlots }),
    ...(isEmpty(preempted) ? {} : { preempted }),
  };
}

/** What is held of clones alone, out of a record that holds more. */
export const cloneHolding = ({ clones, jobTasks, addedSlots, preempted }: CloneHolding): CloneHolding =>
  tidy({ clones, jobTasks, addedSlots, preempted });

/** Whether a job is charged for clones, or does not know yet that they were taken away. */
export const hasClones = ({ clones = {}, preempted = {} }: CloneHolding): boolean =>
  !isEmpty(clones) || !isEmpty(preempted);

/** With a phase that was admitted. It forgets that the phase's clones were ever taken away. */
export function holdClones(holding: CloneHolding, request: CloneRequest, units: number): CloneHolding {
  const { phase, unitSlots, addedUnitSlots = unitSlots, jobTasks } = request;
  return tidy({
    clones: { ...holding.clones, [phase]: units * unitSlots },
    jobTasks,
    addedSlots: { ...holding.addedSlots, [phase]: units * addedUnitSlots },
    preempted: without(holding.preempted, phase),
  });
}

/**
 * With no more than `keepSlots` for a phase, of which `addedSlots` are beside one copy of each task. Never more than
 * before; the very same holding where nothing changes. 0 also ends the mark of a phase whose clones were taken away.
 */
export function keepClones(
  holding: CloneHolding,
  phase: string,
  { keepSlots, addedSlots = keepSlots }: { readonly keepSlots: number; readonly addedSlots?: number },
): CloneHolding {
  const charged = chargedFor(holding, phase);
  const kept = Math.min(charged, Math.max(0, keepSlots));
  const isMarked = ownValue(holding.preempted, phase) !== undefined;
  if (kept === charged && !(keepSlots <= 0 && isMarked)) return holding;
  if (kept === 0) {
    return tidy({
      clones: without(holding.clones, phase),
      jobTasks: holding.jobTasks,
      addedSlots: without(holding.addedSlots, phase),
      preempted: without(holding.preempted, phase),
    });
  }
  const added = Math.min(ownValue(holding.addedSlots, phase) ?? 0, Math.max(0, addedSlots), kept);
  return tidy({
    ...holding,
    clones: { ...holding.clones, [phase]: kept },
    addedSlots: { ...holding.addedSlots, [phase]: added },
  });
}

/** With the clones of a phase taken away: charged nothing, and marked so that their scheduler learns of it. */
export const loseClones = (holding: CloneHolding, phase: string, preemption: Preemption): CloneHolding =>
  tidy({
    clones: without(holding.clones, phase),
    jobTasks: holding.jobTasks,
    addedSlots: without(holding.addedSlots, phase),
    preempted: { ...holding.preempted, [phase]: preemption },
  });
