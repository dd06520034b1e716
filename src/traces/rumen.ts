import { readRumenTasks } from './rumen-tables.ts';
import type { RumenAttempt, RumenTask } from './rumen-tables.ts';
import { traceRows } from './trace-fields.ts';
import type { TraceAttempt, TraceJob, TraceStage, TraceTask } from './trace-job.ts';
import { badLine } from './trace-lines.ts';
import { withoutUndefined } from './without-undefined.ts';

/** The three tables of a Rumen set. */
export interface RumenPaths {
  readonly jobs: string;
  readonly tasks: string;
  readonly attempts: string;
}

/**
 * Hadoop jobs with every attempt, its rack and host, and the replicas of every map's input; in order of submit.
 * Stages are `map` and `reduce` (the latter if there are reduces).
 *
 * A task's `workMs` is that of its first successful attempt. A reduce starts before the maps have ended and then
 * waits for them, so its work counts from the end of the job's last map; a job whose maps did not all succeed
 * has no such end, and its reduces no `workMs`. Tasks that never succeeded have attempts but no work.
 *
 * Starts and ends were stamped by machines whose clocks differ by up to some minutes: compare durations, not
 * points in time; intervals that come out negative are absent.
 *
 * Source: Hadoop's Rumen traces for Mumak; Yahoo, 2009.
 */
export async function* readRumen(paths: RumenPaths): AsyncGenerator<TraceJob, void, void> {
  const tasksOf = await readRumenTasks(paths.tasks, paths.attempts);
  for await (const row of traceRows(paths.jobs, ['job', 'submit_ms'])) {
    const id = row.text('job');
    const tasks = [...(tasksOf.get(id)?.values() ?? [])];
    if (tasks.length === 0)
      throw badLine(row.line, `job ${JSON.stringify(id)} has no task in ${paths.tasks}`);
    yield { id, submittedAtMs: row.number('submit_ms'), stages: stagesOf(tasks) };
  }
}

function stagesOf(tasks: readonly RumenTask[]): TraceStage[] {
  const maps = tasks.filter((task) => task.type === 'm');
  const reduces = tasks.filter((task) => task.type === 'r');
  const inputAtMs = maps.map((task) => winner(task)?.finishedAtMs);
  const allMappedAtMs = inputAtMs.includes(undefined)
    ? undefined
    : inputAtMs.reduce<number>((latest, at) => Math.max(latest, at ?? -Infinity), -Infinity);
  const stages: TraceStage[] = [];
  if (maps.length > 0) {
    stages.push({
      name: 'map',
      tasks: maps.map((task) => taskOf(task, winner(task)?.durationMs)),
      upstream: [],
    });
  }
  if (reduces.length > 0) {
    stages.push({
      name: 'reduce',
      tasks: reduces.map((task) => taskOf(task, workAfter(winner(task), allMappedAtMs))),
      upstream: stages.length === 0 ? [] : [0],
    });
  }
  return stages;
}

const winner = (task: RumenTask): RumenAttempt | undefined =>
  task.attempts.find((attempt) => attempt.outcome === 'succeeded');

/** Time that an attempt ran on when all its input existed. */
function workAfter(attempt: RumenAttempt | undefined, allMappedAtMs: number | undefined): number | undefined {
  if (attempt?.startedAtMs === undefined || attempt.finishedAtMs === undefined) return undefined;
  if (allMappedAtMs === undefined) return undefined;
  const workMs = attempt.finishedAtMs - Math.max(attempt.startedAtMs, allMappedAtMs);
  return workMs < 0 ? undefined : workMs;
}

function taskOf(task: RumenTask, workMs: number | undefined): TraceTask {
  const won = winner(task);
  return withoutUndefined({
    workMs,
    inputBytes: won?.bytesIn,
    outputBytes: won?.bytesOut,
    inputPlaces: task.inputPlaces.length === 0 ? undefined : task.inputPlaces,
    attempts: task.attempts.map(publicAttempt),
  });
}

function publicAttempt(attempt: RumenAttempt): TraceAttempt {
  const { outcome, startedAtMs, durationMs, shuffleMs, sortMs, zone, node } = attempt;
  return withoutUndefined({ outcome, startedAtMs, durationMs, shuffleMs, sortMs, zone, node });
}
