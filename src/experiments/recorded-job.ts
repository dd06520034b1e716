import { limits } from '../contracts/limits.ts';
import type { PolicyConfig } from '../contracts/policy-config.ts';
import type { PolicyName } from '../contracts/policy-names.ts';
import type { EpochMs } from '../contracts/units.ts';
import { workerMsOf } from '../core/estimate/progress-rate.ts';
import type { AttemptView, JobState, TaskView } from '../core/model/job-view.ts';
import { median } from '../lib/quantiles.ts';
import { createRng } from '../lib/rng.ts';
import { metricsOf } from '../sim/metrics.ts';
import { parseScenario } from '../sim/scenario.ts';
import { simulate } from '../sim/simulate.ts';
import type { TraceJob, TraceTask } from '../traces/trace-job.ts';
import { traceScenario } from './trace-scenario.ts';

/** What a job comes to in the simulator under one policy, in the mean of the seeds. */
export interface SimulatedOutcome {
  readonly policy: PolicyName;
  readonly completionS: number;
  readonly slotSeconds: number;
  readonly copies: number;
}

/** What a recorded job is run with: `policyConfig` are the settings that it had. */
export interface RecordedTerms {
  readonly policy: PolicyName;
  readonly policyConfig: PolicyConfig;
  readonly slots: number;
  readonly seeds: number;
}

/** A slow attempt that was ended has come to no more than this part of what it would have taken, it is assumed. */
const leastShare = 1 / 20;

/** What an attempt would have taken: what it took, or by its bytes where it was ended before its time. */
function wholeMs(attempt: AttemptView, now: EpochMs): number {
  const ms = workerMsOf(attempt, now);
  const { bytesRead, bytesTotal } = attempt.progress ?? { bytesRead: 0, bytesTotal: 0 };
  if (attempt.state === 'done' || bytesTotal <= 0 || bytesRead <= 0) return ms;
  return ms / Math.min(1, Math.max(leastShare, bytesRead / bytesTotal));
}

/** The work of a task: its first attempt's that began and did not fail, since that is what any policy meets first. */
function workOf(task: TaskView, now: EpochMs): number | undefined {
  const begun = task.attempts.find(
    ({ claimedAt, state }) => claimedAt !== undefined && state !== 'failed' && state !== 'lost',
  );
  return begun === undefined ? undefined : Math.max(1, Math.round(wholeMs(begun, now)));
}

/**
 * A job that has run as a job of a trace: tasks that never began take the median of their stage. Undefined where a stage
 * has none that did.
 */
export function traceOfRecorded(id: string, state: JobState, now: EpochMs): TraceJob | undefined {
  const stages = state.stages.map(({ shape, tasks }) => {
    const works = tasks.map((task) => workOf(task, now));
    const typical = median(works.flatMap((ms) => ms ?? []));
    return {
      ...{ name: shape.name, upstream: [...new Set(shape.upstream)].toSorted((a, b) => a - b) },
      tasks: tasks.map(({ inputBytes }, index): TraceTask => ({
        inputBytes,
        workMs: works[index] ?? typical ?? 0,
      })),
      isKnown: typical !== undefined,
    };
  });
  return stages.every(({ isKnown, tasks }) => isKnown && tasks.length > 0) ? { id, stages } : undefined;
}

/**
 * Runs a recorded job in the simulator under a policy with its own settings, on Lambda as production meets it and as many
 * slots as it had in all, alone. First attempts take what they took; later ones a draw from their stage, the same under every policy.
 */
export async function simulateRecorded(
  job: TraceJob,
  { policy, policyConfig, slots, seeds }: RecordedTerms,
): Promise<SimulatedOutcome> {
  let [completionS, slotSeconds, copies] = [0, 0, 0];
  for (let seed = 1; seed <= seeds; seed++) {
    const rng = createRng(`recorded/${String(seed)}`);
    const most = Math.max(1, Math.min(slots, limits.tasksPerStage));
    const options = { format: 'tpch', policy, policyConfig, slots: most, rng } as const;
    const scenario = parseScenario(traceScenario([job], options));
    const metrics = metricsOf(await simulate(scenario, { seed: String(seed) }));
    completionS += metrics.completionS.mean / seeds;
    slotSeconds += metrics.slotSeconds / seeds;
    copies += metrics.copies.started / seeds;
  }
  return { policy, completionS, slotSeconds, copies };
}
