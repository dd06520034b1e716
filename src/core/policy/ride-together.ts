import type { AttemptId } from '../../contracts/ids.ts';
import { limits } from '../../contracts/limits.ts';
import { type DurationMs, durationMs } from '../../contracts/units.ts';
import { quantileOf } from '../../lib/sorted-numbers.ts';
import type { JobState, StageClones, StageView, TaskView } from '../model/job-view.ts';
import { workerOf } from '../model/stage-worker.ts';
import { foretoldMs, tailMs } from './expected-run.ts';
import type { OwedLaunch } from './owed-launches.ts';

/** Tasks of a stage that must have finished before anything is said of how long others take. */
const leastFinished = 4;

/** What decides how many attempts ride together. */
export interface PackTerms {
  /** Longest that the attempts of a pack are expected to take together; absent: none ride. */
  readonly packMs?: DurationMs | undefined;
  /** Places that the job has, those included that are free. */
  readonly places: number;
  /** Places of stages that are cloned. */
  readonly cloned: ReadonlyMap<number, StageClones>;
}

/** How attempts of a tick ride together. */
export interface Packs {
  /** What the attempts of one worker are expected to take at most. */
  readonly budgetMs: number;
  /** Most attempts behind the first. */
  readonly mostRiders: number;
  /** What an attempt of a task is expected to take; undefined where nobody knows, or it rides with none. */
  expectedMs(task: TaskView): number | undefined;
}

/** The median run time of a stage whose attempts are known to be short; undefined of any other. */
function medianOf(stage: StageView, packMs: number): number | undefined {
  const { shape, state, statistics, clones } = stage;
  if (state !== 'open' || clones !== undefined || statistics.runMs.size < leastFinished) return undefined;
  if (workerOf({ shape }).kind !== 'lambda' || (tailMs(stage) ?? Infinity) > packMs) return undefined;
  return quantileOf(statistics.runMs, 0.5);
}

/**
 * How attempts that are launched now ride together. A pack is expected to take no longer than `packMs`, and no longer
 * than what falls to each place of the work that nobody has yet, so that packs grow smaller towards the end and what
 * remains evens out: where as many places are free as tasks are left, each task gets its own. First attempts of a stage
 * ride, on Lambda, once some have finished, if nine of ten take no longer than `packMs`; none does of a cloned stage.
 *
 * Source: Polychronopoulos, Kuck, "Guided self-scheduling" (IEEE Trans. Comp. 1987). Differs: by time, not by number.
 */
export function packsOf(state: JobState, { packMs = durationMs(0), places, cloned }: PackTerms): Packs {
  const medians = new Map<number, number>();
  let leftMs = 0;
  if (packMs > 0) {
    for (const stage of state.stages) {
      const medianMs = cloned.has(stage.index) ? undefined : medianOf(stage, packMs);
      if (medianMs === undefined) continue;
      medians.set(stage.index, medianMs);
      leftMs += stage.unstarted * Math.max(1, medianMs);
    }
  }
  const budgetMs = Math.min(packMs, leftMs / Math.max(1, places));
  const shortest = Math.max(1, Math.min(...medians.values(), Infinity));
  const mostRiders = Math.max(0, Math.min(limits.ridersPerLaunch, Math.floor(budgetMs / shortest) - 1));
  return {
    budgetMs,
    mostRiders,
    expectedMs(task) {
      const medianMs = medians.get(task.stage);
      const stage = state.stages[task.stage];
      return medianMs === undefined || stage === undefined ? undefined : foretoldMs(stage, medianMs, task);
    },
  };
}

/** Each attempt has a worker of its own. */
export const alone: Packs = { budgetMs: 0, mostRiders: 0, expectedMs: () => undefined };

/** A pack that further attempts may join. */
export interface OpenPack {
  readonly head: AttemptId;
  readonly stage: number;
  leftMs: number;
  seats: number;
}

/** The pack of a launch; undefined where none may ride with it. */
export function openPack(packs: Packs, { task, reason }: OwedLaunch, head: AttemptId): OpenPack | undefined {
  const headMs = reason === 'first' ? packs.expectedMs(task) : undefined;
  if (headMs === undefined) return undefined;
  return { head, stage: task.stage, leftMs: packs.budgetMs - headMs, seats: packs.mostRiders };
}

/** Has a first attempt join the pack, if it fits; answers whether it does. */
export function joins(
  packs: Packs,
  pack: OpenPack | undefined,
  { task, reason }: OwedLaunch,
): pack is OpenPack {
  if (pack?.stage !== task.stage || reason !== 'first' || pack.seats < 1) return false;
  const takesMs = packs.expectedMs(task) ?? Infinity;
  if (takesMs > pack.leftMs) return false;
  pack.leftMs -= takesMs;
  pack.seats -= 1;
  return true;
}
