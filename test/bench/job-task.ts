/** Runs one task of a job in TypeScript over a file, without services: `job-task.ts <what> <path>`. Prints JSON. */
import { readFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { compileGraph } from '../../src/dataflow/compile.ts';
import { read } from '../../src/dataflow/index.ts';
import { runStage } from '../../src/dataflow/runtime.ts';
import type { LineBlock, TaskContext } from '../../src/worker/operator.ts';

const [, , what = '', path = ''] = process.argv;

const lines = read.text();
const graphs = {
  'map-filter': lines
    .map((line) => line.slice(0, 40))
    .filter((line) => line.includes('w1'))
    .write.text(),
  'reduce-by-key': lines
    .flatMap((line) => line.split(' '))
    .keyBy((word) => word)
    .aggregate({ zero: () => 0, add: (sum) => sum + 1, merge: (a, b) => a + b })
    .write.ndjson(),
};
const graph = what === 'map-filter' ? graphs['map-filter'] : graphs['reduce-by-key'];
const [stage] = compileGraph(graph.node);
if (stage === undefined) throw new Error('a graph has a stage');

const bytes = await readFile(path);
const blockBytes = 256 * 1024;

/** Whole lines, as a worker hands them over. */
async function* blocks(): AsyncGenerator<LineBlock> {
  for (let start = 0; start < bytes.length;) {
    const found = bytes.indexOf(0x0a, Math.min(bytes.length, start + blockBytes));
    const end = found < 0 ? bytes.length : found + 1;
    yield await Promise.resolve({ bytes: bytes.subarray(start, end), file: path, offset: start });
    start = end;
  }
}

const scratchDir = await mkdtemp(join(tmpdir(), 'outrider-job-task-'));
const none = (): never => {
  throw new Error('only lines are read');
};
let emitted = 0;
const context: TaskContext = {
  stage: stage.name,
  task: 0,
  partitions: 8,
  options: {},
  inputs: [{ kind: 'source', format: 'text', blocks, records: none, rows: none }],
  output: {
    emit: (key, value) => {
      emitted += key.length + value.length;
      return undefined;
    },
    write: (piece) => {
      emitted += piece.length;
      return undefined;
    },
  },
  scratchDir,
  environment: {},
  signal: new AbortController().signal,
  count: () => undefined,
};
const began = performance.now();
await runStage(stage, context);
const ms = performance.now() - began;
await rm(scratchDir, { recursive: true });
console.log(JSON.stringify({ ms, emitted, peakBytes: process.resourceUsage().maxRSS * 1024 }));
