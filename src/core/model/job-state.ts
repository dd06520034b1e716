import { invariant } from '../../contracts/errors.ts';
import { type AttemptId, attemptParts, copiedFrom, type TaskId } from '../../contracts/ids.ts';
import type { AttemptRecord, TaskResult, UnreadableRecord } from '../../contracts/records.ts';
import type { EpochMs } from '../../contracts/units.ts';
import type { Worker } from '../../contracts/job-spec.ts';
import { outputPlace } from '../../contracts/worker-places.ts';
import { compactResult, sameNumbers } from './compact-index.ts';
import type { CancelReason, LaunchReason } from './decision.ts';
import { launchAnew } from './launches.ts';
import { measure, measureWinner } from './measure-attempts.ts';
import { forgetPlace, goOn, passOn, ride, ridersOf, seatAnew, settlePlace, unseat } from './packs.ts';
import { createStageStatistics, recordInputs } from './stage-statistics.ts';
import {
  type AttemptView,
  isLive,
  isUnclaimed,
  type JobState,
  type LaunchOrder,
  type StageClones,
  type StageShape,
  type StageView,
  type TaskView,
} from './job-view.ts';
import { isNews, newAttempt, takeFields } from './attempt-news.ts';
import { suspectInputs, suspectPart } from './lost-outputs.ts';
import { countFailure, judge, recount } from './strikes.ts';
import { newTask } from './new-task.ts';
import { noteWork, noteWorkOf } from './signs-of-work.ts';
import { oweFirsts, settleOwed } from './owed-tasks.ts';
import { leastCopies } from './upstream-copies.ts';

/** A job before anything has happened. Stages must come after those they read. */
export function createJobState(
  shapes: readonly StageShape[],
  launchOrder: LaunchOrder = 'largest-first',
): JobState {
  const stages = shapes.map((shape, index): StageView => {
    invariant(
      shape.upstream.every((other) => other < index),
      'stages are not in topological order',
      { index },
    );
    const tasks = Array.from({ length: shape.tasks }, (_, task) =>
      newTask(index, task, shape.sourceBytes[task] ?? 0),
    );
    return {
      shape,
      index,
      tasks,
      state: 'waiting',
      done: 0,
      statistics: createStageStatistics(),
      order: [],
      nextFirst: 0,
      unstarted: 0,
      retryable: new Set(),
      replicated: [],
      revision: 0,
      outdated: new Set(),
    };
  });
  return {
    stages,
    live: new Set(),
    riding: new Set(),
    packs: new Map(),
    unsure: new Set(),
    attempts: new Map(),
    launchOrder,
    nodes: new Map(),
    justDone: [],
    copied: new Map(),
    suspects: new Map(),
  };
}

/** The stage of a job by place; a wrong place is our bug. */
export function stageAt(state: JobState, index: number): StageView {
  const stage = state.stages[index];
  invariant(stage !== undefined, 'no such stage', { index });
  return stage;
}

/** The task of a stage by place; a wrong place is our bug. */
export function taskAt(state: JobState, stage: number, index: number): TaskView {
  const task = stageAt(state, stage).tasks[index];
  invariant(task !== undefined, 'no such task', { stage, index });
  return task;
}

/**
 * Opens a stage whose inputs are complete; a second time (replay of the log) has no effect. `inputBytes[i]` is what
 * task i reads from stages. Who takes a job over knows results before the log: a stage that is done stays so.
 */
export function openStage(state: JobState, index: number, inputBytes: readonly number[], now: EpochMs): void {
  const stage = stageAt(state, index);
  if (stage.openedAt !== undefined) return;
  if (stage.state === 'waiting') stage.state = 'open';
  stage.openedAt = now;
  for (const task of stage.tasks) task.inputBytes += inputBytes[task.index] ?? 0;
  recordInputs(stage.statistics, stage.tasks);
  const bySize = state.launchOrder === 'largest-first';
  stage.order = stage.tasks
    .toSorted((a, b) => (bySize ? b.inputBytes - a.inputBytes : 0) || a.index - b.index)
    .map((task) => task.index);
  oweFirsts(stage);
}

const stageIndexOf = (state: JobState, name: string): number =>
  state.stages.findIndex((stage) => stage.shape.name === name);

/** The task of an attempt by id. Throws where the job has no such task. */
export function taskOfAttempt(state: JobState, id: AttemptId): TaskView {
  const known = state.attempts.get(id);
  if (known !== undefined) return taskAt(state, known.stage, known.task);
  const { stage, task } = attemptParts(id);
  return taskAt(state, stageIndexOf(state, stage), task);
}

/**
 * Records that an attempt was decided on, with what it runs on where that is not its stage's own worker, and behind
 * whom it rides, if it does. A second time (replay of the log) has no effect, but that one that rode may get a place of
 * its own, or ride behind another, and one that was withdrawn another worker.
 */
export function addAttempt(
  state: JobState,
  id: AttemptId,
  reason: LaunchReason,
  now: EpochMs,
  worker?: Worker,
  behind?: AttemptId,
): void {
  const known = state.attempts.get(id);
  if (known !== undefined) {
    if (behind === undefined) launchAnew(known, { reason, worker, now });
    seatAnew(state, known, behind, now);
    return;
  }
  const task = taskOfAttempt(state, id);
  const { attempt: number } = attemptParts(id);
  invariant(number === task.attempts.length, 'attempts are numbered without gaps', {
    id,
    expected: task.attempts.length,
  });
  const attempt = newAttempt({
    id,
    task,
    number,
    reason,
    worker,
    now,
    hasOwnCopies: leastCopies(state, task) > number,
  });
  task.attempts.push(attempt);
  state.attempts.set(id, attempt);
  if (behind !== undefined) ride(state, attempt, behind, now);
  state.firstLaunchAt ??= now;
  if (reason === 'backup') stageAt(state, task.stage).statistics.lastBackupAt = now;
  settle(state, task, attempt);
}

/** Keeps the indexes true after any change of an attempt or its task. */
function settle(state: JobState, task: TaskView, attempt: AttemptView): void {
  settlePlace(state, attempt);
  settleOwed(stageAt(state, task.stage), task);
}

/**
 * Undoes a launch for which there was no room: the attempt's id is used again after `notBefore`, and so are those of
 * attempts that ride behind it. One that rode before rides on, since the worker that it rode with may yet take it up.
 */
export function withdrawAttempt(state: JobState, id: AttemptId, notBefore: EpochMs): void {
  const attempt = state.attempts.get(id);
  if (attempt === undefined || attempt.state !== 'launched') return;
  const task = taskOfAttempt(state, id);
  if (attempt.place === 'own') {
    unseat(state, attempt, notBefore);
    task.notBefore = notBefore;
    return;
  }
  if (task.attempts.at(-1) !== attempt) return; // A later attempt was numbered after it: it times out instead.
  for (const rider of ridersOf(state, id)) withdrawAttempt(state, rider.id, notBefore);
  task.attempts.pop();
  state.attempts.delete(id);
  forgetPlace(state, attempt);
  task.notBefore = notBefore;
  settleOwed(stageAt(state, task.stage), task);
}

/** Takes over what the store says of an attempt. Older news and repeated news have no effect. */
export function applyAttempt(state: JobState, record: AttemptRecord, now: EpochMs): void {
  const attempt = state.attempts.get(record.attemptId);
  // Created for a launch that was withdrawn, or by a scheduler whose log entry never became visible to us.
  if (attempt === undefined) return;
  attempt.unreadable = undefined;
  attempt.recordedAt ??= record.launchedAt;
  noteWorkOf(state, record);
  if (record.claimedAt !== undefined) attempt.isHeldBack = undefined;
  const task = taskOfAttempt(state, record.attemptId);
  if (record.outputLostAt !== undefined) suspectPart(state, task, attempt);
  const isResumed = wasBegun(record) && resumeAttempt(state, attempt.id, now);
  // Given up; only a success is still welcome.
  if (attempt.state === 'lost' && record.state !== 'done') takeLoss(state, task, record, now);
  else if (isResumed || isNews(attempt, record)) takeNews(state, task, record, now);
}

/** Whether a launch that was given up unclaimed had been taken up just before, by what its record says. */
const wasBegun = ({ state }: AttemptRecord): boolean =>
  state === 'running' || state === 'failed' || state === 'cancelled';

/** What is learnt of an attempt once it was given up may tell why, and counts as if it had been known before. */
function learnLate(state: JobState, task: TaskView, attempt: AttemptView, learn: () => void): void {
  const stage = stageAt(state, task.stage);
  const { failure } = attempt;
  recount(stage, task, attempt, learn);
  if (failure !== undefined || attempt.failure === undefined) return;
  judge(state, stage, task, attempt);
  suspectInputs(state, task, attempt);
}

/**
 * Takes over what the store says of an attempt that was given up: why it came to nothing, if that was not known, and what it
 * did till then. Whoever takes the job over has learnt from the log that it was given up before anything that it did.
 */
function takeLoss(state: JobState, task: TaskView, record: AttemptRecord, now: EpochMs): void {
  const attempt = state.attempts.get(record.attemptId);
  if (attempt === undefined) return;
  learnLate(state, task, attempt, () => {
    const { failure = record.failure, claimedAt } = attempt;
    if (record.claimedAt !== undefined && !isLive(record) && record.beat >= attempt.beat) {
      attempt.beat = record.beat;
      if (record.state !== 'lost') attempt.seenAt = now;
      takeFields(attempt, record);
      const before = claimedAt === undefined ? 'launched' : attempt.state;
      measure(state, stageAt(state, task.stage), task, { attempt, before, now });
    }
    attempt.failure = failure;
  });
}

function takeNews(state: JobState, task: TaskView, record: AttemptRecord, now: EpochMs): void {
  const attempt = state.attempts.get(record.attemptId);
  if (attempt === undefined) return;
  const before = attempt.state;
  attempt.state = record.state;
  attempt.seenAt = now;
  attempt.beat = record.beat;
  takeFields(attempt, record);
  measure(state, stageAt(state, task.stage), task, { attempt, before, now });
  if ((record.state === 'failed' || record.state === 'lost') && before !== 'failed' && before !== 'lost') {
    countFailure(stageAt(state, task.stage), task, attempt);
    judge(state, stageAt(state, task.stage), task, attempt);
    suspectInputs(state, task, attempt);
  }
  settle(state, task, attempt);
  if (before !== attempt.state) passOn(state, attempt, now);
}

/** What the failure of an attempt is whose record cannot be read, and that has none of its own. */
function blameRecord(attempt: AttemptView): void {
  if (attempt.unreadable !== undefined)
    attempt.failure ??= { cause: 'unreadable', message: attempt.unreadable };
}

/** Whether the job has such a task. */
export function hasTask(state: JobState, id: TaskId): boolean {
  const at = id.lastIndexOf('/');
  return state.stages[stageIndexOf(state, id.slice(0, at))]?.tasks[Number(id.slice(at + 1))] !== undefined;
}

/**
 * Takes over that a record cannot be read. Its attempt is to be given up, unless it has ended. A task whose result
 * cannot be read fails the job: no other attempt can take the result's place.
 */
export function applyUnreadable(
  state: JobState,
  { key, why, attemptId, taskId, kind }: UnreadableRecord,
): void {
  const message = `the record ${key} cannot be read: ${why}`;
  if (kind === 'attempt' && attemptId !== undefined) {
    const attempt = state.attempts.get(attemptId);
    if (attempt === undefined) return;
    attempt.unreadable = message;
    // Whoever takes the job over knows from the log that it was given up, and from here why.
    if (attempt.state === 'lost')
      learnLate(state, taskOfAttempt(state, attemptId), attempt, () => {
        blameRecord(attempt);
      });
  }
  if (kind !== 'result' || taskId === undefined || !hasTask(state, taskId)) return;
  const { stage, task } = attemptParts(`${taskId}/0` as AttemptId);
  if (taskAt(state, stageIndexOf(state, stage), task).result !== undefined) return;
  state.fatal ??= { stage, task, failure: { cause: 'unreadable', message } };
}

/** Takes over a committed result: the first of a task counts whose output is not lost, repeats have no effect. */
export function applyResult(state: JobState, result: TaskResult, now: EpochMs): void {
  const task = taskOfAttempt(state, result.attemptId);
  task.recorded = result.attemptId;
  if (task.lostOutputs.includes(attemptParts(result.attemptId).attempt)) return;
  const attempt = state.attempts.get(result.attemptId);
  // Also on a repeat: whoever takes a job over knows results before the log, and so before attempts.
  if (attempt !== undefined && result.worker !== undefined) attempt.keeps = true;
  if (task.result !== undefined) return;
  task.result = compactResult(result);
  noteWork(state, result.committedAt);
  const stage = stageAt(state, task.stage);
  settleOwed(stage, task);
  stage.done += 1;
  state.justDone.push(task);
  measureWinner(state, stage, task);
  if (stage.done === stage.tasks.length) {
    stage.state = 'done';
    stage.doneAt = now;
    if (state.stages.every((each) => each.state === 'done')) state.doneAt = now;
  }
}

/**
 * Takes over a result that was kept beside the task's own. It counts as a replica only if it has the same bytes, by
 * length and CRC of every partition: readers of one stage may then read different copies, even of a task whose
 * attempts do not all write the same.
 */
export function applyReplica(state: JobState, replica: TaskResult): void {
  const { attemptId, partitions, zone, worker } = replica;
  const task = taskOfAttempt(state, attemptId);
  const { attempt } = attemptParts(attemptId);
  const { result } = task;
  if (result === undefined || result.attemptId === attemptId || task.replicas.includes(attempt)) return;
  // Whoever takes a job over finds its record still. A copy of what is lost may be a copy of what was harmed.
  const original = copiedFrom(attempt);
  if (task.lostOutputs.some((number) => number === attempt || number === original)) return;
  const isSame =
    sameNumbers(partitions?.lengths, result.partitions?.lengths) &&
    sameNumbers(partitions?.crcs, result.partitions?.crcs);
  if (!isSame) return;
  const { replicated } = stageAt(state, task.stage);
  replicated[task.replicas.length] = (replicated[task.replicas.length] ?? 0) + 1;
  task.replicas.push(attempt);
  if (zone !== undefined || worker !== undefined)
    task.replicaPlaces = new Map([...(task.replicaPlaces ?? []), [attempt, outputPlace(replica)]]);
}

/** Takes back that a launch was given up, if it was: a worker had taken it up just before. Answers whether it did. */
export function resumeAttempt(state: JobState, id: AttemptId, now: EpochMs): boolean {
  const attempt = state.attempts.get(id);
  if (attempt === undefined || attempt.state !== 'lost' || !isUnclaimed(attempt)) return false;
  attempt.state = 'running';
  attempt.cancelOrdered = false;
  attempt.cancelReason = undefined;
  attempt.cancelledAt = undefined;
  attempt.seenAt = now;
  attempt.endedAt = undefined;
  settle(state, taskOfAttempt(state, id), attempt);
  goOn(state, attempt, now);
  return true;
}

/** Gives an attempt up. */
export function loseAttempt(state: JobState, id: AttemptId, now: EpochMs): void {
  const attempt = state.attempts.get(id);
  if (attempt === undefined || !isLive(attempt)) return;
  attempt.state = 'lost';
  attempt.cancelOrdered = true;
  attempt.endedAt = now;
  blameRecord(attempt);
  const task = taskOfAttempt(state, id);
  countFailure(stageAt(state, task.stage), task, attempt);
  judge(state, stageAt(state, task.stage), task, attempt);
  settle(state, task, attempt);
  passOn(state, attempt, now);
}

/** Has a stage cloned; what was decided first counts. */
export function cloneStage(state: JobState, index: number, clones: StageClones): void {
  stageAt(state, index).clones ??= clones;
}

/** Takes a stage's clones away for good; no effect on one that is not cloned, nor a second time. */
export function preemptClones(state: JobState, index: number): void {
  const stage = stageAt(state, index);
  if (stage.clones !== undefined) stage.clones = { ...stage.clones, preempted: true };
}

/** Marks an attempt as told to stop. One that has not claimed itself never will: it frees its slot at once. */
export function cancelAttempt(state: JobState, id: AttemptId, now: EpochMs, reason: CancelReason): void {
  const attempt = state.attempts.get(id);
  if (attempt === undefined) return;
  attempt.cancelOrdered = true;
  attempt.cancelReason ??= reason;
  attempt.cancelledAt ??= now;
  if (attempt.state !== 'launched') return;
  state.unsure.add(attempt);
  attempt.state = 'cancelled';
  attempt.endedAt = now;
  settle(state, taskOfAttempt(state, id), attempt);
  passOn(state, attempt, now);
}
