import { createRng } from '../../src/lib/rng.ts';
import { operators } from '../../src/operators/registry.ts';
import { frameBytes } from '../../src/worker/framing.ts';
import { planSample } from '../../src/worker/sampled-blocks.ts';
import { runTask, sourceOf } from './operator-bench.ts';

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

/** Bytes that a map of a join ships for each byte of its CSV, of so many rows. */
export async function joinRatio(rows: number): Promise<number> {
  const csv = Buffer.from(orders(rows));
  const source = sourceOf(csv, () => 0.5, 'csv');
  const { records } = await runTask(operators['join-map'], { key: 'customer_id' }, [source], {
    partitions: 8,
  });
  const bytes = records.reduce((sum, { key, value }) => sum + frameBytes(key.length, value.length), 0);
  return bytes / csv.length;
}

/** Bytes that sort samples of each byte of one task's input. */
export function sampledRatio(bytes: number): number {
  const segment = { bucket: 'in', key: 'a', start: 0, end: bytes, sizeBytes: bytes, etag: '', gzip: false };
  const { whole, places } = planSample([segment], 128);
  return [...whole, ...places].reduce((sum, { start, end }) => sum + end - start, 0) / bytes;
}
