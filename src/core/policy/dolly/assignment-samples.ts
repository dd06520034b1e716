import { elapsedMs } from '../../../contracts/units.ts';
import { median, thinned } from '../../../lib/quantiles.ts';
import { type AssignmentTally, type CopyRead, neverMs } from '../../model/assignment-tally.ts';
import type { AttemptView, JobState, StageView, TaskView } from '../../model/job-view.ts';
import { sourceTasks } from '../../model/upstream-copies.ts';
import { bestWait } from './delay-assignment.ts';

/** Values of each kind that one job tells: large jobs do not speak for small ones. */
const valuesPerJob = 16;

/** Read times that stand for all of them. */
const flowLimit = 32;

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

/** When the second copy of a task's output came, or would have come; `neverMs` where it would not. */
const secondFinish = (task: TaskView): number =>
  task.attempts
    .filter(({ id }) => id !== task.result?.attemptId)
    .reduce((first, attempt) => Math.min(first, finishOf(attempt) ?? neverMs), neverMs);

/** How long after a stage had opened a clone of each of its tasks could read copies of its own of all sources. */
function gapsOf(state: JobState, stage: StageView): readonly number[] {
  const { openedAt, shape } = stage;
  const isCloned = shape.upstream.every((place) => state.stages[place]?.clones !== undefined);
  if (openedAt === undefined || shape.upstream.length === 0 || !isCloned) return [];
  return stage.tasks.slice(0, valuesPerJob).map((task) => {
    const last = sourceTasks(state, task).reduce((latest, each) => Math.max(latest, secondFinish(each)), 0);
    return last >= neverMs ? neverMs : Math.max(0, last - openedAt);
  });
}

/** The copies of a task that were done, with what they took to read. The original shares with clones that had to. */
function readsOf({
  attempts,
}: TaskView): readonly { readonly attempt: AttemptView; readonly read: CopyRead }[] {
  const anyShares = attempts.some(({ hasOwnCopies, claimedAt }) => !hasOwnCopies && claimedAt !== undefined);
  return attempts.flatMap((attempt) => {
    const { state, number, hasOwnCopies, progress } = attempt;
    const { bytes, ms } = progress?.fetched ?? { bytes: 0, ms: 0 };
    if (state !== 'done' || bytes <= 0 || ms <= 0) return [];
    const isShared = !hasOwnCopies || (number === 0 && anyShares);
    return [{ attempt, read: { sizeBytes: bytes, ms, isShared } }];
  });
}

/** What a job tells of copies and of reading them, some values of each kind. */
export function assignmentsOfJob(state: JobState): AssignmentTally {
  const gapsMs = state.stages.flatMap((stage) => gapsOf(state, stage));
  const reads = state.stages
    .filter(({ shape }) => shape.upstream.length > 0)
    .flatMap(({ tasks }) => tasks.flatMap(readsOf));
  return {
    gapsMs: gapsMs.slice(0, valuesPerJob),
    reads: reads.slice(0, valuesPerJob).map(({ read }) => read),
    computeMs: reads
      .slice(0, valuesPerJob)
      .map(({ attempt: { claimedAt, endedAt }, read }) =>
        claimedAt === undefined || endedAt === undefined
          ? 0
          : Math.max(0, elapsedMs(claimedAt, endedAt) - read.ms),
      ),
  };
}

/** Median bandwidth in bytes per millisecond. */
const bandwidthOf = (reads: readonly CopyRead[]): number | undefined =>
  median(reads.map(({ sizeBytes, ms }) => sizeBytes / ms));

/**
 * ω for jobs of one bin, from what such jobs have seen; undefined while too little is known. α is the bandwidth of
 * readers that shared a copy over that of those that did not. The whole input of a task counts as one read, of which
 * p_c tells whether all its sources have a second copy: a task reads its sources at once and waits for them once, and
 * the slowest of them is the one that it shares.
 *
 * Source: Dolly §4.4: B, α, p_c and compute times are sampled from finished jobs, per bin.
 */
export function learntWaitMs({ reads, gapsMs, computeMs }: AssignmentTally): number | undefined {
  const alone = reads.filter(({ isShared }) => !isShared);
  const shared = reads.filter(({ isShared }) => isShared);
  if ([alone, shared, gapsMs, computeMs].some(({ length }) => length < leastValues)) return undefined;
  const share = Math.min(1, (bandwidthOf(shared) ?? 1) / (bandwidthOf(alone) ?? 1));
  const flows = thinned(
    alone.map(({ ms }) => ms),
    flowLimit,
  ).map((ms) => ({ bytesPerMs: 1 / ms, share }));
  return Math.round(bestWait({ sizeBytes: 1, reads: 1, flows, gapsMs, computeMs }).waitMs);
}
