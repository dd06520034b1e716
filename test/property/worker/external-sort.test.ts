import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ExternalSort } from '../../../src/worker/external-sort.ts';
import { frameOf } from '../../../src/worker/framing.ts';
import { CollectingSink, inTempDir, latin1, namesIn, recordsOf } from '../../support/worker-fixtures.ts';

const bytes = (maxLength: number): fc.Arbitrary<string> =>
  fc.uint8Array({ maxLength }).map((array) => Buffer.from(array).toString('latin1'));
/** Few bytes, so that keys share long prefixes, are prefixes of each other, and end in NULs. */
const likeKey = fc
  .array(fc.constantFrom('\0', 'a', 'b', 'aaaaa', '\0\0\0\0\0', 'ÿ'), { maxLength: 24 })
  .map((parts) => parts.join(''));
const key = fc.oneof(bytes(12), likeKey, fc.constantFrom('', 'a', 'word'));
const record = fc.record({ key, value: bytes(6), partition: fc.option(fc.nat(4), { nil: undefined }) });

const never = new AbortController().signal;
const byBytes = (left: string, right: string): number => Buffer.compare(latin1(left), latin1(right));

describe('the external sort', () => {
  it('gives what a stable sort of all records in memory gives, however often it spills', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(record, { maxLength: 300 }),
        fc.constantFrom(1, 3, 5),
        fc.constantFrom(100, 900, 4_000, 1_000_000),
        async (records, partitions, memoryBytes) => {
          await inTempDir(async (scratchDir) => {
            const sort = new ExternalSort({
              partitions,
              memoryBytes,
              combine: undefined,
              scratchDir,
              signal: never,
              fanIn: 3,
            });
            const known: { partition: number; key: string; value: string }[] = [];
            for (const { key: text, value, partition } of records) {
              const place = (partition ?? 0) % partitions;
              known.push({ partition: place, key: text, value });
              await sort.add(latin1(text), latin1(value), place);
            }
            const sink = new CollectingSink();
            await sort.finish(sink);
            const expected = known.toSorted((a, b) => a.partition - b.partition || byBytes(a.key, b.key));
            expect(await sink.records()).toEqual(expected);
            expect(await namesIn(scratchDir)).toEqual([]);
          });
        },
      ),
      { numRuns: 60 },
    );
  });

  it('combines to the sum of each key, each key once, whatever the memory', async () => {
    const add = (left: Buffer, right: Buffer): Buffer =>
      Buffer.from(String(Number(left.toString()) + Number(right.toString())));
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(key, fc.nat(99)), { maxLength: 400 }),
        fc.constantFrom(100, 2_000, 50_000),
        async (records, memoryBytes) => {
          await inTempDir(async (scratchDir) => {
            const sort = new ExternalSort({
              partitions: 1,
              memoryBytes,
              combine: add,
              scratchDir,
              signal: never,
              fanIn: 2,
            });
            const sums = new Map<string, number>();
            for (const [text, count] of records) {
              sums.set(text, (sums.get(text) ?? 0) + count);
              await sort.add(latin1(text), latin1(String(count)));
            }
            const sink = new CollectingSink();
            await sort.finish(sink);
            const expected = [...sums]
              .toSorted(([a], [b]) => byBytes(a, b))
              .map(([text, sum]) => [text, String(sum)]);
            expect((await sink.records()).map((found) => [found.key, found.value])).toEqual(expected);
          });
        },
      ),
      { numRuns: 60 },
    );
  });

  it('reads back every frame that it writes', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(bytes(300), bytes(300)), { maxLength: 20 }), async (records) => {
        const frames = records.map(([text, value]) => frameOf(latin1(text), latin1(value)));
        expect(await recordsOf(Buffer.concat(frames))).toEqual(records);
      }),
    );
  });

  it('spills records that are larger than its memory', async () => {
    await inTempDir(async (scratchDir) => {
      const sort = new ExternalSort({
        partitions: 1,
        memoryBytes: 1_000,
        combine: undefined,
        scratchDir,
        signal: never,
      });
      const long = 'x'.repeat(300_000);
      for (const text of ['b', long, 'a', 'y', long]) await sort.add(latin1(text), latin1('v'));
      const sink = new CollectingSink();
      await sort.finish(sink);
      expect((await sink.records()).map((found) => found.key.length)).toEqual([1, 1, 300_000, 300_000, 1]);
      expect(sort.spills).toBeGreaterThan(2);
    });
  });
});
