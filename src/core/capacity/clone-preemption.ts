import type { JobId } from '../../contracts/ids.ts';
import { ownValue } from '../../lib/own.ts';
import {
  admitUnits,
  type CloneAdmission,
  type CloneCapacity,
  type CloneRequest,
  type CloneTerms,
  type CloneVictim,
} from './clone-admission.ts';
import { type CloneHolding, loseClones } from './clone-holding.ts';

/** Most phases that lose their clones for one: it bounds the write that takes them. */
const victimLimit = 10;

/** A job's grant, as far as preemption looks at it. */
export interface CloneHolder extends CloneHolding {
  readonly slots: number;
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** Cloned phases of jobs with more tasks than `jobTasks`: the largest job first, and in it the largest charge. */
function victimsAmong(
  holders: Iterable<readonly [string, CloneHolder]>,
  jobTasks: number,
): readonly CloneVictim[] {
  const found: CloneVictim[] = [];
  for (const [id, { slots: held, clones = {}, jobTasks: tasks, addedSlots = {} }] of holders) {
    if (tasks === undefined || tasks <= jobTasks) continue;
    for (const [phase, slots] of Object.entries(clones)) {
      const freedSlots = Math.min(held, ownValue(addedSlots, phase) ?? 0);
      found.push({ jobId: id as JobId, phase, slots, jobTasks: tasks, freedSlots });
    }
  }
  return found.sort(
    (a, b) =>
      b.jobTasks - a.jobTasks || b.slots - a.slots || compare(a.jobId, b.jobId) || compare(a.phase, b.phase),
  );
}

/** Leaves out those without whom the others suffice, from the smallest job up. */
function needed(
  taken: readonly CloneVictim[],
  suffice: (victims: readonly CloneVictim[]) => boolean,
): readonly CloneVictim[] {
  return taken.reduceRight((kept, candidate) => {
    const others = kept.filter((each) => each !== candidate);
    return suffice(others) ? others : kept;
  }, taken);
}

/**
 * Admits clones as `admitUnits` does; where that refuses a request with a size, clones of larger jobs make room:
 * the largest job's first, no more phases than are needed, none of a job of the same size or smaller, and none at
 * all where even all of them (at most ten phases) would not do.
 *
 * B_U is judged without the victims' charge. U is judged without their copies beside one of each task, which stop
 * with their schedulers' next ticks. Until then these slots are in use, and stay in the victims' grants: so U with
 * them must leave room in the cluster (C) for the slots granted here. Nothing is granted twice.
 *
 * Source: Dolly §3.3 and §5.5 name preemption of larger jobs' clones for small jobs and leave the rest open.
 */
export function admitWithPreemption(
  capacity: CloneCapacity,
  terms: CloneTerms & { readonly totalSlots: number },
  request: CloneRequest,
  holders: Iterable<readonly [string, CloneHolder]>,
): CloneAdmission {
  const plain = admitUnits(capacity, terms, request);
  if (plain.units > 0 || request.jobTasks === undefined) return plain;
  const admit = (victims: readonly CloneVictim[]): number => {
    const relieved = {
      usedSlots: capacity.usedSlots - victims.reduce((sum, { freedSlots }) => sum + freedSlots, 0),
      cloneSlots: capacity.cloneSlots - victims.reduce((sum, { slots }) => sum + slots, 0),
    };
    const { units } = admitUnits(relieved, terms, request);
    const slots = capacity.usedSlots + request.besideSlots + units * request.unitSlots;
    return slots <= terms.totalSlots ? units : 0;
  };
  const suffice = (victims: readonly CloneVictim[]): boolean => admit(victims) > 0;
  const candidates = victimsAmong(holders, request.jobTasks).slice(0, victimLimit);
  for (let count = 1; count <= candidates.length; count++) {
    const taken = candidates.slice(0, count);
    if (!suffice(taken)) continue;
    const victims = needed(taken, suffice);
    return { ...capacity, units: admit(victims), victims };
  }
  return plain;
}

/** The grants of victims without their clones, by job, each marked with who took them. */
export function takenFrom<T extends CloneHolding>(
  victims: readonly CloneVictim[],
  by: { readonly jobId: JobId; readonly jobTasks: number },
  grantOf: (jobId: JobId) => T | undefined,
): ReadonlyMap<JobId, { readonly before: T; readonly after: CloneHolding }> {
  const taken = new Map<JobId, { readonly before: T; readonly after: CloneHolding }>();
  for (const { jobId, phase, slots } of victims) {
    const before = taken.get(jobId)?.before ?? grantOf(jobId);
    if (before === undefined) continue;
    const preemption = { by: by.jobId, byTasks: by.jobTasks, slots };
    taken.set(jobId, { before, after: loseClones(taken.get(jobId)?.after ?? before, phase, preemption) });
  }
  return taken;
}
