import type { OnBudget } from '../contracts/job-spec.ts';
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
  /** What it might cost, and what was to happen then. */
  readonly budget: { readonly dollars: number; readonly onBudget: OnBudget } | null;
  readonly counters: Readonly<Record<string, number>>;
  readonly error: JobError | null;
  /** What `--inject` did: slow nodes, killed workers, refused launches; null without it. */
  readonly injected: InjectedCounts | null;
  /** What the whole time of the command went to, in milliseconds; absent: phases that were not gone through. */
  readonly phasesMs?: Readonly<Record<string, number>>;
  /** The `--state-dir` with which `outrider logs` and `attempts` tell more of the job; absent where nothing was kept. */
  readonly recordIn?: string;
}

/** What is known of a run besides its job. */
export interface RunFacts {
  readonly injected?: InjectedCounts | undefined;
  readonly phases?: Readonly<Record<string, number>>;
  readonly recordIn?: string | undefined;
}

/** The report of a job whose parts lie at `output`. */
export function runReport(
  job: JobRecord,
  output: readonly string[],
  { injected, phases, recordIn }: RunFacts = {},
): RunReport {
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
    budget:
      job.spec.budget === undefined
        ? null
        : { dollars: job.spec.budget, onBudget: job.spec.onBudget ?? 'finish' },
    counters: job.counters,
    error: job.error ?? null,
    injected: injected ?? null,
    ...(phases === undefined ? {} : { phasesMs: phases }),
    ...(recordIn === undefined ? {} : { recordIn }),
  };
}
