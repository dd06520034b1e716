import { describe, expect, it } from 'vitest';
import { MemoryObjectStore } from '../../../src/adapters/memory/memory-object-store.ts';
import type { SourceSegment } from '../../../src/contracts/plan.ts';
import type { ObjectStore } from '../../../src/ports/object-store.ts';
import { csvRows } from '../../../src/worker/csv-rows.ts';
import { failureOf } from '../../../src/worker/failure-of.ts';
import { lineNumberAt } from '../../../src/worker/line-number.ts';
import { ndjsonRows } from '../../../src/worker/ndjson-rows.ts';
import { collect } from '../../support/worker-fixtures.ts';

const signal = new AbortController().signal;
const start = 2_000_000_000;
const lookBytes = 1024 * 1024;

/** A file that holds `head`, empty lines up to byte 2,000,000,000, and `tail`; nobody may read far of what lies between. */
function reading(head: string, tail: string) {
  const sizeBytes = start + tail.length;
  const byteAt = (at: number): number =>
    (at < start ? head.charCodeAt(at) : tail.charCodeAt(at - start)) || 10;
  const objects: ObjectStore = Object.assign(new MemoryObjectStore(), {
    async *read(_ref: unknown, { range = { start: 0, end: sizeBytes } } = {}) {
      if (Math.min(range.end, start) - range.start > lookBytes) throw new Error('reads the whole prefix');
      await Promise.resolve();
      yield Buffer.from(Array.from({ length: range.end - range.start }, (_, at) => byteAt(range.start + at)));
    },
  });
  const place = { bucket: 'input', key: 'in/a', etag: '', gzip: false };
  const segment: SourceSegment = { ...place, start, end: sizeBytes, sizeBytes };
  return { reading: { objects, signal, onBytes: () => undefined }, segment };
}

const bad = { policy: 'fail', onSkip: () => undefined } as const;
const failure = async (rows: AsyncIterable<unknown>) =>
  collect(rows).then(
    () => 'none',
    (error: unknown) => failureOf(error, 'operator'),
  );

describe('a bad record far behind the begin of a file', () => {
  it('is told by its byte where a gigabyte would have to be read to count its line: CSV', async () => {
    const { reading: from, segment } = reading('id,name\n', '1,one\ntoo,many,fields\n');
    const rows = csvRows(from, segment, { header: true, bad, multiline: false });
    expect(await failure(rows)).toEqual({
      cause: 'bad-record',
      message: 'in/a: the line at byte 2000000006: 3 fields where there should be 2',
    });
  });

  it('is so in NDJSON', async () => {
    const { reading: from, segment } = reading('', '{"id":1}\n[]\n');
    expect(await failure(ndjsonRows(from, segment, bad))).toEqual({
      cause: 'bad-record',
      message: 'in/a: the line at byte 2000000009: not a JSON object (byte 2000000009)',
    });
  });

  it('has no number from the first byte beyond a gigabyte on, nor in a piece of gzip that begins there', async () => {
    const { reading: from, segment } = reading('', '\n');
    expect(await lineNumberAt(from, segment, 1_000_000_001)).toBeUndefined();
    expect(await lineNumberAt(from, { ...segment, gzip: true }, 3)).toBeUndefined();
    await expect(lineNumberAt(from, segment, 1_000_000_000)).rejects.toThrow('reads the whole prefix');
  });
});
