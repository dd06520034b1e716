import { medianNewCopyMs, probabilityBelow } from '../../estimate/new-copy.ts';
import { finiteMs } from '../merit.ts';
import type { SlowNodes } from '../node-slowdown.ts';
import type { PolicyView, Proposal } from '../policy-set.ts';
import { zoneFacts } from './choose-zone.ts';
import { isCopiedInVain } from './restart.ts';
import { type Appraisal, isContended, isQueueLong, type StageAppraisal } from './appraise.ts';

/**
 * Duplicates a task. While tasks wait: where that likely saves slot time, P(t_rem > t_new (c + 1) / c) > δ with c
 * copies running. With slots to spare: where it saves more than a start costs, E(t_rem − t_new) > ρ Δ. Never soon
 * after another copy. Undefined where the task is not worth it.
 *
 * Source: Mantri §5.1, Pseudocode 1; the sign of its last line is a misprint. "Recently" is within Δ. Ours: it goes before
 * tasks that wait only while a whole wave of them does, and a task of which two pruned copies were no faster gets no
 * other.
 */
export function duplicate(
  task: Appraisal,
  stage: StageAppraisal,
  view: PolicyView,
  slow: SlowNodes,
): Proposal | undefined {
  const { remMs, newMs, newBytes, samples, running, chosen } = task;
  if (remMs === undefined || newMs === undefined || task.sinceCopyMs < stage.deltaMs) return undefined;
  if (isCopiedInVain(running)) return undefined;
  const { duplicateProbability, gainFactor } = view.config.mantri;
  const count = running.copies.length;
  const probability = probabilityBelow(samples, newBytes, (remMs * count) / (count + 1), chosen?.factor);
  const tasksWait = isContended(view.slots);
  const isWorth = tasksWait ? probability > duplicateProbability : remMs - newMs > gainFactor * stage.deltaMs;
  if (!isWorth) return undefined;
  return {
    kind: 'backup',
    task: running.task,
    gainMs: finiteMs(remMs - newMs),
    urgent: isQueueLong(view.slots),
    ...(tasksWait ? { lossMs: medianNewCopyMs(samples, newBytes, chosen?.factor) ?? newMs } : {}),
    avoidNodes: slow(),
    zone: chosen?.zone,
    facts: {
      remMs: finiteMs(remMs),
      newMs: finiteMs(newMs),
      deltaMs: finiteMs(stage.deltaMs),
      probability,
      copies: count,
      ...zoneFacts(chosen),
    },
  };
}
