import type { JudgedTask } from './judge.ts';

/** What another copy of a task is expected to bring and to take. */
export interface Worth {
  /** By how much sooner the task ends. */
  readonly savedMs: number;
  /** Slot time that it takes in all, beyond what the task takes without it; negative: it saves some. */
  readonly extraMs: number;
  /** Mean time of a new copy. */
  readonly newMs: number;
}

/**
 * Weighs another copy of a task, of which all copies stop as soon as one has ended: by the time that it has left, while
 * tasks wait the least, so that what is not known well is not bet on, over all that a new copy may take.
 *
 * Source: Mantri §5.1 (c copies that go on cost c · t_rem of slot time, one more makes it (c + 1) · t_new), with the
 * expectation in place of a probability.
 */
export function worthOf({ leastRemMs, newMs, newMeanMs, copies }: JudgedTask): Worth {
  // Most tasks, at most ticks: no new copy would end sooner.
  if (leastRemMs <= (newMs[0] ?? -Infinity)) return { savedMs: 0, extraMs: leastRemMs, newMs: newMeanMs };
  const count = Math.max(1, newMs.length);
  let endsMs = 0;
  for (const ms of newMs) endsMs += Math.min(leastRemMs, ms);
  const endMs = endsMs / count;
  return {
    savedMs: leastRemMs - endMs,
    extraMs: (copies.length + 1) * endMs - copies.length * leastRemMs,
    newMs: newMeanMs,
  };
}

/** A task that might be copied, and what that is worth. */
export interface Candidate {
  readonly task: JudgedTask;
  readonly worth: Worth;
}

/**
 * Which of the candidates to copy while no task waits: a stage ends with its last task, so that a copy is worth what it
 * brings that end forward, together with the copies of all tasks that would end later, for what they take together.
 * Those with most time left first; as many of them as bring most, less `costShare` of the slot time that they take.
 */
export function worthForEnd(
  candidates: readonly Candidate[],
  tasks: readonly JudgedTask[],
  costShare: number,
): ReadonlySet<JudgedTask> {
  if (candidates.length === 0) return new Set();
  const worths = new Map(candidates.map(({ task, worth }) => [task, worth]));
  const sorted = tasks.toSorted((a, b) => b.remMs - a.remMs);
  const endMs = sorted[0]?.remMs ?? 0;
  let [copiedMs, extraMs, best, count] = [0, 0, 0, 0];
  for (const [place, task] of sorted.entries()) {
    const worth = worths.get(task);
    // It keeps the stage from ending sooner.
    if (worth === undefined) break;
    copiedMs = Math.max(copiedMs, task.remMs - worth.savedMs);
    extraMs += worth.extraMs;
    const net = endMs - Math.max(copiedMs, sorted[place + 1]?.remMs ?? 0) - costShare * extraMs;
    if (net <= best) continue;
    [best, count] = [net, place + 1];
  }
  return new Set(sorted.slice(0, count));
}
