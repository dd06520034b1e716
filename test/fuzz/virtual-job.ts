import { ErrorName } from '../../src/contracts/errors.ts';
import { failJob } from '../../src/app/fail-job.ts';
import { finishJob, type FinishDeps } from '../../src/app/finish-job.ts';
import { planJob, type PlanDeps } from '../../src/app/plan-job.ts';
import { runScheduler } from '../../src/app/run-scheduler.ts';
import type { SchedulerDeps } from '../../src/app/scheduler-deps.ts';
import type { JobId } from '../../src/contracts/ids.ts';
import { durationMs, later } from '../../src/contracts/units.ts';

export type JobDeps = PlanDeps & SchedulerDeps & FinishDeps;

/** What the state machine tries again, how often, and how long it waits at least. */
const retries: readonly {
  readonly names: readonly string[];
  readonly most: number;
  readonly pauseMs: number;
}[] = [
  { names: [ErrorName.LeaseHeld], most: 320, pauseMs: 3_000 },
  { names: [ErrorName.StoreUnavailable, ErrorName.LaunchThrottled], most: 12, pauseMs: 1_000 },
];
const residencyMs = 60_000;
const patienceMs = durationMs(2_000);
/** Entries of the scheduler: an hour of them. */
const mostEntries = 60;

const nameOf = (error: unknown): string => (error instanceof Error ? error.name : 'Error');

/** Does a step as the state machine does it: again where its error passes. */
async function step<T>(deps: JobDeps, run: () => Promise<T>): Promise<T> {
  const tries = new Map<string, number>();
  for (;;) {
    try {
      return await run();
    } catch (error) {
      const name = nameOf(error);
      const rule = retries.find(({ names }) => names.includes(name));
      const tried = (tries.get(name) ?? 0) + 1;
      tries.set(name, tried);
      if (rule === undefined || tried > rule.most) throw error;
      await deps.clock.sleep(durationMs(rule.pauseMs));
    }
  }
}

/** Runs a job from its submission to its end, as the state machine does. Throws where even Fail cannot end it. */
export async function driveJob(deps: JobDeps, jobId: JobId): Promise<void> {
  try {
    await step(deps, () => planJob(deps, jobId));
    for (let entries = 0; ; entries++) {
      const { outcome } = await step(deps, () =>
        runScheduler(deps, jobId, {
          owner: `entry-${String(entries)}`,
          until: later(deps.clock.now(), durationMs(residencyMs)),
        }),
      );
      if (outcome === 'finish') break;
      if (entries >= mostEntries) throw new Error('the scheduler was entered for an hour');
    }
    await step(deps, () => finishJob(deps, jobId, patienceMs));
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    await step(deps, () => failJob(deps, jobId, { name: nameOf(error), message }, patienceMs));
  }
}
