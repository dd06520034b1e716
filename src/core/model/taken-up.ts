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

/** How much of its task an attempt does. */
export interface PartOfTask {
  /** By bytes of input: 1 of one that begins at the begin. */
  readonly share: number;
  /** What it takes before it reads anything: what was done before is read and written once more. */
  readonly takeUpMs: number;
}

const allOfIt: PartOfTask = { share: 1, takeUpMs: 0 };

/** Whether an attempt does only the rest of its task: what it takes is not what the task takes. */
export const hasTakenUp = ({ progress }: Pick<AttemptView, 'progress'>): boolean =>
  progress?.takenUp !== undefined;

/** What an attempt does of its task. Until it has taken anything up, it may have to begin at the begin. */
export function partOf(attempt: AttemptView): PartOfTask {
  const { takenUp, bytesTotal = 0 } = attempt.progress ?? {};
  if (takenUp === undefined || takenUp.bytes <= 0) return allOfIt;
  return { share: bytesTotal / (takenUp.bytes + bytesTotal), takeUpMs: takenUp.ms ?? 0 };
}

/**
 * What another attempt of a task would do of it: the rest, where there is work to take up and one has shown that it can be; else
 * all of it.
 */
export function partForNew(task: TaskView): PartOfTask {
  // Nearly every task, at each tick.
  if (task.attempts.every(({ saved }) => saved === undefined)) return allOfIt;
  const from = savedBefore(task, task.attempts.length);
  const { bytesDone = 0, bytesTotal = 0 } = from?.saved ?? {};
  const shown = task.attempts.findLast(({ progress }) => progress?.takenUp?.attempt === from?.number);
  if (from === undefined || shown === undefined || bytesTotal <= 0) return allOfIt;
  return { share: 1 - bytesDone / bytesTotal, takeUpMs: shown.progress?.takenUp?.ms ?? 0 };
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
