import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SortArena } from '../../../src/worker/sort-arena.ts';
import { latin1 } from '../../support/worker-fixtures.ts';

const none = latin1('');
/** Keys that differ late, in length alone, or in trailing NULs alone: what the packed prefixes cannot tell apart. */
const tail = fc
  .array(fc.constantFrom('\0', '\0', 'a', 'b', 'ÿ'), { maxLength: 7 })
  .map((parts) => parts.join(''));
const head = fc.constantFrom('', 'ab', 'abcde', 'x'.repeat(12), 'y'.repeat(70));
const key = fc.tuple(head, tail).map((parts) => parts.join(''));

describe('SortArena', () => {
  it('orders large groups of keys that are nearly alike as a stable comparing sort does', () => {
    fc.assert(
      fc.property(
        fc.array(key, { minLength: 1, maxLength: 12 }),
        fc.constantFrom(1, 3),
        fc.nat(),
        (keys, partitions, seed) => {
          const arena = new SortArena(1_000_000, partitions);
          // Each key many times over, so that groups are far larger than what insertion sorts.
          const records = Array.from({ length: 250 }, (_, index) => {
            const mixed = Math.imul(index + seed, 2654435761) >>> 8;
            const text = keys[mixed % keys.length] ?? '';
            return { index, text: latin1(text), partition: (mixed >>> 12) % partitions };
          });
          for (const { text, partition } of records) expect(arena.add(text, none, partition)).toBe(true);
          arena.sort();
          const expected = records.toSorted(
            (a, b) => a.partition - b.partition || Buffer.compare(a.text, b.text),
          );
          expect(records.map((_, rank) => arena.at(rank))).toEqual(expected.map(({ index }) => index));
        },
      ),
      { numRuns: 150 },
    );
  });
});
