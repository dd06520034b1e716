/**
 * What a shuffle moves and asks for, as ratios in one run: nothing of it is measured by the clock.
 * Run: `node test/bench/shuffle.ts [--json]`.
 */
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { createRng } from '../../src/lib/rng.ts';
import { operators } from '../../src/operators/registry.ts';
import { frameBytes } from '../../src/worker/framing.ts';
import { planSample } from '../../src/worker/sampled-blocks.ts';
import { runTask, sourceOf } from '../support/operator-bench.ts';

const round = (value: number): number => Math.round(value * 1_000) / 1_000;
const megabyte = 1024 * 1024;

/** Orders as a shop's database gives them: eight columns, some 100 bytes a row. */
function orders(rows: number): string {
  const rng = createRng('orders');
  const lines = ['order_id,customer_id,ordered_at,status,currency,total_cents,shipping_city,comment\n'];
  for (let row = 0; row < rows; row++) {
    const customer = Math.floor(rng.next() * 50_000);
    const words = 'x'.repeat(Math.floor(rng.next() * 40));
    lines.push(
      `${String(row)},${String(customer)},2026-11-22T04:19:07Z,shipped,EUR,${String(Math.floor(rng.next() * 1e6))},Amsterdam,${words}\n`,
    );
  }
  return lines.join('');
}

/** Bytes that a map of a join ships for each byte of its CSV. */
async function joinRatio(): Promise<number> {
  const csv = Buffer.from(orders(20_000));
  const source = sourceOf(csv, () => 0.5, 'csv');
  const { records } = await runTask(operators['join-map'], { key: 'customer_id' }, [source], {
    partitions: 8,
  });
  const bytes = records.reduce((sum, { key, value }) => sum + frameBytes(key.length, value.length), 0);
  return bytes / csv.length;
}

/** Bytes that sort samples of each byte of one task's input. */
function sampledRatio(bytes: number): number {
  const segment = { bucket: 'in', key: 'a', start: 0, end: bytes, sizeBytes: bytes, etag: '', gzip: false };
  const { whole, places } = planSample([segment], 128);
  return [...whole, ...places].reduce((sum, { start, end }) => sum + end - start, 0) / bytes;
}

/** Peak memory of a scheduler of 10,000 × 100, in a function of 512 MB, over the 300 MB that it may take. */
function schedulerRatio(): number {
  const script = fileURLToPath(new URL('../support/scheduler-memory.ts', import.meta.url));
  const bounds = ['--max-semi-space-size=25', '--max-old-space-size=460'];
  const printed = execFileSync(process.execPath, [...bounds, script, '10000', '100']).toString();
  return (JSON.parse(printed) as { peakBytes: number }).peakBytes / (300 * megabyte);
}

const rows = [
  { what: 'join of CSV, bytes shuffled over bytes of CSV', ratio: round(await joinRatio()) },
  {
    what: 'sort, bytes sampled over bytes of a split of 256 MiB',
    ratio: round(sampledRatio(256 * megabyte)),
  },
  { what: 'scheduler of 10,000 × 100 segments, peak memory over 300 MB', ratio: round(schedulerRatio()) },
];
if (process.argv.includes('--json')) console.log(JSON.stringify(rows));
else console.table(rows);
