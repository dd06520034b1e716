import { type AttemptId, attemptIdOf, attemptParts, copiedFrom } from '../../contracts/ids.ts';
import type { LossKind } from '../../contracts/records.ts';
import { type OutputPlace, outputPlace } from '../../contracts/worker-places.ts';
import { newAttempt } from './attempt-news.ts';
import { readersOf } from './edge-manifest.ts';
import type { AttemptView, JobState, StageView, Suspicion, TaskView } from './job-view.ts';
import { settleOwed } from './owed-tasks.ts';

/**
 * Outputs that are gone. A reader that does not find one fails, and says which: it is suspected. Whoever schedules looks
 * at the object, and either decides that it is lost, or the reader has failed by its own fault. An output is named by the
 * attempt that wrote it, so that a report which comes late, when the task was done again, is about nothing any more.
 */

/** Whether a task is to be done again since its output is gone, and was not launched since. */
export const isRedone = ({ since, attempts }: TaskView): boolean => since > 0 && attempts.length === since;

/** How often the output of a task was lost, no copy left, so that it was to be done again. */
export function timesRedone(task: TaskView): number {
  // Nearly every task.
  if (task.lostOutputs.length === 0) return 0;
  const launched = task.attempts.filter(({ reason }) => reason === 'recompute').length;
  return launched + (isRedone(task) ? 1 : 0);
}

const stageNamed = (state: JobState, name: string): StageView | undefined =>
  state.stages.find(({ shape }) => shape.name === name);

/** The task whose output an attempt has left, if that is one which is read now: its winner's, or a replica. */
export function taskWithOutput(state: JobState, id: AttemptId): TaskView | undefined {
  const { stage, task: index, attempt } = attemptParts(id);
  const task = stageNamed(state, stage)?.tasks[index];
  if (task === undefined || task.result === undefined) return undefined;
  return task.result.attemptId === id || task.replicas.includes(attempt) ? task : undefined;
}

/** Where an output is that is read now; nothing said of one in the data bucket. */
export function placeOfOutput(state: JobState, id: AttemptId): OutputPlace {
  const task = taskWithOutput(state, id);
  if (task?.result?.attemptId === id) return task.result;
  return task?.replicaPlaces?.get(attemptParts(id).attempt) ?? {};
}

/**
 * Whether an output is known to be lost, or is a copy that is read no more since what it was made of is: it went with that, or
 * as its task was to be done again.
 */
function isKnownLost(state: JobState, id: AttemptId): boolean {
  const { stage, task: index, attempt } = attemptParts(id);
  const task = stageNamed(state, stage)?.tasks[index];
  if (task === undefined) return false;
  if (task.lostOutputs.includes(attempt)) return true;
  if (taskWithOutput(state, id) !== undefined) return false;
  for (let of = copiedFrom(attempt); of !== undefined; of = copiedFrom(of))
    if (task.lostOutputs.includes(of)) return true;
  return false;
}

/**
 * Takes over which outputs a failed attempt did not find. What is not read any more is nobody's loss; one that names
 * neither what is read nor what was lost has failed by its own fault.
 */
export function suspectInputs(state: JobState, task: TaskView, reader: AttemptView): void {
  if (reader.failure?.cause !== 'input-lost') return;
  const { lost = [] } = reader.failure;
  for (const each of lost) {
    if (taskWithOutput(state, each.attemptId) === undefined) continue;
    const known = state.suspects.get(each.attemptId);
    if (known === undefined) state.suspects.set(each.attemptId, { ...each, by: [reader] });
    else if (!known.by.includes(reader)) known.by.push(reader);
  }
  const isAbout = lost.some(({ attemptId: id }) => state.suspects.has(id) || isKnownLost(state, id));
  if (!isAbout && reader.number >= task.since) task.failures += 1;
}

/** Takes over that the part of the output that an attempt has left cannot be made visible. */
export function suspectPart(state: JobState, task: TaskView, { id }: AttemptView): void {
  if (task.lostOutputs.includes(attemptParts(id).attempt) || state.suspects.has(id)) return;
  state.suspects.set(id, { attemptId: id, how: 'unpublished', offset: 0, length: 0, crc: 0, by: [] });
}

/** Stages that read another, with the place of their input. */
function* consumersOf(state: JobState, producer: number): Generator<{ consumer: StageView; input: number }> {
  for (const consumer of state.stages)
    for (const [input, place] of consumer.shape.upstream.entries())
      if (place === producer) yield { consumer, input };
}

/**
 * Whether anybody needs the output of a task still: a task that reads it and has no result, or is about to lose it
 * (`reopening`); of the last stage, whoever publishes.
 */
export function isNeeded(
  state: JobState,
  task: TaskView,
  reopening: ReadonlySet<TaskView> = new Set(),
): boolean {
  if (task.stage === state.stages.length - 1) return true;
  for (const { consumer, input } of consumersOf(state, task.stage)) {
    if (consumer.state === 'done' && reopening.size === 0) continue;
    const { shape, tasks, done } = consumer;
    const pattern = shape.patterns?.[input] ?? 'all-to-all';
    const producerTasks = state.stages[task.stage]?.tasks.length ?? 0;
    const { from, to } = readersOf({ pattern, producerTasks }, task.index, shape.tasks);
    const isReadByAll = from === 0 && to === shape.tasks;
    // Asked of each output of a stage, it costs no look at each reader.
    if (isReadByAll && done < tasks.length) return true;
    const isMissing = (each: TaskView): boolean => each.result === undefined || reopening.has(each);
    if (tasks.slice(from, isReadByAll ? tasks.length : to).some(isMissing)) return true;
  }
  return false;
}

/** Whether the tasks of a stage wait until what they read was made again, or was looked at. */
export function awaitsInputs(state: JobState, { outdated, shape }: StageView): boolean {
  if (outdated.size > 0) return true;
  for (const id of state.suspects.keys()) {
    const producer = stageNamed(state, attemptParts(id).stage);
    if (producer !== undefined && shape.upstream.includes(producer.index)) return true;
  }
  return false;
}

/** Whether any of what a reader did not find is suspected still, on its word too, or is known to be lost. */
const mayBeRight = (state: JobState, reader: AttemptView): boolean =>
  reader.failure?.lost?.some(
    ({ attemptId: id }) => state.suspects.get(id)?.by.includes(reader) === true || isKnownLost(state, id),
  ) === true;

/** Attempts of a task that are forgiven for having said in vain that nobody answers. */
const forgivenPerTask = 4;

/** Whether a reader has said no more than that nobody answers: which may have been so, and passed. */
const saidUnreachable = ({ failure }: AttemptView): boolean =>
  failure?.cause === 'input-lost' && failure.lost?.every(({ how }) => how === 'unreachable') === true;

/** It hangs on records alone, and not on what of them is known: whoever takes the job over knows all at once. */
const isForgiven = ({ attempts }: TaskView, reader: AttemptView): boolean =>
  saidUnreachable(reader) &&
  attempts.filter((each) => each.number <= reader.number && saidUnreachable(each)).length <= forgivenPerTask;

/** Of some attempts of a task, how many followed one another: each was claimed once the one before had ended. */
function inSuccession(attempts: readonly AttemptView[]): number {
  let [count, before] = [0, -Infinity];
  for (const { claimedAt, endedAt } of attempts.toSorted((a, b) => (a.endedAt ?? 0) - (b.endedAt ?? 0))) {
    if (claimedAt === undefined || endedAt === undefined || claimedAt < before) continue;
    [count, before] = [count + 1, endedAt];
  }
  return count;
}

/**
 * How many attempts of one task, one after the other, have said of an output that nobody answers where it is: of the task
 * with most of them, by output. The first was looked into before the second began; copies, and readers of other tasks,
 * may all have met what has passed. It follows from their records, so that whoever takes the job over knows the same.
 */
export function unreachedBy({ stages }: JobState): ReadonlyMap<AttemptId, number> {
  const most = new Map<AttemptId, number>();
  for (const { attempts } of stages.flatMap(({ tasks }) => tasks)) {
    const readers = new Map<AttemptId, AttemptView[]>();
    for (const attempt of attempts) {
      if (attempt.failure?.cause !== 'input-lost') continue;
      const named = (attempt.failure.lost ?? []).filter(({ how }) => how === 'unreachable');
      for (const id of new Set(named.map(({ attemptId }) => attemptId)))
        readers.set(id, [...(readers.get(id) ?? []), attempt]);
    }
    for (const [id, each] of readers) most.set(id, Math.max(most.get(id) ?? 0, inSuccession(each)));
  }
  return most;
}

/**
 * A suspected output is there: whoever has failed for want of it has done so by its own fault, which counts against its
 * task: once, however many outputs it has named, and only where none of them is gone; not that it has said, of no
 * more than some of its attempts, that nobody answers. One that S3 refuses to give though it is there fails the job.
 */
export function refute(state: JobState, id: AttemptId): void {
  const suspicion = state.suspects.get(id);
  if (!state.suspects.delete(id) || suspicion === undefined) return;
  for (const reader of suspicion.by) {
    const task = state.stages[reader.stage]?.tasks[reader.task];
    if (task === undefined || task.result !== undefined || reader.number < task.since) continue;
    if (!mayBeRight(state, reader) && !isForgiven(task, reader)) task.failures += 1;
    if (suspicion.how !== 'denied') continue;
    const failure = { cause: 'access-denied', message: reader.failure?.message ?? '' } as const;
    state.fatal ??= { stage: attemptParts(reader.id).stage, task: task.index, failure };
  }
}

/** Drops suspicions of outputs that nobody needs, or that are not read any more. Answers the others. */
export function openSuspicions(state: JobState): readonly Suspicion[] {
  for (const id of state.suspects.keys()) {
    const task = taskWithOutput(state, id);
    if (task === undefined || !isNeeded(state, task)) state.suspects.delete(id);
  }
  return [...state.suspects.values()];
}

/** Losses after which what was copied from the lost output has to be doubted: it may have been harmed before. */
export const isCopiedToo = (how: LossKind): boolean => how === 'damaged' || how === 'short';

/**
 * An output is gone, as was decided; a second time (replay of the log) has no effect. Readers go by the replica `use`, if
 * one is named; else the task is to be done again. Whoever reads it needs other lists of inputs. A copy of what was harmed
 * is a replica no more.
 */
export function loseOutput(state: JobState, id: AttemptId, use?: number, how: LossKind = 'missing'): void {
  state.suspects.delete(id);
  const { stage: name, task: index, attempt: number } = attemptParts(id);
  const stage = stageNamed(state, name);
  const task = stage?.tasks[index];
  if (stage === undefined || task === undefined || task.lostOutputs.includes(number)) return;
  task.lostOutputs.push(number);
  if (isCopiedToo(how))
    for (const copy of [...task.replicas]) if (copiedFrom(copy) === number) dropReplica(stage, task, copy);
  const attempt = state.attempts.get(id);
  if (attempt?.keeps === true) attempt.keeps = false;
  if (task.replicas.includes(number)) {
    dropReplica(stage, task, number);
    return;
  }
  const place = use === undefined ? undefined : task.replicaPlaces?.get(use);
  if (use !== undefined) dropReplica(stage, task, use);
  for (const { consumer } of consumersOf(state, stage.index))
    if (consumer.openedAt !== undefined) consumer.outdated.add(task);
  // Whoever takes a job over may know the result already that was made in its place.
  if (task.result?.attemptId !== id) return;
  if (use === undefined) {
    reopen(state, stage, task);
    return;
  }
  const kept = { ...task.result, attemptId: attemptIdOf(name, index, use) };
  delete kept.zone;
  delete kept.worker;
  task.result = { ...kept, ...outputPlace(place ?? {}) };
}

function dropReplica({ replicated }: StageView, { replicas }: TaskView, number: number): void {
  const place = replicas.indexOf(number);
  if (place < 0) return;
  replicas.splice(place, 1);
  replicated[replicas.length] = (replicated[replicas.length] ?? 1) - 1;
}

/**
 * The winner of a task that is done again may be one whose launch was withdrawn: its number is used, and no worker could begin
 * under it. Only here, since whoever takes a job over knows results before the log: of those attempts the log tells more.
 */
function knowWinner(state: JobState, task: TaskView): void {
  const { attempts, result } = task;
  if (result === undefined || state.attempts.has(result.attemptId)) return;
  const { attemptId: id, committedAt: now } = result;
  const { attempt: number } = attemptParts(id);
  if (number !== attempts.length) return;
  const reason = isRedone(task) ? 'recompute' : number === 0 ? 'first' : 'retry';
  const winner = newAttempt({ id, task, number, reason, worker: undefined, now, hasOwnCopies: false });
  winner.state = 'done';
  attempts.push(winner);
  state.attempts.set(id, winner);
}

function reopen(state: JobState, stage: StageView, task: TaskView): void {
  for (const number of [...task.replicas]) dropReplica(stage, task, number);
  knowWinner(state, task);
  delete task.result;
  task.since = task.attempts.length;
  task.failures = 0;
  stage.done -= 1;
  if (stage.state === 'done') stage.state = 'open';
  delete stage.doneAt;
  delete state.doneAt;
  const place = state.justDone.indexOf(task);
  if (place >= 0) state.justDone.splice(place, 1);
  settleOwed(stage, task);
}

/** The lists of what a stage's tasks read were written anew, as `revision`; an older one has no effect. */
export function renewInputs(stage: StageView, revision: number): void {
  if (revision <= stage.revision) return;
  stage.revision = revision;
  stage.outdated.clear();
}
