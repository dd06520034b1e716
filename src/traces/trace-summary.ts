import { ascending } from '../lib/quantiles.ts';
import { taskCount } from './trace-job.ts';
import type { TraceJob } from './trace-job.ts';

/** What a trace holds and lacks. Shares are in [0, 1]; those of a trace without jobs are 0. */
export interface TraceSummary {
  readonly jobs: number;
  readonly stages: number;
  readonly edges: number;
  readonly tasks: number;
  readonly attempts: number;
  readonly tasksWithoutWork: number;
  /** Neither input nor output known. */
  readonly tasksWithoutBytes: number;
  readonly jobsWithoutArrival: number;
  /** Share of jobs with at most ten tasks. */
  readonly smallJobs: number;
  /**
   * What the smallest nine tenths of the jobs hold of all resources, jobs ranked by that resource: tasks; bytes
   * moved (input, shuffled, final output, each once); work. Absent where nothing is known of a resource.
   */
  readonly smallest90: { readonly tasks?: number; readonly bytes?: number; readonly workMs?: number };
}

/** Reads a trace to its end and says what it holds. Memory grows by three numbers a job. */
export async function summariseTrace(jobs: AsyncIterable<TraceJob>): Promise<TraceSummary> {
  const counts = {
    jobs: 0,
    stages: 0,
    edges: 0,
    attempts: 0,
    tasksWithoutWork: 0,
    tasksWithoutBytes: 0,
    jobsWithoutArrival: 0,
  };
  const sizes: Record<'tasks' | 'bytes' | 'workMs', number[]> = { tasks: [], bytes: [], workMs: [] };
  for await (const job of jobs) {
    const totals = { bytes: 0, workMs: 0 };
    counts.jobs++;
    counts.stages += job.stages.length;
    if (job.submittedAtMs === undefined) counts.jobsWithoutArrival++;
    const inner = new Set(job.stages.flatMap((stage) => stage.upstream));
    for (const [index, stage] of job.stages.entries()) {
      counts.edges += stage.upstream.length;
      for (const task of stage.tasks) {
        counts.attempts += task.attempts?.length ?? 0;
        if (task.workMs === undefined) counts.tasksWithoutWork++;
        if (task.inputBytes === undefined && task.outputBytes === undefined) counts.tasksWithoutBytes++;
        // What an inner stage puts out is the input of another.
        totals.bytes += (task.inputBytes ?? 0) + (inner.has(index) ? 0 : (task.outputBytes ?? 0));
        totals.workMs += task.workMs ?? 0;
      }
    }
    sizes.tasks.push(taskCount(job));
    sizes.bytes.push(totals.bytes);
    sizes.workMs.push(totals.workMs);
  }
  return {
    ...counts,
    tasks: sizes.tasks.reduce((sum, tasks) => sum + tasks, 0),
    smallJobs: counts.jobs === 0 ? 0 : sizes.tasks.filter((tasks) => tasks <= 10).length / counts.jobs,
    smallest90: {
      ...held('tasks', sizes.tasks),
      ...held('bytes', sizes.bytes),
      ...held('workMs', sizes.workMs),
    },
  };
}

/** Share of the sum of `sizes` that the smallest nine tenths of them make; no key where the sum is 0. */
function held(name: 'tasks' | 'bytes' | 'workMs', sizes: readonly number[]): TraceSummary['smallest90'] {
  const total = sizes.reduce((sum, size) => sum + size, 0);
  if (total === 0) return {};
  const smallest = ascending(sizes).slice(0, Math.floor(sizes.length * 0.9));
  return { [name]: smallest.reduce((sum, size) => sum + size, 0) / total };
}
