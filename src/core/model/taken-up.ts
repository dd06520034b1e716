import type { SavedOf } from '../../contracts/saved-work.ts';
import type { AttemptView, TaskView } from './job-view.ts';

/**
 * What an attempt of a task is to take up: of what earlier ones have handed on since its output was lost last, that with
 * most of the input done, and of equal ones the last; but nothing that one which handed on its own could not take up, or
 * each would try that first and come no farther. Undefined where none has, and where one that went on with it has failed by
 * the job's own code: that may not bear to be gone on with, whatever it says of itself.
 */
export function savedFor({ attempts, since }: TaskView, attempt: number): SavedOf | undefined {
  const earlier = attempts.filter(({ number }) => number >= since && number < attempt);
  const lost = new Set(earlier.map(({ saved }) => saved?.insteadOf));
  let best: AttemptView | undefined;
  for (const each of earlier) {
    if (hasTakenUp(each) && each.failure?.cause === 'user-code') return undefined;
    if (each.saved === undefined || lost.has(each.number)) continue;
    if (best?.saved === undefined || each.saved.bytesDone >= best.saved.bytesDone) best = each;
  }
  if (best?.saved === undefined) return undefined;
  const { dataBytes, noteBytes, noteCrc } = best.saved;
  return { attempt: best.number, dataBytes, noteBytes, noteCrc };
}

/** Whether an attempt does only the rest of its task: what it takes is not what the task takes. */
export const hasTakenUp = ({ progress }: Pick<AttemptView, 'progress'>): boolean =>
  progress?.takenUp !== undefined;

/** The share of its task that an attempt does, by bytes of input: 1 for one that began at the begin. */
export function ownShareOf({ progress }: Pick<AttemptView, 'progress'>): number {
  const { takenUp, bytesTotal = 0 } = progress ?? {};
  if (takenUp === undefined || takenUp.bytes <= 0) return 1;
  return bytesTotal / (takenUp.bytes + bytesTotal);
}
