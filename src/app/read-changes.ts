import type { AttemptId } from '../contracts/ids.ts';
import { taskOf } from '../contracts/ids.ts';
import type { AttemptRecord, TaskResult } from '../contracts/records.ts';
import type { DurationMs, EpochMs } from '../contracts/units.ts';
import { hasTask, stageAt, taskOfAttempt } from '../core/model/job-state.ts';
import { isLive, type JobState } from '../core/model/job-view.ts';
import { dueReads } from '../core/policy/due-reads.ts';
import type { AttemptStore, Inbox, TaskRecords, TaskSpace } from '../ports/attempt-store.ts';
import type { Clock } from '../ports/clock.ts';
import type { Log } from '../ports/log.ts';
import { observe, type Observed } from './journal.ts';
import type { Session } from './scheduler-session.ts';

interface ChangesDeps {
  readonly attempts: AttemptStore;
  readonly clock: Clock;
  readonly log: Log;
  readonly config: { readonly tickMs: DurationMs; readonly heartbeatMs: DurationMs };
}

const spaceOf = ({ jobId, plan }: Session): TaskSpace => ({ jobId, shards: plan.shards });

/** Takes outputs over: results first, since replicas are compared with them. */
export function takeOutputs(
  job: Observed,
  { results, replicas }: Pick<TaskRecords, 'results' | 'replicas'>,
  at: EpochMs,
): void {
  const isOfJob = ({ taskId }: TaskResult): boolean => hasTask(job.state, taskId);
  for (const result of results.filter(isOfJob)) observe(job, { kind: 'result', result, at });
  for (const result of replicas.filter(isOfJob)) observe(job, { kind: 'replica', result });
}

/** Takes over which records cannot be read, and logs each the first time. */
function setAside(deps: ChangesDeps, session: Session, { unreadable = [] }: TaskRecords): void {
  for (const record of unreadable) {
    observe(session, { kind: 'unreadable', record });
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

/** Takes over what was read of a job's tasks, and seen at `now`. */
function takeRecords(deps: ChangesDeps, session: Session, records: TaskRecords, now: EpochMs): void {
  takeOutputs(session, records, now);
  for (const record of records.attempts) observe(session, { kind: 'attempt', record, at: now });
  setAside(deps, session, records);
}

/** Records of attempts by task, of each the winner's last. */
function winnersLast(state: JobState, records: readonly AttemptRecord[]): readonly AttemptRecord[] {
  const hasWon = ({ attemptId }: AttemptRecord): boolean =>
    state.attempts.has(attemptId) && taskOfAttempt(state, attemptId).result?.attemptId === attemptId;
  return [...Map.groupBy(records, ({ attemptId }) => taskOf(attemptId)).values()].flatMap((ofTask) =>
    ofTask.length === 1 ? ofTask : ofTask.toSorted((a, b) => Number(hasWon(a)) - Number(hasWon(b))),
  );
}

/**
 * Records of attempts with those that tell of failures last, and of those one from each node first: whether two failures on one
 * node end the job hangs on what other nodes are known.
 */
function failuresLast(records: readonly AttemptRecord[]): readonly AttemptRecord[] {
  const others: AttemptRecord[] = [];
  const firsts = new Map<string | undefined, AttemptRecord>();
  const failed: AttemptRecord[] = [];
  for (const record of records) {
    const { failure, node } = record;
    if (failure === undefined) others.push(record);
    else if (firsts.has(node)) failed.push(record);
    else firsts.set(node, record);
  }
  return [...others, ...firsts.values(), ...failed];
}

/**
 * Takes over all that there is of a job's tasks, which another scheduler has seen happen. A task is measured as its winner's
 * record is taken, with its other attempts: what those took is known before, of which the log says only that they were told
 * to stop.
 */
export function takeAll(deps: ChangesDeps, session: Session, records: TaskRecords, now: EpochMs): void {
  takeOutputs(session, records, now);
  const attempts = failuresLast(winnersLast(session.state, records.attempts));
  takeRecords(deps, session, { ...records, results: [], replicas: [], attempts }, now);
}

/**
 * Reads attempts and takes them over. They are seen when they are here, and were read when they were asked for: of a
 * scheduler that was frozen in between, nobody has been silent for as long as that took.
 */
async function readAttempts(
  deps: ChangesDeps,
  session: Session,
  ids: readonly AttemptId[],
  { now, what }: { readonly now: EpochMs; readonly what: 'records' | 'results' | 'outputs' },
): Promise<void> {
  const records = await deps.attempts.read(spaceOf(session), ids, what);
  takeRecords(deps, session, records, deps.clock.now());
  const seen = what === 'records' ? 'records' : 'outputs';
  observe(session, { kind: 'read', ids, at: now, what: seen });
}

async function readOutputs(
  deps: ChangesDeps,
  session: Session,
  ids: readonly AttemptId[],
  now: EpochMs,
): Promise<void> {
  const { state } = session;
  // Replicas are kept by attempts of cloned stages alone, and one that is not there costs as much as one that is.
  const isCloned = (id: AttemptId): boolean =>
    stageAt(state, taskOfAttempt(state, id).stage).clones !== undefined;
  for (const what of ['results', 'outputs'] as const) {
    const wanted = ids.filter((id) => isCloned(id) === (what === 'outputs'));
    if (wanted.length === 0) continue;
    await readAttempts(deps, session, wanted, { now, what });
  }
}

/** Whether there may be more to know of an attempt than is known: an end is told twice, late, or long after it was seen. */
function isOpen(state: JobState, id: AttemptId): boolean {
  if (!hasTask(state, taskOf(id))) return false;
  const attempt = state.attempts.get(id);
  const isSettled = attempt !== undefined && !isLive(attempt) && attempt.state !== 'lost';
  return !isSettled || taskOfAttempt(state, id).result === undefined;
}

/** Attempts of those that have ended without a result of their task that is known: it was written before their end. */
const unexplained = (state: JobState, ids: readonly AttemptId[]): AttemptId[] =>
  ids.filter((id) => {
    const attempt = state.attempts.get(id);
    return attempt?.state === 'done' && taskOfAttempt(state, id).result === undefined;
  });

/**
 * Reads what has happened since the last tick and takes it over: attempts of which a note came, with what their
 * tasks have come to, and those whose next report is due. What is seen hangs on no clock but this scheduler's. Costs
 * the job's inboxes, and what is told and due. Answers the inbox, which is cleared once the tick has acted on it.
 */
export async function readChanges(deps: ChangesDeps, session: Session, now: EpochMs): Promise<Inbox> {
  const { state } = session;
  const { tickMs, heartbeatMs } = deps.config;
  const space = spaceOf(session);
  const inbox = await deps.attempts.told(space);
  for (const key of inbox.unreadable ?? []) deps.log.warn('inbox-unreadable', { jobId: session.jobId, key });
  const told = inbox.notes.map(({ attemptId }) => attemptId).filter((id) => isOpen(state, id));
  const due = dueReads(state, { now, tickMs, reportMs: heartbeatMs });
  const closely = new Set([...told, ...due.outputs]);
  const records = due.records.filter((id) => !closely.has(id));
  if (records.length > 0) {
    await readAttempts(deps, session, records, { now, what: 'records' });
    // Whoever has ended has left something beside its record, or has seen another's result there.
    for (const id of records) {
      const attempt = state.attempts.get(id);
      if (attempt !== undefined && !isLive(attempt)) closely.add(id);
    }
  }
  await readOutputs(deps, session, [...closely], now);
  // Of one request for many items each is read at a time of its own.
  await readOutputs(deps, session, unexplained(state, [...closely]), now);
  return inbox;
}

/** Takes out of the job's inbox what a tick has acted on. Never throws: what stays is looked at once more. */
export async function clearInbox(deps: ChangesDeps, session: Session, inbox: Inbox): Promise<void> {
  if (inbox.notes.length === 0 && inbox.unreadable === undefined) return;
  await deps.attempts.clear(spaceOf(session), inbox).catch((cause: unknown) => {
    deps.log.warn('inbox-not-cleared', { jobId: session.jobId, cause: String(cause) });
  });
}
