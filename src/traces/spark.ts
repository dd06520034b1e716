import { orderStages } from './stage-order.ts';
import { traceRows } from './trace-fields.ts';
import type { TraceRow } from './trace-fields.ts';
import type { TraceJob, TraceTask } from './trace-job.ts';
import { badLine } from './trace-lines.ts';
import { withoutUndefined } from './without-undefined.ts';

/** The two tables of the Spark task logs. */
export interface SparkPaths {
  readonly stages: string;
  readonly tasks: string;
}

/** The stages that a run declares: parents by Spark's id. */
type DeclaredStages = Map<string, { readonly row: TraceRow; readonly parents: readonly string[] }>;
const newDeclaredStages = (): DeclaredStages => new Map();

const TASK_COLUMNS = [
  'log',
  'stage',
  'task',
  'start_ms',
  'finish_ms',
  'executor',
  'run_ms',
  'status',
  'input_bytes',
  'shuffle_read_bytes',
  'shuffle_written_bytes',
] as const;

/**
 * Runs of the Big Data Benchmark on Spark, each log a job. A task has one attempt, on node `executor-<n>`;
 * `workMs` is its time in the executor. `inputBytes` (file or *remote* shuffled bytes) and `outputBytes` (shuffle
 * written) are absent where the log has none. Stages of which no task was logged are left out. Arrivals are
 * absent, since each log has a clock of its own.
 *
 * Source: Ousterhout et al., NSDI 2015.
 */
export async function* readSpark(paths: SparkPaths): AsyncGenerator<TraceJob, void, void> {
  const declared = await readStages(paths.stages);
  const finished = new Set<string>();
  let log: string | undefined;
  let tasks = new Map<string, TraceTask[]>();
  for await (const row of traceRows(paths.tasks, TASK_COLUMNS)) {
    if (row.text('log') !== log) {
      if (log !== undefined) yield jobOf(log, tasks, declared.get(log));
      finished.add(log ?? '');
      log = row.text('log');
      tasks = new Map();
      if (finished.has(log)) throw badLine(row.line, `rows of log ${JSON.stringify(log)} are not together`);
    }
    const stage = row.text('stage');
    if (declared.get(log)?.has(stage) !== true) {
      throw badLine(row.line, `stage ${stage} of log ${log} is not in ${paths.stages}`);
    }
    const siblings = tasks.get(stage);
    if (siblings === undefined) tasks.set(stage, [taskOf(row)]);
    else siblings.push(taskOf(row));
  }
  if (log !== undefined) yield jobOf(log, tasks, declared.get(log));
}

async function readStages(path: string): Promise<ReadonlyMap<string, DeclaredStages>> {
  const logs = new Map<string, DeclaredStages>();
  for await (const row of traceRows(path, ['log', 'stage', 'parents'])) {
    const stages = logs.get(row.text('log')) ?? newDeclaredStages();
    logs.set(row.text('log'), stages);
    if (stages.has(row.text('stage'))) throw badLine(row.line, `stage ${row.text('stage')} is there twice`);
    stages.set(row.text('stage'), {
      row,
      parents: row
        .text('parents')
        .split('|')
        .filter((id) => id !== ''),
    });
  }
  return logs;
}

function taskOf(row: TraceRow): TraceTask {
  const startedAtMs = row.number('start_ms');
  const outcome = row.text('status') === 'SUCCESS' ? 'succeeded' : 'failed';
  const node = row.text('executor');
  return withoutUndefined({
    workMs: outcome === 'succeeded' ? row.number('run_ms', 0) : undefined,
    inputBytes: row.optionalNumber('input_bytes', 0) ?? row.optionalNumber('shuffle_read_bytes', 0),
    outputBytes: row.optionalNumber('shuffle_written_bytes', 0),
    attempts: [
      withoutUndefined({
        outcome,
        startedAtMs,
        durationMs: row.number('finish_ms', startedAtMs) - startedAtMs,
        node: node === '' ? undefined : `executor-${node}`,
      } as const),
    ],
  });
}

function jobOf(
  log: string,
  tasks: ReadonlyMap<string, readonly TraceTask[]>,
  declared = newDeclaredStages(),
): TraceJob {
  const ids = [...declared.keys()];
  const listed = [...declared].map(([id, { row, parents }]) => ({
    name: `stage-${id}`,
    tasks: tasks.get(id) ?? [],
    parents: parents.map((parent) => {
      const position = ids.indexOf(parent);
      if (position === -1) throw badLine(row.line, `parent ${parent} of stage ${id} is not there`);
      return position;
    }),
  }));
  const stages = orderStages(listed);
  const [first] = declared.values();
  if (stages === undefined) {
    throw badLine(
      first?.row.line ?? { path: log, number: 1, text: '' },
      `stages of log ${log} wait for each other`,
    );
  }
  return { id: log, stages };
}
