import { median } from '../../../lib/quantiles.ts';
import { attemptParts } from '../../../contracts/ids.ts';
import type { AttemptRecord } from '../../../contracts/records.ts';
import { elapsedMs } from '../../../contracts/units.ts';
import { addTallies, noStragglers, type StragglerTally } from '../../model/straggler-tally.ts';
import type { AttemptView, JobState, StageView } from '../../model/job-view.ts';

/** A phase with fewer measured copies has no median worth the name. */
const leastCopies = 3;

/** A copy straggles that progresses below this share of its phase's median. Source: Dolly §2 and §3.2. */
const straggleShare = 0.5;

/** What is asked of a copy. */
type Copy = Pick<AttemptView, 'state' | 'claimedAt' | 'endedAt' | 'progress'>;

/** Input read per millisecond over the life of an ended copy; undefined where it did not run to an end of its own or an order. */
function rateOf({ state, claimedAt, endedAt, progress }: Copy): number | undefined {
  if ((state !== 'done' && state !== 'cancelled') || claimedAt === undefined || endedAt === undefined)
    return undefined;
  if (progress === undefined || progress.bytesTotal <= 0) return undefined;
  return progress.bytesRead / Math.max(1, elapsedMs(claimedAt, endedAt));
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
 * straggled. Failed and lost copies, and those of which no input is known, are left out.
 *
 * Source: Dolly §3.2: "progresses at less than half the median task in the job"; progress rate is input over time.
 */
export const stragglersOf = (stage: StageView): StragglerTally =>
  tallyOf(stage.tasks.flatMap((task) => task.attempts.flatMap((attempt) => rateOf(attempt) ?? [])));

/** The copies of all phases of a job so far. */
export const stragglersOfJob = ({ stages }: JobState): StragglerTally =>
  stages.map(stragglersOf).reduce(addTallies, noStragglers);

/** As `stragglersOfJob`, of a job's attempts as the store has them. */
export function stragglersOfAttempts(attempts: readonly AttemptRecord[]): StragglerTally {
  const rates = new Map<string, number[]>();
  for (const attempt of attempts) {
    const { stage } = attemptParts(attempt.attemptId);
    const rate = rateOf(attempt);
    if (rate === undefined) continue;
    const ofStage = rates.get(stage);
    if (ofStage === undefined) rates.set(stage, [rate]);
    else ofStage.push(rate);
  }
  return [...rates.values()].map(tallyOf).reduce(addTallies, noStragglers);
}

/** p: the share of stragglers, or the prior until `minAttempts` copies have been seen. */
export const stragglerProbability = (
  { attempts, stragglers }: StragglerTally,
  { prior, minAttempts }: { readonly prior: number; readonly minAttempts: number },
): number => (attempts < minAttempts || attempts === 0 ? prior : stragglers / attempts);
