import { probabilityBelow } from '../../estimate/new-copy.ts';
import type { RefusalReason } from '../../model/decision.ts';
import { finiteMs } from '../merit.ts';
import type { PolicyView, Proposal } from '../policy-set.ts';
import { zoneFacts } from './choose-zone.ts';
import { type Appraisal, isContended, type StageAppraisal } from './appraise.ts';

/** What kept a slow task from another attempt, of what the rules ask in their order. */
function reasonOf(task: Appraisal, deltaMs: number, gainMs: number, view: PolicyView): RefusalReason {
  if (task.sinceCopyMs < deltaMs) return 'recent-copy';
  const restarts = restartsOf(task);
  return isContended(view.slots) && gainMs > deltaMs && restarts >= view.config.mantri.restartsPerTask
    ? 'restart-limit'
    : 'not-worth-it';
}

const restartsOf = ({ running }: Appraisal): number =>
  running.task.attempts.filter(({ reason }) => reason === 'restart').length;

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
    reason: reasonOf(task, stage.deltaMs, remMs - newMs, view),
    // After all that is proposed in earnest: of refusals a tick logs so many and no more.
    gainMs: 0,
    facts: {
      remMs: finiteMs(remMs),
      newMs: finiteMs(newMs),
      deltaMs: finiteMs(stage.deltaMs),
      sinceCopyMs: task.sinceCopyMs,
      restarts: restartsOf(task),
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
