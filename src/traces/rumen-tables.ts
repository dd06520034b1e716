import { traceRows } from './trace-fields.ts';
import type { TraceRow } from './trace-fields.ts';
import type { TraceAttempt, TraceOutcome, TracePlace } from './trace-job.ts';
import { badLine } from './trace-lines.ts';
import { withoutUndefined } from './without-undefined.ts';

/** Most tasks or attempts that are held in memory: all of a trace, since each of its tables is needed at once. */
const MAX_ROWS = 5_000_000;

/** A map or reduce with all its attempts. */
export interface RumenTask {
  readonly type: 'm' | 'r';
  readonly inputPlaces: readonly TracePlace[];
  readonly attempts: RumenAttempt[];
}

/** An attempt with its bytes; absent ones were not recorded. */
export interface RumenAttempt extends TraceAttempt {
  readonly finishedAtMs?: number;
  readonly bytesIn?: number;
  readonly bytesOut?: number;
}

/** Tasks by job, by type and number; in order of the table. */
export type RumenTasks = ReadonlyMap<string, ReadonlyMap<string, RumenTask>>;

/** Reads the table of tasks, then puts each attempt of the other table under its task. */
export async function readRumenTasks(tasksPath: string, attemptsPath: string): Promise<RumenTasks> {
  const jobs = new Map<string, Map<string, RumenTask>>();
  let rows = 0;
  for await (const row of traceRows(tasksPath, ['job', 'type', 'task', 'replica_hosts'])) {
    if (++rows > MAX_ROWS) throw badLine(row.line, `over ${MAX_ROWS} tasks`);
    const tasks = jobs.get(row.text('job')) ?? new Map<string, RumenTask>();
    jobs.set(row.text('job'), tasks);
    if (tasks.has(taskKey(row))) throw badLine(row.line, `task ${taskKey(row)} is there twice`);
    tasks.set(taskKey(row), { type: typeOf(row), inputPlaces: placesOf(row), attempts: [] });
  }
  rows = 0;
  for await (const row of traceRows(attemptsPath, ATTEMPT_COLUMNS)) {
    if (++rows > MAX_ROWS) throw badLine(row.line, `over ${MAX_ROWS} attempts`);
    const task = jobs.get(row.text('job'))?.get(taskKey(row));
    if (task === undefined)
      throw badLine(
        row.line,
        `attempt of task ${taskKey(row)} of job ${row.text('job')}, which is not in ${tasksPath}`,
      );
    task.attempts.push(attemptOf(row));
  }
  return jobs;
}

const ATTEMPT_COLUMNS = [
  'job',
  'type',
  'task',
  'attempt',
  'start_ms',
  'finish_ms',
  'result',
  'rack',
  'host',
  'hdfs_bytes_read',
  'map_output_bytes',
  'shuffle_bytes',
  'shuffle_done_ms',
  'sort_done_ms',
  'hdfs_bytes_written',
] as const;

const taskKey = (row: TraceRow): string => `${typeOf(row)}/${row.text('task')}`;

function typeOf(row: TraceRow): 'm' | 'r' {
  const type = row.text('type');
  if (type !== 'm' && type !== 'r')
    throw badLine(row.line, `type is ${JSON.stringify(type)}; expected m or r`);
  return type;
}

function placesOf(row: TraceRow): TracePlace[] {
  const text = row.text('replica_hosts');
  if (text === '') return [];
  return text.split('|').map((place) => {
    const [zone, node, ...more] = place.split(':');
    if (zone === undefined || node === undefined || more.length > 0) {
      throw badLine(row.line, `replica is ${JSON.stringify(place)}; expected rack:host`);
    }
    return { zone, node };
  });
}

const OUTCOMES: ReadonlyMap<string, TraceOutcome> = new Map([
  ['SUCCESS', 'succeeded'],
  ['FAILED', 'failed'],
  ['KILLED', 'killed'],
]);

/** Length of a recorded interval; absent if an end is unknown, or if the clocks of two machines make it negative. */
const span = (from: number | undefined, to: number | undefined): number | undefined =>
  from === undefined || to === undefined || to < from ? undefined : to - from;

function attemptOf(row: TraceRow): RumenAttempt {
  const outcome = OUTCOMES.get(row.text('result'));
  if (outcome === undefined) {
    throw badLine(
      row.line,
      `result is ${JSON.stringify(row.text('result'))}; expected SUCCESS, FAILED or KILLED`,
    );
  }
  const isMap = typeOf(row) === 'm';
  const startedAtMs = row.optionalNumber('start_ms');
  const finishedAtMs = row.optionalNumber('finish_ms');
  const shuffledAtMs = row.optionalNumber('shuffle_done_ms');
  const hdfsWritten = row.optionalNumber('hdfs_bytes_written', 0);
  return withoutUndefined({
    outcome,
    startedAtMs,
    finishedAtMs,
    durationMs: span(startedAtMs, finishedAtMs),
    shuffleMs: span(startedAtMs, shuffledAtMs),
    sortMs: span(shuffledAtMs, row.optionalNumber('sort_done_ms')),
    zone: row.text('rack') === '' ? undefined : row.text('rack'),
    node: row.text('host') === '' ? undefined : row.text('host'),
    bytesIn: row.optionalNumber(isMap ? 'hdfs_bytes_read' : 'shuffle_bytes', 0),
    bytesOut: isMap ? (row.optionalNumber('map_output_bytes', 0) ?? hdfsWritten) : hdfsWritten,
  });
}
