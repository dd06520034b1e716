import { probabilityBelow } from '../../estimate/new-copy.ts';
import type { RefusalReason } from '../../model/decision.ts';
import { finiteMs } from '../merit.ts';
import type { PolicyView, Proposal, RunningTask } from '../policy-set.ts';
import { zoneFacts } from './choose-zone.ts';
import { type Appraisal, isContended, type StageAppraisal } from './appraise.ts';

/** What kept a slow task from another attempt, of what the rules ask in their order. `gainMs`: by how much sooner that would end. */
export function whyDeclined(
  { running, sinceCopyMs }: Pick<Appraisal, 'running' | 'sinceCopyMs'>,
  { deltaMs, gainMs }: { readonly deltaMs: number; readonly gainMs: number },
  view: PolicyView,
): RefusalReason {
  if (sinceCopyMs < deltaMs) return 'recent-copy';
  const isSpent = restartsOf(running) >= view.config.mantri.restartsPerTask;
  return isContended(view.slots) && gainMs > deltaMs && isSpent ? 'restart-limit' : 'not-worth-it';
}

/** How often a task was killed and begun anew. */
export const restartsOf = ({ task }: RunningTask): number =>
  task.attempts.filter(({ reason }) => reason === 'restart').length;

/**
 * Why a task is left alone of which a new attempt would be expected to end sooner than those that run, with the numbers
 * by which it was judged; undefined for all others, and where nothing can be said. For the log alone.
 */
export function decline(task: Appraisal, stage: StageAppraisal, view: PolicyView): Proposal | undefined {
  const { remMs, newMs, running, copies, chosen } = task;
  if (remMs === undefined || newMs === undefined || remMs <= newMs) return undefined;
  const count = copies.length;
  return {
    kind: 'decline',
    task: running.task,
    reason: whyDeclined(task, { deltaMs: stage.deltaMs, gainMs: remMs - newMs }, view),
    // After all that is proposed in earnest: of refusals a tick logs so many and no more.
    gainMs: 0,
    facts: {
      remMs: finiteMs(remMs),
      newMs: finiteMs(newMs),
      deltaMs: finiteMs(stage.deltaMs),
      sinceCopyMs: task.sinceCopyMs,
      restarts: restartsOf(running),
      copies: count,
      ...(isContended(view.slots)
        ? {
            probability: probabilityBelow(
              task.samples,
              task.newBytes,
              (remMs * count) / (count + 1),
              chosen?.factor,
            ),
          }
        : {}),
      ...zoneFacts(chosen),
    },
  };
}
