import { median } from '../../../lib/quantiles.ts';
import { attemptParts } from '../../../contracts/ids.ts';
import type { AttemptRecord } from '../../../contracts/records.ts';
import { elapsedMs } from '../../../contracts/units.ts';
import { addTallies, noStragglers, type StragglerTally } from '../../model/straggler-tally.ts';
import type { AttemptView, JobState, StageView } from '../../model/job-view.ts';
import { leastOutrun } from '../../model/stage-statistics.ts';

/** A phase with fewer measured copies has no median worth the name. */
const leastCopies = 3;

/** A copy straggles that progresses below this share of its phase's median. Source: Dolly §2 and §3.2. */
const straggleShare = 0.5;

/** What is asked of a copy. */
type Copy = Pick<AttemptView, 'state' | 'claimedAt' | 'endedAt' | 'progress'>;

/** A copy that has ended by itself or by an order. */
interface EndedCopy {
  /** Place of its task in its phase. */
  readonly task: number;
  readonly isDone: boolean;
  /** How long it ran. */
  readonly ranMs: number;
  /** Input read per millisecond of that. */
  readonly rate: number;
}

/** A copy as it ended; nothing where it came to no end of its own, nor an order's, or nobody knows its input. */
function endedCopy(task: number, { state, claimedAt, endedAt, progress }: Copy): readonly EndedCopy[] {
  if ((state !== 'done' && state !== 'cancelled') || claimedAt === undefined || endedAt === undefined)
    return [];
  if (progress === undefined || progress.bytesTotal <= 0) return [];
  const ranMs = elapsedMs(claimedAt, endedAt);
  return [{ task, isDone: state === 'done', ranMs, rate: progress.bytesRead / Math.max(1, ranMs) }];
}

/**
 * The rates of a phase's copies, without those that were told to stop before they had run for a good part of what tasks of
 * the phase take, or of what their own took: a copy has read next to nothing at first, wherever it runs.
 */
function ratesOf(copies: readonly EndedCopy[]): readonly number[] {
  const wonMs = new Map<number, number>();
  for (const { task, isDone, ranMs } of copies)
    if (isDone) wonMs.set(task, Math.min(ranMs, wonMs.get(task) ?? Infinity));
  const usualMs = median([...wonMs.values()]);
  if (usualMs === undefined) return [];
  return copies
    .filter((each) => {
      const takesMs = Math.min(usualMs, wonMs.get(each.task) ?? Infinity);
      return each.isDone || each.ranMs >= leastOutrun * takesMs;
    })
    .map(({ rate }) => rate);
}

/**
 * Counts the copies of a set whose rate is below half of its median, strictly. Sets of fewer than three count for
 * nothing.
 */
export function tallyOf(rates: readonly number[]): StragglerTally {
  const middle = median(rates);
  if (middle === undefined || rates.length < leastCopies) return noStragglers;
  return { attempts: rates.length, stragglers: rates.filter((rate) => rate < straggleShare * middle).length };
}

/**
 * The copies of a phase that have ended, by success or because they were told to, and those among them that
 * straggled. Failed and lost copies, those that were stopped while they were young, and those of which no input is known,
 * are left out.
 *
 * Source: Dolly §3.2: "progresses at less than half the median task in the job"; progress rate is input over time. Which
 * copies are too young to tell is ours.
 */
export const stragglersOf = ({ tasks }: StageView): StragglerTally =>
  tallyOf(
    ratesOf(tasks.flatMap(({ index, attempts }) => attempts.flatMap((attempt) => endedCopy(index, attempt)))),
  );

/** The copies of all phases of a job so far. */
export const stragglersOfJob = ({ stages }: JobState): StragglerTally =>
  stages.map(stragglersOf).reduce(addTallies, noStragglers);

/** As `stragglersOfJob`, of a job's attempts as the store has them. */
export function stragglersOfAttempts(attempts: readonly AttemptRecord[]): StragglerTally {
  const byStage = new Map<string, EndedCopy[]>();
  for (const attempt of attempts) {
    const { stage, task } = attemptParts(attempt.attemptId);
    const ofStage = byStage.get(stage);
    const ended = endedCopy(task, attempt);
    if (ofStage === undefined) byStage.set(stage, [...ended]);
    else ofStage.push(...ended);
  }
  return [...byStage.values()].map((copies) => tallyOf(ratesOf(copies))).reduce(addTallies, noStragglers);
}

/** p: the share of stragglers, or the prior until `minAttempts` copies have been seen. */
export const stragglerProbability = (
  { attempts, stragglers }: StragglerTally,
  { prior, minAttempts }: { readonly prior: number; readonly minAttempts: number },
): number => (attempts < minAttempts || attempts === 0 ? prior : stragglers / attempts);
