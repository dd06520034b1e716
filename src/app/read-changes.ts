import type { AttemptRecord, TaskResult } from '../contracts/records.ts';
import { type DurationMs, durationMs, type EpochMs, epochMs } from '../contracts/units.ts';
import {
  applyAttempt,
  applyReplica,
  applyResult,
  applyUnreadable,
  hasTask,
  taskOfAttempt,
} from '../core/model/job-state.ts';
import type { JobState } from '../core/model/job-view.ts';
import type { AttemptStore, TaskChanges } from '../ports/attempt-store.ts';
import type { Log } from '../ports/log.ts';
import type { Session } from './scheduler-session.ts';

interface ChangesDeps {
  readonly attempts: AttemptStore;
  readonly log: Log;
  readonly config: { readonly clockSkewMs?: DurationMs };
}

/** Writers' clocks may differ by so much; incremental reads look that far back and drop what they know. */
const defaultClockSkewMs = durationMs(5_000);

/** Takes outputs over: results first, since replicas are compared with them. */
export function takeOutputs(
  state: JobState,
  { results, replicas }: Pick<TaskChanges, 'results' | 'replicas'>,
  now: EpochMs,
): void {
  const isOfJob = ({ taskId }: TaskResult): boolean => hasTask(state, taskId);
  for (const result of results.filter(isOfJob)) applyResult(state, result, now);
  for (const replica of replicas.filter(isOfJob)) applyReplica(state, replica);
}

/** Takes over which records cannot be read, and logs each the first time. */
function setAside(deps: ChangesDeps, session: Session, { unreadable = [] }: TaskChanges): void {
  for (const record of unreadable) {
    applyUnreadable(session.state, record);
    if (session.unreadable.has(record.key)) continue;
    session.unreadable.add(record.key);
    const { key, kind, why } = record;
    deps.log.warn('record-unreadable', {
      jobId: session.jobId,
      key,
      kind,
      why,
      count: session.unreadable.size,
    });
  }
}

/** Reads what changed since the last tick and takes it over. Costs what changed within the clocks' skew. */
export async function readChanges(deps: ChangesDeps, session: Session, now: EpochMs): Promise<void> {
  const since = epochMs(Math.max(0, session.readUntil - (deps.config.clockSkewMs ?? defaultClockSkewMs)));
  const space = { jobId: session.jobId, shards: session.plan.shards };
  const changes = await deps.attempts.changes(space, since);
  takeOutputs(session.state, changes, now);
  const { attempts } = changes;
  for (const attempt of attempts) applyAttempt(session.state, attempt, now);
  setAside(deps, session, changes);
  session.readUntil = now;
  const isUnexplained = ({ attemptId, state }: AttemptRecord): boolean =>
    state === 'done' && taskOfAttempt(session.state, attemptId).result === undefined;
  if (!attempts.some(isUnexplained)) return;
  // Results are written before ends, so one is there: its write took longer than the clocks' skew.
  const all = await deps.attempts.changes(space, epochMs(0));
  takeOutputs(session.state, all, now);
  setAside(deps, session, all);
}
