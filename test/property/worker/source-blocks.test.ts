import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MemoryObjectStore } from '../../../src/adapters/memory/memory-object-store.ts';
import { sourceBlocks } from '../../../src/worker/source-blocks.ts';
import { collect, latin1, putSource } from '../../support/worker-fixtures.ts';

const ref = { bucket: 'input', key: 'a.txt' };
const signal = new AbortController().signal;

/** Lines with their ends, as `split` after each "\n" finds them: the oracle. */
const wholeLines = (text: string): string[] => text.split(/(?<=\n)/).filter((line) => line !== '');

const piece = fc.constantFrom('', 'a', '\n', '\r\n', '\0', 'ÿþ', 'some words\n', 'é', '\n\n', 'z'.repeat(70));
const text = fc.array(piece, { maxLength: 40 }).map((parts) => parts.join(''));

describe('splits of a plain file', () => {
  it('hold every line once, in order and byte for byte, wherever they are cut', async () => {
    await fc.assert(
      fc.asyncProperty(
        text,
        fc.array(fc.nat(400), { maxLength: 6 }),
        fc.boolean(),
        async (body, cuts, isFine) => {
          const objects = new MemoryObjectStore();
          const whole = await putSource(objects, ref, latin1(body));
          const size = body.length;
          const ends = isFine
            ? Array.from({ length: size }, (_, index) => index + 1)
            : [...new Set([...cuts.map((cut) => Math.min(cut, size)), size])].toSorted((a, b) => a - b);
          let start = 0;
          const found: string[] = [];
          let bytesRead = 0;
          for (const end of ends) {
            const reading = { objects, signal, onBytes: (count: number) => (bytesRead += count) };
            for (const block of await collect(sourceBlocks(reading, { ...whole, start, end }))) {
              const lines = wholeLines(block.bytes.toString('latin1'));
              expect(body.slice(block.offset, block.offset + block.bytes.length)).toBe(lines.join(''));
              expect(block.offset).toBeGreaterThanOrEqual(start);
              expect(block.offset).toBeLessThan(end);
              found.push(...lines);
            }
            start = end;
          }
          expect(found).toEqual(wholeLines(body));
          // A split whose lines all began earlier need not be read to its end.
          expect(bytesRead).toBeLessThanOrEqual(size);
        },
      ),
      { numRuns: 150 },
    );
  });

  it('hold lines of megabytes once, cut within and at the ends of lines', async () => {
    const body = ['x'.repeat(1_000_000), 'y'.repeat(700_000), '', 'z'.repeat(1_300_000), 'end'].join('\n');
    const objects = new MemoryObjectStore();
    const whole = await putSource(objects, ref, latin1(body));
    for (const splitBytes of [999_999, 1_000_000, 1_000_001, 300_000, body.length]) {
      const found: string[] = [];
      for (let start = 0; start < body.length; start += splitBytes) {
        const segment = { ...whole, start, end: Math.min(body.length, start + splitBytes) };
        const blocks = await collect(sourceBlocks({ objects, signal, onBytes: () => undefined }, segment));
        found.push(...wholeLines(Buffer.concat(blocks.map((block) => block.bytes)).toString('latin1')));
      }
      expect(found.map((line) => line.length)).toEqual([1_000_001, 700_001, 1, 1_300_001, 3]);
      expect(found.join('') === body).toBe(true);
    }
  });
});

describe('gzip files', () => {
  it('give the lines of all members together', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(text, { minLength: 1, maxLength: 4 }), async (members) => {
        const objects = new MemoryObjectStore();
        const segment = await putSource(
          objects,
          ref,
          Buffer.concat(members.map((body) => gzipSync(latin1(body)))),
          true,
        );
        const blocks = await collect(sourceBlocks({ objects, signal, onBytes: () => undefined }, segment));
        expect(blocks.map((block) => block.bytes.toString('latin1')).join('')).toBe(members.join(''));
      }),
      { numRuns: 40 },
    );
  });
});
