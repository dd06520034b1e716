import { splitEvenly } from './split-evenly.ts';
import { wholeField } from './trace-fields.ts';
import type { TraceJob, TraceStage } from './trace-job.ts';
import { badLine, traceLines } from './trace-lines.ts';
import type { TraceLine } from './trace-lines.ts';

/** How tasks are derived from bytes, which is all that SWIM records. */
export interface SwimOptions {
  /** Bytes that a map reads at most; 128 MiB unless told. */
  readonly mapBytes?: number;
  /** Shuffled bytes that a reduce takes at most; 256 MiB unless told. */
  readonly reduceBytes?: number;
  /** Most maps or reduces of a job: a limit against absurd lines; 1,000,000 unless told. */
  readonly maxTasks?: number;
}

const MIB = 1024 * 1024;

/**
 * Jobs of a SWIM sample (Facebook, Hadoop, 2009): tab-separated id, submit time, gap, bytes of input, shuffle
 * and output. Tasks are derived: max(1, ⌈input / mapBytes⌉) maps; no reduce if nothing is shuffled, else
 * max(1, ⌈shuffle / reduceBytes⌉). A map reads a block, the last one what is left, and writes its share of the
 * shuffled bytes; reduces are alike. Without durations, stragglers or places.
 *
 * Source: Chen et al., VLDB 2012; derivation as in the trace's README.
 */
export async function* readSwim(
  path: string,
  options: SwimOptions = {},
): AsyncGenerator<TraceJob, void, void> {
  for await (const line of traceLines(path)) yield swimJob(line, options);
}

function swimJob(line: TraceLine, options: SwimOptions): TraceJob {
  const { mapBytes = 128 * MIB, reduceBytes = 256 * MIB, maxTasks = 1_000_000 } = options;
  const fields = line.text.split('\t');
  const [id = '', submitS, gapS, input, shuffle, output] = fields;
  if (fields.length !== 6 || id === '') {
    throw badLine(
      line,
      `${fields.length} fields; expected id, submit, gap, input, shuffle and output, by tabs`,
    );
  }
  const submittedAtMs = wholeField(line, { name: 'submit time', text: submitS, least: 0 }) * 1000;
  wholeField(line, { name: 'gap', text: gapS });
  const inputBytes = wholeField(line, { name: 'input bytes', text: input, least: 0 });
  const shuffleBytes = wholeField(line, { name: 'shuffle bytes', text: shuffle, least: 0 });
  const outputBytes = wholeField(line, { name: 'output bytes', text: output, least: 0 });

  const maps = Math.max(1, Math.ceil(inputBytes / mapBytes));
  const reduces = shuffleBytes === 0 ? 0 : Math.max(1, Math.ceil(shuffleBytes / reduceBytes));
  if (Math.max(maps, reduces) > maxTasks) {
    throw badLine(line, `${Math.max(maps, reduces)} tasks in a stage; the limit is ${maxTasks}`);
  }
  const written = splitEvenly(reduces === 0 ? outputBytes : shuffleBytes, maps);
  const map: TraceStage = {
    name: 'map',
    tasks: written.map((bytes, index) => ({
      inputBytes: Math.min(mapBytes, inputBytes - index * mapBytes),
      outputBytes: bytes,
    })),
    upstream: [],
  };
  if (reduces === 0) return { id, submittedAtMs, stages: [map] };
  const outputs = splitEvenly(outputBytes, reduces);
  const tasks = splitEvenly(shuffleBytes, reduces).map((bytes, index) => ({
    inputBytes: bytes,
    outputBytes: outputs[index] ?? 0,
  }));
  return { id, submittedAtMs, stages: [map, { name: 'reduce', tasks, upstream: [0] }] };
}
