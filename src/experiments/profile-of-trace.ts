import { type JobProfile, type ProfiledRun, slotPasts } from '../core/forecast/job-profile.ts';
import { ascending } from '../lib/quantiles.ts';
import type { TraceJob, TraceStage } from '../traces/trace-job.ts';

/** A recorded run of a job, and the slots that it had. */
export interface RecordedRun {
  readonly slots: number;
  readonly job: TraceJob;
}

/**
 * The profile of a job of which a trace recorded several runs, all with the same stages. Tasks whose times are unknown
 * tell nothing; where what a slot had run before is not recorded, times count as those of later tasks.
 */
export function profileOfRuns(runs: readonly RecordedRun[]): JobProfile {
  const ordered = runs.toSorted((a, b) => a.slots - b.slots);
  const shape = ordered[0]?.job;
  return {
    stages: (shape?.stages ?? []).map((stage, index) => ({
      name: stage.name,
      tasks: stage.tasks.length,
      inputs: stage.upstream.map((upstream) => ({ stage: upstream, isBarrier: true })),
      runs: ordered.flatMap(({ slots, job }) => {
        const recorded = job.stages[index];
        return recorded === undefined ? [] : [profiledRun(slots, recorded)];
      }),
      queueMs: [],
      failureShare: 0,
    })),
  };
}

function profiledRun(slots: number, { tasks }: TraceStage): ProfiledRun {
  const [cold, first, later] = slotPasts.map((past) =>
    ascending(
      tasks.flatMap(({ workMs, slotPast = 'later' }) =>
        workMs === undefined || slotPast !== past ? [] : [workMs],
      ),
    ),
  );
  return { slots, times: { cold: cold ?? [], first: first ?? [], later: later ?? [] } };
}
