import * as z from 'zod';
import { orderStages } from './stage-order.ts';
import type { TraceJob } from './trace-job.ts';
import { traceDocuments } from './trace-json.ts';
import { badLine } from './trace-lines.ts';

/** What stands for a recorded duration of 0 s, which means under one second. */
export interface Alibaba2018Options {
  /** 500 ms unless told. */
  readonly subSecondMs?: number;
}

const MAX_INSTANCES = 10_000_000;
const position = z.int().min(0);
const dag = z.object({
  id: z.int(),
  name: z.string().nullish(),
  stages: z.array(z.tuple([z.int().min(0).max(MAX_INSTANCES), z.number().min(0)])).min(1),
  edges: z.array(z.tuple([position, position])),
});

/**
 * Batch jobs of Alibaba's 2018 trace with their DAGs, from a file of one JSON document a line. Every instance
 * of a stage has the stage's duration in whole seconds, so there is no spread: add slowdowns. Without arrivals,
 * bytes and places; the order is that of the trace.
 *
 * Source: `cluster-trace-v2018`, `batch_task`.
 */
export async function* readAlibaba2018(
  path: string,
  options: Alibaba2018Options = {},
): AsyncGenerator<TraceJob, void, void> {
  const { subSecondMs = 500 } = options;
  for await (const { line, document } of traceDocuments(path, dag)) {
    const parents = document.stages.map((): number[] => []);
    for (const [parent, child] of document.edges) {
      const to = parents[child];
      if (to === undefined) throw badLine(line, `edge leads to stage ${child}, which is not there`);
      to.push(parent);
    }
    const stages = orderStages(
      document.stages.map(([instances, seconds], index) => ({
        name: `stage-${index}`,
        // One object for all: the largest job has 107,012 instances.
        tasks: new Array<{ workMs: number }>(instances).fill({
          workMs: seconds === 0 ? subSecondMs : seconds * 1000,
        }),
        parents: parents[index] ?? [],
      })),
    );
    if (stages === undefined) throw badLine(line, 'edges form a cycle, or name a stage that is not there');
    if (stages.length === 0) throw badLine(line, 'no stage has instances');
    yield { id: document.name ?? `job-${document.id}`, stages };
  }
}
