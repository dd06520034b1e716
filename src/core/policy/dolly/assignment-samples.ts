import { elapsedMs } from '../../../contracts/units.ts';
import { median } from '../../../lib/quantiles.ts';
import { type AssignmentTally, type CopyRead, neverMs, tallyAddLimit } from '../../model/assignment-tally.ts';
import type { AttemptView, JobState, StageView, TaskView } from '../../model/job-view.ts';
import { sourceTasks } from '../../model/upstream-copies.ts';
import { bestWait } from './delay-assignment.ts';

/** α is never taken for less. */
const leastShare = 0.01;

/** Values of each kind without which nothing is learnt. */
const leastValues = 5;

/** When a copy was done, or would have been at its rate had it not been told to stop; undefined where it cannot be told. */
function finishOf({ state, claimedAt, endedAt, progress }: AttemptView): number | undefined {
  if (claimedAt === undefined || endedAt === undefined) return undefined;
  if (state === 'done') return endedAt;
  const { bytesRead = 0, bytesTotal = 0 } = progress ?? {};
  if (state !== 'cancelled' || bytesRead <= 0) return undefined;
  return claimedAt + (elapsedMs(claimedAt, endedAt) * Math.max(bytesRead, bytesTotal)) / bytesRead;
}

/** When the second copy of a task's output came, or would have come; infinite where it would not. */
const secondFinish = (task: TaskView): number =>
  task.attempts
    .filter(({ id }) => id !== task.result?.attemptId)
    .reduce((first, attempt) => Math.min(first, finishOf(attempt) ?? Infinity), Infinity);

/** How long after a stage had opened a clone of each of its tasks could read copies of its own of all sources. */
function gapsOf(state: JobState, stage: StageView): readonly number[] {
  const { openedAt, shape } = stage;
  const isCloned = shape.upstream.every((place) => state.stages[place]?.clones !== undefined);
  if (openedAt === undefined || shape.upstream.length === 0 || !isCloned) return [];
  return stage.tasks.slice(0, tallyAddLimit).map((task) => {
    const last = sourceTasks(state, task).reduce((latest, each) => Math.max(latest, secondFinish(each)), 0);
    return Math.min(neverMs, Math.max(0, last - openedAt));
  });
}

/** When a copy read, on the clock of its worker; undefined of one that read no other stage. */
function readingOf({
  claimedAt,
  progress,
}: AttemptView): { readonly from: number; readonly to: number } | undefined {
  if (claimedAt === undefined || progress?.fetched === undefined) return undefined;
  const from = claimedAt + progress.phaseMs.init;
  return { from, to: from + progress.fetched.ms };
}

/** For how long a copy of a task read at the same time as another with which it shares some source. */
function overlapOf(attempt: AttemptView, { attempts }: TaskView): number {
  const mine = readingOf(attempt);
  if (mine === undefined) return 0;
  return attempts
    .filter((other) => other !== attempt && !(attempt.hasOwnCopies && other.hasOwnCopies))
    .flatMap((other) => readingOf(other) ?? [])
    .reduce((most, { from, to }) => Math.max(most, Math.min(to, mine.to) - Math.max(from, mine.from)), 0);
}

/** The copies of a task that were done, with what they took to read. */
const readsOf = (task: TaskView): readonly { readonly attempt: AttemptView; readonly read: CopyRead }[] =>
  task.attempts.flatMap((attempt) => {
    const { bytes, ms } = attempt.progress?.fetched ?? { bytes: 0, ms: 0 };
    if (attempt.state !== 'done' || bytes <= 0 || ms <= 0) return [];
    return [{ attempt, read: { sizeBytes: bytes, ms, overlapMs: overlapOf(attempt, task) } }];
  });

/** What a job tells of copies and of reading them, some values of each kind. */
export function assignmentsOfJob(state: JobState): AssignmentTally {
  const gapsMs = state.stages.flatMap((stage) => gapsOf(state, stage));
  const reads = state.stages
    .filter(({ shape }) => shape.upstream.length > 0)
    .flatMap(({ tasks }) => tasks.flatMap(readsOf));
  return {
    gapsMs: gapsMs.slice(0, tallyAddLimit),
    reads: reads.slice(0, tallyAddLimit).map(({ read }) => read),
    computeMs: reads
      .slice(0, tallyAddLimit)
      .map(({ attempt: { claimedAt, endedAt }, read }) =>
        claimedAt === undefined || endedAt === undefined
          ? 0
          : Math.max(0, elapsedMs(claimedAt, endedAt) - read.ms),
      ),
  };
}

/**
 * α: the share of its bandwidth alone that a reader gets beside another. A read of r bytes that takes T in place of
 * r/B, o of it beside another, says r = αB·o + B·(T − o), so that 1 − α is (T − r/B) / o; summed over all such reads.
 */
function shareOf(alone: readonly CopyRead[], shared: readonly CopyRead[]): number {
  const bytesPerMs = median(alone.map(({ sizeBytes, ms }) => sizeBytes / ms)) ?? 1;
  let slowerMs = 0;
  let overlapMs = 0;
  for (const read of shared) {
    slowerMs += read.ms - read.sizeBytes / bytesPerMs;
    overlapMs += read.overlapMs;
  }
  return Math.min(1, Math.max(leastShare, 1 - slowerMs / overlapMs));
}

/**
 * ω for jobs of one bin, from what such jobs have seen; undefined while too little is known. The whole input of a
 * task counts as one read, and p_c tells whether all its sources have a second copy: a task reads its sources at once
 * and waits for them once, and the slowest of them is one that it shares.
 *
 * Source: Dolly §4.4: B, α, p_c and compute times are sampled from finished jobs, per bin.
 */
export function learntWaitMs({ reads, gapsMs, computeMs }: AssignmentTally): number | undefined {
  const alone = reads.filter(({ overlapMs }) => overlapMs === 0);
  const shared = reads.filter(({ overlapMs }) => overlapMs > 0);
  if ([alone, shared, gapsMs, computeMs].some(({ length }) => length < leastValues)) return undefined;
  const share = shareOf(alone, shared);
  const flows = alone.map(({ ms }) => ({ bytesPerMs: 1 / ms, share }));
  return Math.round(bestWait({ sizeBytes: 1, flows, gapsMs, computeMs }).waitMs);
}
