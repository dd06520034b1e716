import { numberField, wholeField } from './trace-fields.ts';
import type { TraceJob, TraceTask } from './trace-job.ts';
import { badLine, traceLines } from './trace-lines.ts';
import type { TraceLine } from './trace-lines.ts';

const MIB = 1024 * 1024;

/**
 * Shuffles of the coflow benchmark (Facebook, 2010, by rack), each a job of the stages `map` and `reduce`. The
 * mappers of a rack are one task, likewise its reducers; `zone` is `R<rack>`. A reduce task's `inputBytes` is
 * what its rack receives (the trace's MB taken as MiB); a map task's `outputBytes` is an equal share of the
 * whole, since the trace does not say who sent it. Without durations, and without bytes before and after the
 * shuffle. Throws `InvalidInputError` if the first line promises another number of shuffles than follow.
 *
 * Source: Chowdhury et al., SIGCOMM 2014.
 */
export async function* readCoflow(path: string): AsyncGenerator<TraceJob, void, void> {
  let header: { line: TraceLine; racks: number; shuffles: number } | undefined;
  let read = 0;
  for await (const line of traceLines(path)) {
    if (header === undefined) {
      const [racks, shuffles, ...more] = line.text.trim().split(/\s+/);
      if (more.length > 0) throw badLine(line, 'expected the number of racks and of shuffles');
      header = {
        line,
        racks: wholeField(line, { name: 'number of racks', text: racks, least: 1 }),
        shuffles: wholeField(line, { name: 'number of shuffles', text: shuffles, least: 0 }),
      };
    } else {
      read++;
      yield coflowJob(line, header.racks);
    }
  }
  if (header === undefined)
    throw badLine({ path, number: 1, text: '' }, 'file is empty; expected a coflow trace');
  if (read !== header.shuffles) {
    throw badLine(header.line, `promises ${header.shuffles} shuffles; ${read} follow`);
  }
}

function coflowJob(line: TraceLine, racks: number): TraceJob {
  const fields = line.text.trim().split(/\s+/);
  const [id = ''] = fields;
  const submittedAtMs = numberField(line, { name: 'arrival', text: fields[1], least: 0 });
  const mappers = wholeField(line, { name: 'number of mappers', text: fields[2], least: 1 });
  const reducers = wholeField(line, { name: 'number of reducers', text: fields[3 + mappers], least: 1 });
  if (fields.length !== 4 + mappers + reducers) {
    throw badLine(
      line,
      `${fields.length} fields; ${mappers} mappers and ${reducers} reducers need ${4 + mappers + reducers}`,
    );
  }
  const reduceTasks = fields.slice(4 + mappers).map((field): TraceTask => {
    const [rack, megabytes, ...more] = field.split(':');
    if (more.length > 0) throw badLine(line, `reducer is ${field}; expected rack:MB`);
    const inputBytes = Math.round(numberField(line, { name: 'megabytes', text: megabytes, least: 0 }) * MIB);
    return { zone: zoneOf(line, rack, racks), inputBytes };
  });
  const sentBytes = reduceTasks.reduce((sum, task) => sum + (task.inputBytes ?? 0), 0) / mappers;
  const mapTasks = fields
    .slice(3, 3 + mappers)
    .map((rack): TraceTask => ({ zone: zoneOf(line, rack, racks), outputBytes: sentBytes }));
  return {
    id,
    submittedAtMs,
    stages: [
      { name: 'map', tasks: mapTasks, upstream: [] },
      { name: 'reduce', tasks: reduceTasks, upstream: [0] },
    ],
  };
}

function zoneOf(line: TraceLine, text: string | undefined, racks: number): string {
  const rack = wholeField(line, { name: 'rack', text, least: 0 });
  if (rack >= racks) throw badLine(line, `rack ${rack} is none of the ${racks}, counted from 0`);
  return `R${rack}`;
}
