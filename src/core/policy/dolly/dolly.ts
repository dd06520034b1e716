import { clonedTasks, owedCopies } from '../../model/stage-clones.ts';
import { awaitedCopies } from '../../model/upstream-copies.ts';
import { late } from '../late/late.ts';
import { mantri } from '../mantri/mantri.ts';
import type { PolicySet, PolicyView, Proposal, StageRuns } from '../policy-set.ts';
import { cloneWishes } from './clone-wishes.ts';
import { lateCopiesServe, readyCopies } from './copy-wait.ts';
import type { LaunchOrder, StageClones } from '../../model/job-view.ts';

/** Clones come before any backup, whatever that gains: their slots are admitted. */
const firstOfAll = Number.MAX_SAFE_INTEGER;
const launchOrder: LaunchOrder = 'largest-first';

function clonesOf(place: number, clones: StageClones, { state, now }: PolicyView): readonly Proposal[] {
  const stage = state.stages[place];
  if (stage?.state !== 'open') return [];
  const wait = { stage, clones, now, awaited: awaitedCopies(state) };
  return clonedTasks(stage, clones).flatMap((task): readonly Proposal[] => {
    if (owedCopies(task, clones) === 0) return [];
    const proposal = { task, gainMs: firstOfAll };
    const facts = { copies: clones.copies };
    const copies = readyCopies(task, wait);
    if (copies > Math.max(1, task.attempts.length)) return [{ kind: 'clone', copies, facts, ...proposal }];
    const waiting = { ...facts, waitMs: clones.waitMs ?? 0 };
    return [{ kind: 'decline', reason: 'awaiting-copy', facts: waiting, ...proposal }];
  });
}

/** What treats phases that are not cloned; undefined where nothing does. */
function otherPolicy({ config }: PolicyView): PolicySet | undefined {
  switch (config.dolly.otherwise) {
    case 'none':
      return undefined;
    case 'late':
      return late;
    case 'mantri':
      return mantri;
  }
}

/**
 * Dolly: every task of a small phase has clones from the start, as many as keep the risk of a straggler within ε,
 * if the budget and the use of the cluster admit them all. The first to finish wins and the others are cancelled;
 * nobody waits to see who straggles. Phases that are not cloned, or no more, are treated as the config says.
 *
 * Source: Dolly §3.3, Pseudocode 1; §5 runs it beside LATE or Mantri.
 */
export const dolly: PolicySet = {
  name: 'dolly',
  launchOrder,
  copyCap: (view) => otherPolicy(view)?.copyCap?.(view) ?? Infinity,
  isCapOfCluster: ({ dolly }) => dolly.otherwise === 'late',
  wishes: cloneWishes,
  keepsLateCopies: lateCopiesServe,
  propose(view) {
    const cloned = view.cloned ?? new Map<number, StageClones>();
    const clones = [...cloned]
      .sort(([a], [b]) => a - b)
      .flatMap(([place, each]) => clonesOf(place, each, view));
    const isLeft = ({ stage: { index, clones } }: StageRuns): boolean =>
      !cloned.has(index) || clones?.preempted === true;
    const uncloned = { ...view, runs: view.runs.filter(isLeft) };
    return [...clones, ...(otherPolicy(view)?.propose(uncloned) ?? [])];
  },
};
