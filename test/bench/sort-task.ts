/** One task of the data path in a process of its own: prints its time and peak memory as JSON. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createReadStream } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { operators } from '../../src/operators/registry.ts';
import { ExternalSort } from '../../src/worker/external-sort.ts';
import { runTask, sourceOf } from '../support/operator-bench.ts';

const [what = '', path = ''] = process.argv.slice(2);
const nothing = Buffer.alloc(0);
const memoryBytes = 40 * 1024 * 1024;

/** Every line a key, sorted and merged, the result dropped. */
async function sortLines(scratchDir: string): Promise<void> {
  const sort = new ExternalSort({
    partitions: 4,
    memoryBytes,
    combine: undefined,
    scratchDir,
    signal: new AbortController().signal,
  });
  let rest: Buffer = nothing;
  for await (const chunk of createReadStream(path, { highWaterMark: 1024 * 1024 }) as AsyncIterable<Buffer>) {
    const block = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    let start = 0;
    for (let end = block.indexOf(10); end >= 0; end = block.indexOf(10, start)) {
      const stored = sort.add(block.subarray(start, end), nothing);
      if (stored !== undefined) await stored;
      start = end + 1;
    }
    rest = Buffer.from(block.subarray(start));
  }
  await sort.finish({ put: () => undefined });
}

const scratchDir = await mkdtemp(join(tmpdir(), 'outrider-bench-task-'));
const began = performance.now();
if (what === 'sort') await sortLines(scratchDir);
else await runTask(operators.tokenize, {}, [sourceOf(await readFile(path), () => 0.5)], { partitions: 4 });
const ms = performance.now() - began;
await rm(scratchDir, { recursive: true });
console.log(JSON.stringify({ ms, peakBytes: process.resourceUsage().maxRSS * 1024 }));
