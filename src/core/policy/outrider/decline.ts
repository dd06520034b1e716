import type { Facts } from '../../model/decision.ts';
import { zoneFacts } from '../mantri/choose-zone.ts';
import { restartsOf, whyDeclined } from '../mantri/decline.ts';
import { finiteMs } from '../merit.ts';
import type { PolicyView, Proposal } from '../policy-set.ts';
import type { JudgedStage, JudgedTask } from './judge.ts';
import type { Candidate, Worth } from './worth.ts';

/** Tasks of a stage of which a tick tells why they are left alone: a tick logs so many refusals, and there are others. */
const toldPerStage = 10;

/** What the log is told of the records of a task that has more of them in each byte. */
export const recordFacts = ({ recordFactor }: JudgedTask): Facts =>
  recordFactor > 1 ? { recordFactor } : {};

/** The numbers by which another attempt of a task is weighed, for the log. */
export const factsOf = (task: JudgedTask, stage: JudgedStage, worth: Worth): Facts => ({
  remMs: finiteMs(task.remMs),
  leastRemMs: finiteMs(task.leastRemMs),
  newMs: finiteMs(worth.newMs),
  savedMs: finiteMs(worth.savedMs),
  extraMs: finiteMs(worth.extraMs),
  deltaMs: finiteMs(stage.deltaMs),
  copies: task.copies.length,
  slownessForInput: task.slowness,
  ...recordFacts(task),
  ...zoneFacts(task.chosen),
});

/** By how much sooner another attempt is expected to end. */
const gainMs = ({ leastRemMs, newMeanMs }: JudgedTask): number => leastRemMs - newMeanMs;

/**
 * Why tasks of a stage are left alone for which nothing is proposed though another attempt would be expected to end sooner than
 * those that run, with the numbers by which they were judged: of those to which it would bring most, most first. For the log alone.
 */
export function declines(
  left: readonly Candidate[],
  stage: JudgedStage,
  view: PolicyView,
): readonly Proposal[] {
  return left
    .filter(({ task }) => task.newMs.length > 0 && gainMs(task) > 0)
    .toSorted((a, b) => gainMs(b.task) - gainMs(a.task))
    .slice(0, toldPerStage)
    .map(({ task, worth }) => ({
      kind: 'decline',
      task: task.running.task,
      reason: whyDeclined(task, { deltaMs: stage.deltaMs, gainMs: gainMs(task) }, view),
      // After all that is proposed in earnest: of refusals a tick logs so many and no more.
      gainMs: 0,
      facts: {
        ...factsOf(task, stage, worth),
        sinceCopyMs: task.sinceCopyMs,
        restarts: restartsOf(task.running),
      },
    }));
}
