import { numberField, wholeField } from './trace-fields.ts';
import type { TraceJob } from './trace-job.ts';
import { badLine, traceLines } from './trace-lines.ts';

/**
 * Jobs of the Yahoo and Google traces as Hawk, Eagle and Sparrow use them: a line each, of arrival, number of
 * tasks, mean duration, and every duration, in seconds. One stage a job; ids are line numbers. Without DAG,
 * bytes and places. Yahoo's durations were drawn around the mean, so it has no stragglers of its own.
 *
 * Source: Delgado et al., ATC 2015.
 */
export async function* readHawk(path: string): AsyncGenerator<TraceJob, void, void> {
  for await (const line of traceLines(path)) {
    const [arrival, count, meanS, ...durations] = line.text.trim().split(/\s+/);
    const submittedAtMs = Math.round(numberField(line, { name: 'arrival', text: arrival, least: 0 }) * 1000);
    const tasks = wholeField(line, { name: 'number of tasks', text: count, least: 1 });
    numberField(line, { name: 'mean duration', text: meanS, least: 0 });
    if (durations.length !== tasks) {
      throw badLine(line, `${durations.length} durations; expected ${tasks}`);
    }
    const toTask = (text: string): { workMs: number } => ({
      workMs: Math.round(numberField(line, { name: 'duration', text, least: 0 }) * 1000),
    });
    yield {
      id: `job-${line.number}`,
      submittedAtMs,
      stages: [{ name: 'tasks', tasks: durations.map(toTask), upstream: [] }],
    };
  }
}
