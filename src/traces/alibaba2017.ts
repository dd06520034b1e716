import { traceRows } from './trace-fields.ts';
import type { TraceRow } from './trace-fields.ts';
import type { TraceJob, TraceStage, TraceTask } from './trace-job.ts';
import { badLine } from './trace-lines.ts';

const COLUMNS = ['create_s', 'end_s', 'job', 'task', 'instances', 'status'] as const;
const MAX_INSTANCES = 10_000_000;

/**
 * Jobs of Alibaba's 2017 batch table, a stage per row, submitted when the first of them was made. `workMs` is
 * the span of a stage that terminated, waiting included: an upper bound, and the same for all its instances;
 * absent for stages that did not end, or ended before they began (209 rows). The trace has no edges: all
 * stages are without upstream. Without bytes and places. Not quite in order of arrival.
 *
 * Source: `cluster-trace-v2017`, `batch_task`.
 */
export async function* readAlibaba2017(path: string): AsyncGenerator<TraceJob, void, void> {
  const finished = new Set<string>();
  let rows: TraceRow[] = [];
  for await (const row of traceRows(path, COLUMNS)) {
    const id = row.text('job');
    const before = rows[0]?.text('job');
    if (before !== undefined && before !== id) {
      yield jobOf(before, rows);
      finished.add(before);
      rows = [];
    }
    if (id === '') throw badLine(row.line, 'job is blank');
    if (finished.has(id)) throw badLine(row.line, `rows of job ${id} are not together`);
    rows.push(row);
  }
  const last = rows[0]?.text('job');
  if (last !== undefined) yield jobOf(last, rows);
}

function jobOf(id: string, rows: readonly TraceRow[]): TraceJob {
  const createdAtS = rows.map((row) => row.number('create_s'));
  return { id, submittedAtMs: createdAtS.reduce((a, b) => Math.min(a, b)) * 1000, stages: rows.map(stageOf) };
}

function stageOf(row: TraceRow): TraceStage {
  const spanMs = (row.number('end_s') - row.number('create_s')) * 1000;
  const instances = row.number('instances', 1);
  if (!Number.isInteger(instances) || instances > MAX_INSTANCES) {
    throw badLine(row.line, `instances is ${instances}; expected a whole number up to ${MAX_INSTANCES}`);
  }
  const task: TraceTask = row.text('status') === 'Terminated' && spanMs >= 0 ? { workMs: spanMs } : {};
  return {
    name: `task-${row.text('task')}`,
    tasks: new Array<TraceTask>(instances).fill(task),
    upstream: [],
  };
}
