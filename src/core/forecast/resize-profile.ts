import type { JobProfile, StageProfile } from './job-profile.ts';

/** Into how many tasks stages fall, and how many bytes each reads in all where that is known; by their names. */
export type StageSizes = Readonly<
  Record<string, { readonly tasks: number; readonly bytes?: number | undefined }>
>;

/** What a profile that was learned tells besides of how large a stage's tasks were. */
interface LearnedSize {
  readonly taskBytes?: number;
  readonly plannedTasks?: number;
}

type SizedProfile = JobProfile & { readonly workFactors?: readonly number[] };

/** Bytes that a stage of a profile has read in all; undefined where nobody knows. */
export const learnedBytes = ({
  taskBytes,
  tasks,
}: Pick<StageProfile, 'tasks'> & LearnedSize): number | undefined =>
  taskBytes === undefined ? undefined : taskBytes * tasks;

/**
 * How many times as much a task may read as those that it is foretold by. What a task took that read little was mostly its begin,
 * which does not grow: by the byte, gigabytes would take months after a run on one line. Our choice, as no run tells the one from the other.
 */
export const mostGrowth = 10;

/** Whether a stage's tasks read so much more than those of a profile that nothing follows from these. */
export const outgrows = ({ stages }: JobProfile, sizes: StageSizes): boolean =>
  stages.some(({ name, taskBytes }: StageProfile & LearnedSize) => {
    const size = sizes[name];
    if (size?.bytes === undefined || taskBytes === undefined) return false;
    return size.bytes / Math.max(1, size.tasks) > mostGrowth * taskBytes;
  });

/**
 * A profile with other numbers of tasks, of which each takes longer as it reads more, as far as both are known; where
 * partitions were split, as many more than planned as there were. A stage whose size is the same is the same object.
 */
export function resized(profile: SizedProfile, sizes: StageSizes): SizedProfile {
  return {
    ...profile,
    stages: profile.stages.map((stage: StageProfile & LearnedSize): StageProfile & LearnedSize => {
      const size = sizes[stage.name];
      if (size === undefined) return stage;
      const { tasks: learned, taskBytes: before = 0, plannedTasks = learned } = stage;
      const tasks = Math.round((size.tasks * learned) / plannedTasks);
      const after = (size.bytes ?? 0) / tasks;
      const factor = before > 0 && after > 0 ? after / before : 1;
      // The mean of as many bytes may differ by rounding.
      if (tasks === learned && Math.abs(factor - 1) < 1e-9) return stage;
      const scaled = (times: readonly number[]): readonly number[] => times.map((each) => each * factor);
      const runs = stage.runs.map(({ slots, times }) => ({
        slots,
        times: { cold: scaled(times.cold), first: scaled(times.first), later: scaled(times.later) },
      }));
      return { ...stage, tasks, runs };
    }),
  };
}
