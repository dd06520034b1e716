import { readBy, reportedMs } from '../../estimate/progress-rate.ts';
import { leastOutrun, wholeMs } from '../../model/stage-statistics.ts';
import { hasTakenUp } from '../../model/taken-up.ts';
import { finiteMs } from '../merit.ts';
import type { Proposal } from '../policy-set.ts';
import type { JudgedCopy, JudgedStage, JudgedTask } from './judge.ts';

/** Reports by which a younger copy is judged, and what it has read at most of what the older one had at its age. */
const leastReports = 2;
const behindBy = 0.85;
/** An older one is let run until it tells by so much that it is slow: a node that is known for it has no other task. */
const tellingSlowness = 2.2;

const readOf = ({ attempt }: JudgedCopy): number => attempt.progress?.bytesRead ?? 0;

/** Whether its progress can be held against that of another copy. Clones have rules of their own. */
const isComparable = ({ attempt, isTold }: JudgedCopy): boolean =>
  isTold && attempt.reason !== 'clone' && attempt.progress !== undefined && !hasTakenUp(attempt);

/**
 * Whether a younger copy has read more than the older one has by now, even had that gone on since its last report; and that
 * one has run for so long, and been so slow, that it tells of the node and the zone where it ran (`wasOutrun`, `nodeSigns`).
 * One that has read all shows no more how far it is.
 */
function isOvertaken(older: JudgedCopy, younger: JudgedCopy, usualMs: number): boolean {
  const { bytesTotal = 0 } = older.attempt.progress ?? {};
  const ordinaryMs = Math.max(usualMs, younger.ranMs + younger.remMs);
  if (reportedMs(older.attempt) < leastOutrun * ordinaryMs) return false;
  if (wholeMs(older.attempt) < tellingSlowness * ordinaryMs || readOf(younger) >= bytesTotal) return false;
  const goneOn = older.ranMs / Math.max(1, reportedMs(older.attempt));
  return readOf(younger) > readOf(older) * goneOn;
}

/** Whether a younger copy has got on more slowly than the older one had at its age. */
function isSlower({ attempt }: JudgedCopy, older: JudgedCopy): boolean {
  const ageMs = reportedMs(attempt);
  if (attempt.reports.length < leastReports || ageMs > reportedMs(older.attempt)) return false;
  return readBy(attempt.reports, ageMs) <= behindBy * readBy(older.attempt.reports, ageMs);
}

/**
 * Stops a copy that another one of its task has outrun, so that not both run until the task ends: an older one of which a
 * younger one has read more, or a younger one that is slower than the older one was at its age. Both are dominated by what
 * has been seen, whatever the shape of progress; and only where what each has left says so too, since one that was fast may
 * stand still now. A younger one is judged once it has run for Δ.
 *
 * Source: ours. Mantri §5.1 prunes what is slower than the second fastest copy, and so keeps two to the end.
 */
export function outrun(
  { running, copies, usualMs = 0 }: JudgedTask,
  { deltaMs }: Pick<JudgedStage, 'deltaMs'>,
): readonly Proposal[] {
  const told = copies.filter(isComparable).toSorted((a, b) => a.attempt.number - b.attempt.number);
  for (const [place, older] of told.entries())
    for (const younger of told.slice(place + 1)) {
      if (reportedMs(younger.attempt) < deltaMs) continue;
      const [first, last] = older.remMs < younger.remMs ? [older, younger] : [younger, older];
      if (!(last === older ? isOvertaken(older, younger, usualMs) : isSlower(younger, older))) continue;
      const facts = {
        ...{ remMs: finiteMs(last.remMs), firstRemMs: finiteMs(first.remMs) },
        ...{ deltaMs: finiteMs(deltaMs), copies: copies.length },
      };
      return [
        { kind: 'prune', task: running.task, attempt: last.attempt, gainMs: finiteMs(last.remMs), facts },
      ];
    }
  return [];
}
