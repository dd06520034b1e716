import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { ExternalSort } from '../../../src/worker/external-sort.ts';
import { HashCombiner } from '../../../src/worker/hash-combiner.ts';
import { inTempDir } from '../../support/worker-fixtures.ts';

const memoryBytes = 4 * 1024 * 1024;
const add = (left: Buffer, right: Buffer): Buffer =>
  Buffer.from(String(Number(left.toString('latin1')) + Number(right.toString('latin1'))).padStart(128));

/** What buffers take when all garbage is gone. */
function heldBytes(): number {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
  return process.memoryUsage().arrayBuffers;
}

const tableOf = (table: HashCombiner): Record<string, string> =>
  Object.fromEntries([...table.drain()].map(({ key, value }) => [key.toString('latin1'), value.toString()]));

describe('combining before the sort', () => {
  it('takes the memory it was given, however many records pass between keys that are rare', async () => {
    await inTempDir(async (scratchDir) => {
      const before = heldBytes();
      const { signal } = new AbortController();
      const sort = new ExternalSort({ partitions: 1, memoryBytes, combine: add, scratchDir, signal });
      const [key, one] = [Buffer.alloc(32), Buffer.from('1')];
      for (let n = 0; n < 300_000; n++) {
        const sizeBytes = key.write(n % 400 === 0 ? `rare${String(n)}` : `hot${String(n % 397)}`, 'latin1');
        const wait = sort.add(key.subarray(0, sizeBytes), one);
        if (wait !== undefined) await wait;
      }
      expect(heldBytes() - before).toBeLessThan(memoryBytes + 10_000_000);
    });
  });

  it('keeps values that grow, shrink, and lie in what was handed out or lent', () => {
    const table = new HashCombiner((left, right) => Buffer.concat([left, right]), 1_000_000);
    const shared = Buffer.from('ab');
    for (const key of ['x', 'ÿ'])
      for (let n = 0; n < 1_000; n++) expect(table.take(Buffer.from(key, 'latin1'), shared)).toBe(true);
    shared.fill('?');
    expect(tableOf(table)).toEqual({ x: 'ab'.repeat(1_000), ÿ: 'ab'.repeat(1_000) });

    const tail = new HashCombiner((left, right) => (left.length > 1 ? left.subarray(1) : right), 1_000_000);
    for (const value of ['abc', '-', '-', 'wxyz']) tail.take(Buffer.from('k'), Buffer.from(value));
    tail.take(Buffer.from('other'), Buffer.from('1'));
    expect(tableOf(tail)).toEqual({ k: 'wxyz', other: '1' });
  });

  it('takes no new key when values that grew have taken the memory', () => {
    const table = new HashCombiner((left, right) => Buffer.concat([left, right]), 10_000);
    for (let n = 0; n < 100; n++) table.take(Buffer.from('k'), Buffer.alloc(100, 'v'));
    expect(table.take(Buffer.from('new'), Buffer.from('1'))).toBe(false);
    expect(tableOf(table)).toEqual({ k: 'v'.repeat(10_000) });
  });
});
