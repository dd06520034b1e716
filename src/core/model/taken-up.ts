import type { SavedOf } from '../../contracts/saved-work.ts';
import type { AttemptView, TaskView } from './job-view.ts';

/**
 * The attempt whose work another of its task is to take up: of what earlier ones have handed on since its output was lost last, that with
 * most of the input done, and of equal ones the last; but nothing that one which handed on its own could not take up, or
 * each would try that first and come no farther. Undefined where none has, and where one that went on with it has failed by
 * the job's own code: that may not bear to be gone on with, whatever it says of itself.
 */
function savedBefore({ attempts, since }: TaskView, attempt: number): AttemptView | undefined {
  const earlier = attempts.filter(({ number }) => number >= since && number < attempt);
  const lost = new Set(earlier.map(({ saved }) => saved?.insteadOf));
  let best: AttemptView | undefined;
  for (const each of earlier) {
    if (hasTakenUp(each) && each.failure?.cause === 'user-code') return undefined;
    if (each.saved === undefined || lost.has(each.number)) continue;
    if (best?.saved === undefined || each.saved.bytesDone >= best.saved.bytesDone) best = each;
  }
  return best;
}

/** What an attempt of a task is to take up, as its launch names it; undefined where there is nothing. */
export function savedFor(task: TaskView, attempt: number): SavedOf | undefined {
  const from = savedBefore(task, attempt);
  if (from?.saved === undefined) return undefined;
  const { dataBytes, noteBytes, noteCrc } = from.saved;
  return { attempt: from.number, dataBytes, noteBytes, noteCrc };
}

/** Its end takes its time where all of a task is read. */
const leastShare = 0.01;

/** The share of its task that an attempt has to do which takes up what is there for it: 1 where there is nothing. */
export function shareLeftFor(task: TaskView, attempt: number): number {
  // Nearly every task, at each tick.
  if (task.attempts.every(({ saved }) => saved === undefined)) return 1;
  const { bytesDone = 0, bytesTotal = 0 } = savedBefore(task, attempt)?.saved ?? {};
  return bytesTotal <= 0 ? 1 : Math.max(leastShare, 1 - bytesDone / bytesTotal);
}

/** Whether an attempt does only the rest of its task: what it takes is not what the task takes. */
export const hasTakenUp = ({ progress }: Pick<AttemptView, 'progress'>): boolean =>
  progress?.takenUp !== undefined;

/**
 * The share of its task that an attempt does, by bytes of input: 1 for one that began at the begin. One that has read
 * nothing yet is about to take up what was there for it.
 */
export function ownShareOf(task: TaskView, { number, progress }: AttemptView): number {
  const { takenUp, bytesRead = 0, bytesTotal = 0 } = progress ?? {};
  if (takenUp === undefined) return bytesRead > 0 ? 1 : shareLeftFor(task, number);
  return takenUp.bytes <= 0 ? 1 : bytesTotal / (takenUp.bytes + bytesTotal);
}

/** The attempts whose work is in what one has done, itself first: each has taken up that of the one behind it. */
export function worksOf({ attempts }: TaskView, attempt: AttemptView): readonly AttemptView[] {
  const works = [attempt];
  for (let last = attempt; last.progress?.takenUp !== undefined;) {
    const earlier = attempts[last.progress.takenUp.attempt];
    if (earlier === undefined || earlier.number >= last.number) break;
    works.push(earlier);
    last = earlier;
  }
  return works;
}
