import type { AttemptId } from '../../../../src/contracts/ids.ts';
import { jobSpecSchema } from '../../../../src/contracts/job-spec.ts';
import type { ExplainedTask } from '../../../../src/contracts/explanation.ts';
import type { Phase } from '../../../../src/contracts/progress.ts';
import type { AttemptRecord } from '../../../../src/contracts/records.ts';
import { epochMs } from '../../../../src/contracts/units.ts';
import { readDecisions } from '../../../../src/report/explain/decision-events.ts';
import { explainJob } from '../../../../src/report/explain/explain-job.ts';
import type { LogEvent } from '../../../../src/report/log-lines.ts';
import { jobRecord, stageSummary } from '../report-records.ts';

/** What a test says of an attempt; times in milliseconds since the job's submission. */
export interface Written {
  readonly launched?: number;
  /** Absent: it never began. */
  readonly claimed?: number | undefined;
  /** Absent: it did not end. */
  readonly ended?: number;
  readonly reported?: number;
  readonly state?: AttemptRecord['state'];
  readonly order?: AttemptRecord['order'];
  readonly node?: string;
  readonly invocation?: string;
  readonly phases?: Partial<Readonly<Record<Phase, number>>>;
  readonly read?: number;
  readonly total?: number;
  readonly records?: number;
  readonly failure?: AttemptRecord['failure'];
  readonly stalled?: number;
}

export const submittedAt = 1_000_000;

/** So long after the job's submission. */
export const at = (ms: number) => epochMs(submittedAt + ms);

export const twoStages = jobSpecSchema.parse({
  name: 'wordcount',
  policy: 'outrider',
  stages: [
    { name: 'map', operator: 'tokenize', inputs: [{ s3: ['s3://data/in/'] }] },
    { name: 'sum', operator: 'merge-lines', inputs: [{ stage: 'map', pattern: 'all-to-all' }] },
  ],
});

/** A line of the job's log. */
export const line = (ms: number, event: string, facts: object = {}) => ({
  at: at(ms),
  source: 's',
  text: JSON.stringify({ at: new Date(at(ms)).toISOString(), level: 'info', event, jobId: 'j', ...facts }),
});

const usual = { init: 200, read: 300, compute: 1_400, write: 100 };

/** An attempt that took its usual two seconds, was launched at 0 and waited for 100 ms, but for what is written. */
export function attempt(attemptId: string, written: Written = {}): AttemptRecord {
  const { launched = 0, claimed = launched + 100, state = 'done', read = 1_000, total = 1_000 } = written;
  const ended = written.ended ?? (state === 'running' || state === 'launched' ? undefined : claimed + 2_000);
  const hasBegun = state !== 'launched' && !('claimed' in written && written.claimed === undefined);
  return {
    attemptId: attemptId as AttemptId,
    state,
    order: written.order ?? 'continue',
    launchedAt: epochMs(submittedAt + launched),
    beat: 1,
    ...(written.failure === undefined ? {} : { failure: written.failure }),
    ...(ended === undefined || !hasBegun ? {} : { endedAt: epochMs(submittedAt + ended) }),
    ...(hasBegun
      ? {
          claimedAt: epochMs(submittedAt + claimed),
          reportedAt: epochMs(submittedAt + (written.reported ?? ended ?? claimed)),
          node: written.node ?? `node-${attemptId}`,
          zone: 'use1-az1',
          invocation: written.invocation ?? `invocation-${attemptId}`,
          progress: {
            bytesRead: read,
            bytesTotal: total,
            recordsIn: written.records ?? 1,
            recordsOut: 1,
            phase: 'compute',
            phaseMs: { ...usual, ...written.phases },
            peakMemoryBytes: 0,
            ...(written.stalled === undefined ? {} : { stalledMs: written.stalled }),
          },
        }
      : {}),
  };
}

/** So many tasks of a stage, from 0, each with one usual attempt. */
export const usualTasks = (count: number, stage = 'map'): readonly AttemptRecord[] =>
  Array.from({ length: count }, (_, index) => attempt(`${stage}/${String(index)}/0`));

/** How a task of stage `map` is explained, beside others of its job. */
export function explained(
  task: number,
  attempts: readonly AttemptRecord[],
  events: readonly LogEvent[] = [],
): ExplainedTask {
  const job = jobRecord({ state: 'succeeded', stages: [stageSummary({ name: 'map', tasks: 9, done: 9 })] });
  const decisions = readDecisions(events);
  const { stages } = explainJob({ job, attempts, decisions, now: submittedAt }, { stage: 'map', task });
  const told = stages[0]?.told[0];
  if (told === undefined) throw new Error('nothing is told of the task');
  return told;
}

/** An event of the job's log, so long after its submission. */
export const told = (ms: number, event: string, about: string, facts: object = {}): LogEvent => ({
  at: submittedAt + ms,
  source: 's',
  level: 'info',
  event,
  about,
  facts: { ...facts },
});
