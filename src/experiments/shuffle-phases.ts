import type { PlacementProblem } from '../core/policy/mantri/placement.ts';
import { splitEvenly } from '../traces/split-evenly.ts';
import type { TraceJob } from '../traces/trace-job.ts';

/** A reduce phase of a recorded cluster: what each task reads from each rack, and where each ran. */
export interface ShufflePhase {
  readonly inputs: PlacementProblem['inputs'];
  readonly recorded: readonly number[];
  readonly bytes: number;
  readonly submittedAtMs: number;
  /** Racks that hold input; the trace does not say how much, so equal parts. */
  readonly sources: readonly number[];
}

/** A reduce task of the cluster is taken to read as much. */
const taskBytes = 256 * 1024 * 1024;
/** Larger phases have larger tasks instead: a fluid of every stream of 30,000 tasks is beyond reach. */
const mostTasks = 600;

const rackOf = (zone: string | undefined): number => Number(zone?.slice(1));

/**
 * The reduce phases of the coflow trace, in its order. What a rack's reducers read together is divided into equal tasks of
 * 256 MiB or less; into fewer and larger ones where the phase would have more than 600, or a rack more than
 * `room`, since all ran at once.
 */
export const shufflePhases = (jobs: readonly TraceJob[], racks: number, room: number): ShufflePhase[] =>
  jobs.flatMap(({ stages: [map, reduce], submittedAtMs = 0 }) => {
    const reducers = (reduce?.tasks ?? []).map(({ zone, inputBytes = 0 }) => ({
      rack: rackOf(zone),
      bytes: inputBytes,
    }));
    const sources = (map?.tasks ?? []).map(({ zone }) => rackOf(zone));
    const bytes = reducers.reduce((sum, reducer) => sum + reducer.bytes, 0);
    if (bytes === 0) return [];
    const heaviest = reducers.reduce((most, reducer) => Math.max(most, reducer.bytes), 0);
    const size = Math.max(taskBytes, bytes / mostTasks, heaviest / room);
    const tasks = reducers.flatMap(({ rack, bytes: read }) =>
      read === 0 ? [] : splitEvenly(read, Math.ceil(read / size)).map((part) => ({ rack, part })),
    );
    const inputs = tasks.map(({ part }) => {
      const row = Array.from({ length: racks }, () => 0);
      for (const source of sources) row[source] = part / sources.length;
      return row;
    });
    return [{ inputs, recorded: tasks.map(({ rack }) => rack), bytes, submittedAtMs, sources }];
  });
