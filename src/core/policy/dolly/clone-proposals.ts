import { clonedTasks, copiesGiven, owedCopies } from '../../model/stage-clones.ts';
import type { Facts } from '../../model/decision.ts';
import { awaitedCopies } from '../../model/upstream-copies.ts';
import type { StageClones } from '../../model/job-view.ts';
import type { PolicyView, Proposal } from '../policy-set.ts';
import { readyCopies } from './copy-wait.ts';

/** Clones come before any backup, whatever that gains: their slots are admitted. */
const firstOfAll = Number.MAX_SAFE_INTEGER;

function clonesOf(place: number, clones: StageClones, { state, now }: PolicyView): readonly Proposal[] {
  const stage = state.stages[place];
  if (stage?.state !== 'open') return [];
  const wait = { stage, clones, now, awaited: awaitedCopies(state) };
  return clonedTasks(stage, clones).flatMap((task): readonly Proposal[] => {
    if (owedCopies(task, clones) === 0) return [];
    const proposal = { task, gainMs: firstOfAll };
    const facts: Facts = { copies: clones.copies };
    const copies = readyCopies(task, wait);
    if (copies > Math.max(1, copiesGiven(task))) return [{ kind: 'clone', copies, facts, ...proposal }];
    const waiting: Facts = { ...facts, waitMs: clones.waitMs ?? 0 };
    return [{ kind: 'decline', reason: 'awaiting-copy', facts: waiting, ...proposal }];
  });
}

/** Clones that admitted phases are still owed, in the order of the phases; a refusal of each that waits for a copy to read. */
export const cloneProposals = (view: PolicyView): readonly Proposal[] =>
  [...(view.cloned ?? [])]
    .sort(([a], [b]) => a - b)
    .flatMap(([place, clones]) => clonesOf(place, clones, view));
