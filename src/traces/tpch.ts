import * as z from 'zod';
import { InvalidInputError } from '../contracts/errors.ts';
import { orderStages } from './stage-order.ts';
import type { TraceJob, TraceSlotPast, TraceTask } from './trace-job.ts';
import { traceDocuments } from './trace-json.ts';
import { badLine } from './trace-lines.ts';
import type { TraceLine } from './trace-lines.ts';

/** Which of the nine recorded runs of each job to read. */
export interface TpchOptions {
  /** Executors of the run, one of `TPCH_EXECUTORS`; 20 unless told. */
  readonly executors?: number;
}

/** Executor counts at which the queries ran. */
export const TPCH_EXECUTORS: readonly number[] = [2, 5, 10, 20, 40, 50, 60, 80, 100];

const durations = z.array(z.number().min(0));
const tpchJob = z.object({
  size: z.string(),
  query: z.int(),
  edges: z.array(z.tuple([z.int().min(0), z.int().min(0)])),
  stages: z
    .array(
      z.object({
        id: z.int().min(0),
        tasks: z.int().min(0),
        ms_by_executors: z.record(
          z.string(),
          z.object({ first: durations, rest: durations, fresh: durations.optional() }),
        ),
      }),
    )
    .min(1),
});
type TpchJob = z.infer<typeof tpchJob>;
type TpchStage = TpchJob['stages'][number];
type TpchRun = TpchStage['ms_by_executors'][string];

/**
 * TPC-H queries on Spark, 22 at each of four sizes, from a file of one JSON document a line; ids are
 * `q<query>-<size>`. Tasks are those of one run: first those that began an executor's share of the stage (JVM
 * warm-up included), then the rest; each tells what its slot had run before. A query of fewer tasks than executors was not run at all counts: the largest
 * run within the count asked for stands for it. Without arrivals, bytes and places.
 * Throws `InvalidInputError` for a count that is not one of `TPCH_EXECUTORS`.
 *
 * Source: Mao et al., SIGCOMM 2019.
 */
export async function* readTpch(
  path: string,
  options: TpchOptions = {},
): AsyncGenerator<TraceJob, void, void> {
  const { executors = 20 } = options;
  if (!TPCH_EXECUTORS.includes(executors)) {
    const problem = `no TPC-H run with ${executors} executors; expected ${TPCH_EXECUTORS.join(', ')}`;
    throw new InvalidInputError(problem, { executors });
  }
  for await (const { line, document } of traceDocuments(path, tpchJob))
    yield jobOf(line, document, executors);
}

/** The run with the most executors that are not above `limit`. */
function largestRun(runs: TpchStage['ms_by_executors'], limit: number): TpchRun | undefined {
  const counts = Object.keys(runs)
    .map(Number)
    .filter((count) => count <= limit);
  return counts.length === 0 ? undefined : runs[Math.max(...counts).toString()];
}

/** Of the tasks that were an executor's first in the stage, the fresh ones were its first of all. */
function tasksOf({ first, rest, fresh = [] }: TpchRun): TraceTask[] {
  const left = new Map<number, number>();
  for (const workMs of fresh) left.set(workMs, (left.get(workMs) ?? 0) + 1);
  const pastOf = (workMs: number): TraceSlotPast => {
    const fresh = left.get(workMs) ?? 0;
    left.set(workMs, fresh - 1);
    return fresh > 0 ? 'cold' : 'first';
  };
  return [
    ...first.map((workMs): TraceTask => ({ workMs, slotPast: pastOf(workMs) })),
    ...rest.map((workMs): TraceTask => ({ workMs, slotPast: 'later' })),
  ];
}

function jobOf(line: TraceLine, job: TpchJob, executors: number): TraceJob {
  const positions = new Map(job.stages.map((stage, index) => [stage.id, index]));
  const parents = job.stages.map((): number[] => []);
  for (const [parent, child] of job.edges) {
    const from = positions.get(parent);
    const to = parents[positions.get(child) ?? -1];
    if (from === undefined || to === undefined) {
      throw badLine(line, `edge ${parent} to ${child} names a stage that is not there`);
    }
    to.push(from);
  }
  const stages = orderStages(
    job.stages.map((stage, index) => {
      const run = largestRun(stage.ms_by_executors, executors);
      if (run === undefined) {
        const problem = `stage ${stage.id} has no run with ${executors} executors or fewer`;
        throw badLine(line, problem);
      }
      const tasks = tasksOf(run);
      return { name: `stage-${stage.id}`, tasks, parents: parents[index] ?? [] };
    }),
  );
  if (stages === undefined) throw badLine(line, 'edges form a cycle');
  if (stages.length === 0) throw badLine(line, 'no stage has tasks');
  return { id: `q${job.query}-${job.size}`, stages };
}
