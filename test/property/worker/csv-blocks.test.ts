import { parse } from 'csv-parse/sync';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MemoryObjectStore } from '../../../src/adapters/memory/memory-object-store.ts';
import { csvBlocks } from '../../../src/worker/csv-blocks.ts';
import { csvRows } from '../../../src/worker/csv-rows.ts';
import type { Row } from '../../../src/worker/operator.ts';

/** Text of whatever pieces CSV has: most of it is no good CSV. */
const arbMess = fc
  .array(fc.constantFrom('a', '1', '"', '""', ',', ',', '\n', '\r\n', '\r', ' ', 'é', '\0'), {
    maxLength: 40,
  })
  .map((parts) => Buffer.from(`x,y\n${parts.join('')}`));
const cell = fc
  .array(fc.constantFrom('a', '"', ',', '\n', '\r\n', ' ', 'é'), { maxLength: 5 })
  .map((parts) => parts.join(''));
const quoted = fc
  .tuple(cell, fc.boolean())
  .map(([text, always]) => (always || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text));
const arbTable = fc
  .tuple(fc.array(fc.tuple(quoted, quoted)), fc.constantFrom('\n', '\r\n'), fc.boolean())
  .map(([rows, end, isEnded]) =>
    Buffer.from(['y,x', ...rows.map((cells) => cells.join(','))].join(end) + (isEnded ? end : '')),
  );
const arbBytes = fc
  .array(fc.constantFrom(0x61, 0x2c, 0x0a, 0x22, 0xff, 0xc3, 0xa9), { maxLength: 30 })
  .map((bytes) => Buffer.from(bytes));

async function readingOf(text: Buffer) {
  const objects = new MemoryObjectStore();
  const ref = { bucket: 'bucket', key: 'file' };
  await objects.write(ref, text);
  const etag = (await objects.head(ref))?.etag ?? '';
  const segment = { ...ref, etag, sizeBytes: text.length, start: 0, end: text.length, gzip: false };
  let bytes = 0;
  const onBytes = (count: number): number => (bytes += count);
  return {
    segment,
    bytesRead: () => bytes,
    reading: { objects, signal: new AbortController().signal, onBytes },
  };
}

/** The rows, or what was thrown instead, and how many were skipped. */
async function outcome(work: (onSkip: () => void) => Promise<Row[]>): Promise<unknown> {
  let skipped = 0;
  try {
    return { rows: await work(() => skipped++), skipped };
  } catch (error) {
    return error instanceof Error ? error.message : error;
  }
}

describe('csvBlocks', () => {
  it('gives the records that csvRows gives, as well-formed CSV, with the same errors, skips and bytes', async () => {
    const arbText = fc.oneof(arbMess, arbTable, arbBytes);
    await fc.assert(
      fc.asyncProperty(
        arbText,
        fc.constantFrom('fail', 'skip'),
        fc.boolean(),
        async (text, policy, header) => {
          const ofRows = await readingOf(text);
          const expected = await outcome(async (onSkip) => {
            const rows: Row[] = [];
            const bad = { policy, onSkip };
            for await (const batch of csvRows(ofRows.reading, ofRows.segment, { header, bad }))
              rows.push(...batch);
            return rows;
          });
          const ofBlocks = await readingOf(text);
          const found = await outcome(async (onSkip) => {
            const rows: Row[] = [];
            const options = { header, bad: { policy, onSkip }, key: undefined };
            for await (const { bytes, columns, records } of csvBlocks(
              ofBlocks.reading,
              ofBlocks.segment,
              options,
            )) {
              if (records.count > 0) expect(bytes.at(-1)).toBe(10);
              const parsed = parse(bytes, {
                columns: [...columns],
                record_delimiter: '\n',
                skip_empty_lines: true,
              });
              expect(parsed).toHaveLength(records.count);
              rows.push(...(parsed as Row[]));
            }
            return rows;
          });
          expect(found).toEqual(expected);
          expect(ofBlocks.bytesRead()).toBe(ofRows.bytesRead());
        },
      ),
      { numRuns: 1_500 },
    );
  });

  it('tells where the cells of the key are', async () => {
    const text = Buffer.from('a,b,c\r\n1,"x,""y",3\r\n\r\n,,\n4,\u00e9,"5\n"');
    const { reading, segment } = await readingOf(text);
    const bad = { policy: 'fail', onSkip: () => undefined } as const;
    for (const [key, cells] of [
      ['a', ['1', '', '4']],
      ['b', ['"x,""y"', '', 'é']],
      ['c', ['3', '', '"5\n"']],
    ] as const) {
      const found: string[] = [];
      for await (const { bytes, records } of csvBlocks(reading, segment, { header: true, bad, key })) {
        for (let at = 0; at < records.count; at++)
          found.push(bytes.toString('utf8', records.keyStarts[at], records.keyEnds[at]));
      }
      expect(found).toEqual(cells);
    }
  });

  it('finds records whose quoted fields go over the ends of blocks', async () => {
    const long = `"${'x,"" \n'.repeat(100_000)}"`;
    const text = Buffer.from(`a,b\n${`${long},1\n2,${long}\n`.repeat(3)}`);
    const { reading, segment } = await readingOf(text);
    const bad = { policy: 'fail', onSkip: () => undefined } as const;
    const found: Buffer[] = [];
    for await (const { bytes } of csvBlocks(reading, segment, { header: true, bad, key: undefined }))
      found.push(Buffer.from(bytes));
    expect(Buffer.concat(found).equals(text.subarray(4))).toBe(true);
  });
});
