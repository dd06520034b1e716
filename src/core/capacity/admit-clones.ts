import type { JobId } from '../../contracts/ids.ts';
import { ownValue } from '../../lib/own.ts';
import type { CloneAdmission, CloneRequest, CloneTerms } from './clone-admission.ts';
import { chargedFor, type CloneHolding, holdClones, keepClones } from './clone-holding.ts';
import { admitWithPreemption, takenFrom } from './clone-preemption.ts';
import { reserved } from './guarantees.ts';
import { cloned, type Holding, type Ledger, type Move, occupied, occupiedBy, withClones } from './ledger.ts';

/** For whom clones are asked, and under which terms. */
export interface CloneAsking extends CloneTerms {
  readonly jobId: JobId;
  /** Which of the job's schedulers asks: one that was replaced gets nothing. */
  readonly epoch: number;
  readonly totalSlots: number;
}

/**
 * Admits clones of a phase by `admitWithPreemption`, and makes the job's grant as large as they and the rest of the
 * job need, in one move. A phase that has been admitted and holds clones yet gets the same answer again (without
 * victims) and nothing more. Refused, it changes nothing; so does a scheduler that was replaced, for which there is no
 * room whatever there is. Undefined: the ledger has no such job.
 */
export function admitClones(
  ledger: Ledger,
  asking: CloneAsking,
  request: CloneRequest,
): Move<CloneAdmission | undefined> {
  const { jobId, epoch, totalSlots } = asking;
  const { holdings } = ledger;
  const none = { changes: new Map(), totalSlots };
  const own = holdings.get(jobId);
  if (own === undefined) return { ...none, answer: undefined };
  const charged = chargedFor(own, request.phase);
  const reservedSlots = reserved(holdings.values()) - reserved([own]);
  const before = {
    usedSlots: occupied(holdings.values()) - occupiedBy(own),
    cloneSlots: cloned(holdings.values()) - charged,
    ...(reservedSlots === 0 ? {} : { reservedSlots }),
  };
  if (own.epoch > epoch) return { ...none, answer: { ...before, units: 0, reason: 'clone-budget' } };
  // Admitted before: by a scheduler that died before it could say so, or in an answer that was lost.
  if (charged > 0) return { ...none, answer: { ...before, units: Math.floor(charged / request.unitSlots) } };
  const answer = admitWithPreemption(before, asking, request, holdings);
  if (answer.units === 0) return { ...none, answer };
  const slots = request.besideSlots + answer.units * request.unitSlots;
  const holding = { ...own, wanted: slots, slots, held: slots };
  const by = { jobId, jobTasks: request.jobTasks ?? 0 };
  const taken = takenFrom(answer.victims ?? [], by, (id) => holdings.get(id));
  const changes = new Map<JobId, Holding>();
  for (const [id, { before: victim, after }] of taken) changes.set(id, withClones(victim, after));
  changes.set(jobId, withClones(holding, holdClones(own, request, answer.units)));
  return { answer, totalSlots, changes };
}

/**
 * Lowers what a phase is charged to `keepSlots` as its clones end, of which `addedSlots` (absent: all) are for copies
 * beside one of each task; 0 ends it, and the mark of clones that were taken away. Never raises it, so that a repeated
 * or a late call has no effect, nor has one of a scheduler that was replaced. The job's slots stay.
 */
export function releaseClones(
  ledger: Ledger,
  { jobId, epoch }: Pick<CloneAsking, 'jobId' | 'epoch'>,
  phase: string,
  kept: { readonly keepSlots: number; readonly addedSlots?: number },
): Move<undefined> {
  const { totalSlots } = ledger;
  const own = ledger.holdings.get(jobId);
  const left = own === undefined || own.epoch > epoch ? undefined : keepClones(own, phase, kept);
  if (own === undefined || left === undefined || left === own)
    return { answer: undefined, totalSlots, changes: new Map() };
  return { answer: undefined, totalSlots, changes: new Map([[jobId, withClones(own, left)]]) };
}

/** Whether a job holds anything that `releaseClones` of the phase would change: spares the reading of all. */
export const holdsClones = (own: CloneHolding, phase: string): boolean =>
  chargedFor(own, phase) > 0 || ownValue(own.preempted, phase) !== undefined;
