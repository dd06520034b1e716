import type { JobId } from '../../contracts/ids.ts';
import { ownValue } from '../../lib/own.ts';
import {
  admitUnits,
  type CloneAdmission,
  type CloneCapacity,
  type CloneRequest,
  type CloneTerms,
  type CloneVictim,
  takenSlots,
} from './clone-admission.ts';
import { type CloneHolding, loseClones } from './clone-holding.ts';

/** Most phases that lose their clones for one: it bounds the write that takes them. */
const victimLimit = 10;

/** A job's grant, as far as preemption looks at it. */
export interface CloneHolder extends CloneHolding {
  readonly slots: number;
  /** Slots that are its own, which nobody gets that it has freed of them. Absent: none. */
  readonly guaranteed?: number | undefined;
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** A phase that may lose its clones, with what its whole job can give back. */
interface Candidate {
  readonly victim: CloneVictim;
  readonly spareSlots: number;
}

/** Cloned phases of jobs with more tasks than `jobTasks`: the largest job first, and in it the largest charge. */
function candidatesAmong(
  holders: Iterable<readonly [string, CloneHolder]>,
  jobTasks: number,
): readonly Candidate[] {
  const found: Candidate[] = [];
  for (const [id, holder] of holders) {
    const { slots: held, clones = {}, jobTasks: tasks, addedSlots = {}, guaranteed = 0 } = holder;
    if (tasks === undefined || tasks <= jobTasks) continue;
    const spareSlots = Math.max(0, held - guaranteed);
    for (const [phase, slots] of Object.entries(clones)) {
      const freedSlots = ownValue(addedSlots, phase) ?? 0;
      found.push({ victim: { jobId: id as JobId, phase, slots, jobTasks: tasks, freedSlots }, spareSlots });
    }
  }
  return found.sort(
    ({ victim: a }, { victim: b }) =>
      b.jobTasks - a.jobTasks || b.slots - a.slots || compare(a.jobId, b.jobId) || compare(a.phase, b.phase),
  );
}

/** The victims, of whom those of one job together give back no more than it can spare. */
function victimsOf(taken: readonly Candidate[]): readonly CloneVictim[] {
  const spare = new Map<JobId, number>();
  return taken.map(({ victim, spareSlots }) => {
    const left = spare.get(victim.jobId) ?? spareSlots;
    const freedSlots = Math.min(left, victim.freedSlots);
    spare.set(victim.jobId, left - freedSlots);
    return { ...victim, freedSlots };
  });
}

/** Leaves out those without whom the others suffice, from the smallest job up. */
function needed(
  taken: readonly Candidate[],
  suffice: (candidates: readonly Candidate[]) => boolean,
): readonly Candidate[] {
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
      ...capacity,
      usedSlots: capacity.usedSlots - victims.reduce((sum, { freedSlots }) => sum + freedSlots, 0),
      cloneSlots: capacity.cloneSlots - victims.reduce((sum, { slots }) => sum + slots, 0),
    };
    const { units } = admitUnits(relieved, terms, request);
    const slots = takenSlots(capacity) + request.besideSlots + units * request.unitSlots;
    return slots <= terms.totalSlots ? units : 0;
  };
  const suffice = (taken: readonly Candidate[]): boolean => admit(victimsOf(taken)) > 0;
  const candidates = candidatesAmong(holders, request.jobTasks).slice(0, victimLimit);
  for (let count = 1; count <= candidates.length; count++) {
    const taken = candidates.slice(0, count);
    if (!suffice(taken)) continue;
    const victims = victimsOf(needed(taken, suffice));
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
