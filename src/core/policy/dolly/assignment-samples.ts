import { elapsedMs } from '../../../contracts/units.ts';
import { median } from '../../../lib/quantiles.ts';
import { type AssignmentTally, type CopyRead, neverMs } from '../../model/assignment-tally.ts';
import type { AttemptView, JobState, StageView, TaskView } from '../../model/job-view.ts';
import { bestWait } from './delay-assignment.ts';

/** Values of each kind that one job tells: large jobs do not speak for small ones. */
const valuesPerJob = 16;

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

/** How long after its stage was done each further copy of a task's output came, or would have come. */
function gapsOf(task: TaskView, stage: StageView): readonly number[] {
  const { doneAt } = stage;
  if (doneAt === undefined || stage.clones === undefined) return [];
  return task.attempts
    .filter(({ id }) => id !== task.result?.attemptId)
    .map((attempt) => {
      const finish = finishOf(attempt);
      return finish === undefined ? neverMs : Math.min(neverMs, Math.max(0, finish - doneAt));
    });
}

const isRead = (state: JobState, { index }: StageView): boolean =>
  state.stages.some(({ shape }) => shape.upstream.includes(index));

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
  const gapsMs = state.stages
    .filter((stage) => isRead(state, stage))
    .flatMap((stage) => stage.tasks.flatMap((task) => gapsOf(task, stage)));
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
 * readers that shared a copy over that of those that did not. The whole input of a task counts as one read, since it
 * waits once for all its sources; p_c is of single sources, hence the share of the input that is read with contention.
 *
 * Source: Dolly §4.4: B, α, p_c and compute times are sampled from finished jobs, per bin.
 */
export function learntWaitMs({ reads, gapsMs, computeMs }: AssignmentTally): number | undefined {
  const alone = reads.filter(({ isShared }) => !isShared);
  const shared = reads.filter(({ isShared }) => isShared);
  if ([alone, shared, gapsMs, computeMs].some(({ length }) => length < leastValues)) return undefined;
  const share = Math.min(1, (bandwidthOf(shared) ?? 1) / (bandwidthOf(alone) ?? 1));
  const flows = alone.map(({ ms }) => ({ bytesPerMs: 1 / ms, share }));
  return Math.round(bestWait({ sizeBytes: 1, reads: 1, flows, gapsMs, computeMs }).waitMs);
}
