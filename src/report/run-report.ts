import type { AttemptCounts, JobError, JobRecord, StageSummary } from '../contracts/records.ts';
import { type JobCosts, type JobRequests, noCosts, noRequests } from '../contracts/requests.ts';
import type { InjectedCounts } from '../local/inject/injection.ts';
import { deadlineMet } from './job-table.ts';

/** What `outrider run --json` prints; scripts rely on the names (design §8). */
export interface RunReport {
  readonly jobId: string;
  readonly state: string;
  readonly policy: string;
  /** From submission to published output; null where the job has not ended. */
  readonly wallMs: number | null;
  readonly stages: readonly StageSummary[];
  /** Absolute paths of the parts, in order; empty unless the job succeeded. */
  readonly output: readonly string[];
  readonly attempts: AttemptCounts;
  readonly workerSeconds: number;
  /** At list prices: the sum of `costs`. */
  readonly dollars: number;
  /** Requests as they were counted where they were made; nothing but zeros where nobody counted. */
  readonly requests: JobRequests;
  readonly costs: JobCosts;
  /** `at` in ISO 8601; `met` null while it is open. */
  readonly deadline: { readonly at: string; readonly met: boolean | null } | null;
  readonly counters: Readonly<Record<string, number>>;
  readonly error: JobError | null;
  /** What `--inject` did: slow nodes, killed workers, refused launches; null without it. */
  readonly injected: InjectedCounts | null;
}

/** The report of a job whose parts lie at `output`. */
export function runReport(job: JobRecord, output: readonly string[], injected?: InjectedCounts): RunReport {
  return {
    jobId: job.jobId,
    state: job.state,
    policy: job.spec.policy,
    wallMs: job.endedAt === undefined ? null : Math.max(0, job.endedAt - job.createdAt),
    stages: job.stages,
    output,
    attempts: job.attempts,
    workerSeconds: job.workerMs / 1_000,
    dollars: job.dollars,
    requests: job.requests ?? noRequests,
    costs: job.costs ?? { ...noCosts, compute: job.dollars },
    deadline:
      job.deadlineAt === undefined
        ? null
        : { at: new Date(job.deadlineAt).toISOString(), met: deadlineMet(job) ?? null },
    counters: job.counters,
    error: job.error ?? null,
    injected: injected ?? null,
  };
}
