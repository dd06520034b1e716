import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { deflateRawSync, gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MemoryObjectStore } from '../../../src/adapters/memory/memory-object-store.ts';
import type { SourceSegment } from '../../../src/contracts/plan.ts';
import { csvRows } from '../../../src/worker/csv-rows.ts';
import { lineNumberAt } from '../../../src/worker/line-number.ts';
import { BadInputError } from '../../../src/worker/operator.ts';
import { sourceBlocks } from '../../../src/worker/source-blocks.ts';
import { collect, latin1, putSource } from '../../support/worker-fixtures.ts';

const signal = new AbortController().signal;

/** What gzip's own program unpacks: the oracle. */
const zcat = (packed: Uint8Array): string =>
  execFileSync('zcat', { input: packed, maxBuffer: 2 ** 28 }).toString('latin1');

const wholeLines = (text: string): string[] => text.split(/(?<=\n)/).filter((line) => line !== '');

/** A member as `gzip` writes it with a name, an extra field, a comment and a sum of its head. */
function withHead(text: Buffer): Buffer {
  const plain = gzipSync(text);
  const head = Buffer.from([0x1f, 0x8b, 8, 4 + 8 + 16, 0, 0, 0, 0, 0, 3, 6, 0, 66, 67, 2, 0, 1, 2]);
  return Buffer.concat([head, latin1('name\0comment\0'), plain.subarray(10)]);
}

/** In several reads of a few bytes each, as a network gives them. */
class Dribbling extends MemoryObjectStore {
  readonly chunkBytes: number;

  constructor(chunkBytes: number) {
    super();
    this.chunkBytes = chunkBytes;
  }

  override async *read(...args: Parameters<MemoryObjectStore['read']>): AsyncGenerator<Uint8Array> {
    for await (const chunk of super.read(...args))
      for (let at = 0; at < chunk.length; at += this.chunkBytes)
        yield chunk.subarray(at, at + this.chunkBytes);
  }
}

interface Pieces {
  readonly lines: readonly string[];
  readonly bytesRead: number;
  readonly places: readonly number[];
  /** Of each piece that takes other bytes than its own: those that it reads, and how many it said at last that it would. */
  readonly tallies: readonly (readonly [read: number, said: number])[];
}

async function readPieces(
  packed: Uint8Array,
  cuts: readonly number[],
  chunkBytes = 64 * 1024,
): Promise<Pieces> {
  const objects = new Dribbling(chunkBytes);
  const whole = await putSource(objects, { bucket: 'input', key: 'in/a.gz' }, packed, true);
  const lines: string[] = [];
  const places: number[] = [];
  const tallies: [number, number][] = [];
  for (const segment of segmentsOf(whole, cuts)) {
    const tally: [number, number] = [0, segment.end - segment.start];
    tallies.push(tally);
    const onBytes = (count: number) => (tally[0] += count);
    const onExpected = (of: SourceSegment, bytes: number): void => {
      expect(of).toBe(segment);
      tally[1] = bytes;
    };
    const reading = { objects, signal, onBytes, onExpected };
    for (const { bytes, offset } of await collect(sourceBlocks(reading, segment))) {
      places.push(offset);
      lines.push(...wholeLines(bytes.toString('latin1')));
    }
  }
  return { lines, bytesRead: tallies.reduce((sum, [read]) => sum + read, 0), places, tallies };
}

function segmentsOf(whole: SourceSegment, cuts: readonly number[]): SourceSegment[] {
  const inside = cuts.map((cut) => cut % whole.sizeBytes).filter((cut) => cut > 0);
  const ends = [...new Set([...inside, whole.sizeBytes])].toSorted((a, b) => a - b);
  return ends.map((end, index) => ({ ...whole, start: ends[index - 1] ?? 0, end }));
}

const part = fc.constantFrom(
  '',
  'a',
  '\n',
  '\r\n',
  '\0',
  '\u001f\u008b\b\0',
  'some words\n',
  'é',
  'z'.repeat(70),
);
const text = fc.array(part, { maxLength: 30 }).map((parts) => latin1(parts.join('')));
const member = fc
  .tuple(text, fc.constantFrom('fast', 'stored', 'head'))
  .map(([body, how]) =>
    how === 'head' ? withHead(body) : gzipSync(body, { level: how === 'stored' ? 0 : 1 }),
  );
const packedFile = fc
  .tuple(fc.array(member, { minLength: 1, maxLength: 8 }), fc.constantFrom(0, 0, 0, 1, 7))
  .map(([members, zeros]) => Buffer.concat([...members, Buffer.alloc(zeros)]));

describe('pieces of a gzip file of several members', () => {
  it('hold every line once and in order, wherever it is cut', async () => {
    await fc.assert(
      fc.asyncProperty(
        packedFile,
        fc.array(fc.nat(2_000), { maxLength: 6 }),
        fc.constantFrom(1, 7, 1_000),
        async (packed, cuts, chunkBytes) => {
          const read = await readPieces(packed, cuts, chunkBytes).catch((error: unknown) => error);
          // Bytes that are stored as they are may look like a member: then it is refused, and nothing else is.
          if (read instanceof BadInputError) {
            expect(read.message).toContain('looks like a member of gzip and lies within one');
            return;
          }
          const { lines, bytesRead, places, tallies } = read as Pieces;
          expect(lines).toEqual(wholeLines(zcat(packed)));
          expect(bytesRead).toBeLessThanOrEqual(packed.length);
          for (const [bytes, said] of tallies) expect(said).toBe(bytes);
          expect(places).toEqual(places.toSorted((a, b) => a - b));
        },
      ),
      { numRuns: 150 },
    );
  });

  it('say that the first reads all of a single member, and the others nothing', async () => {
    const digests = Array.from({ length: 30_000 }, (_, i) => createHash('sha256').update(String(i)).digest());
    const bytes = Buffer.concat(digests);
    const packed = gzipSync(bytes, { level: 1 });
    const { tallies } = await readPieces(packed, [200_000, 400_000, 600_000]);
    expect(packed.length).toBeGreaterThan(700_000);
    expect(tallies).toEqual([
      [packed.length, packed.length],
      [0, 0],
      [0, 0],
      [0, 0],
    ]);
  });

  it.each([200_000, 400_000, 600_000])(
    'say so by the time the first has read its own bytes, %i of them, not when it is long past them',
    async (cut) => {
      const digests = Array.from({ length: 30_000 }, (_, i) =>
        createHash('sha256').update(String(i)).digest(),
      );
      const packed = gzipSync(Buffer.concat(digests), { level: 1 });
      const objects = new Dribbling(16 * 1024);
      const whole = await putSource(objects, { bucket: 'input', key: 'in/a.gz' }, packed, true);
      let [read, said] = [0, cut];
      const onBytes = (count: number) => (read += count);
      const onExpected = (_: SourceSegment, bytes: number) => (said = bytes);
      const reading = { objects, signal, onBytes, onExpected };
      let behind = 0;
      for await (const { bytes } of sourceBlocks(reading, { ...whole, end: cut })) {
        if (read < cut) continue;
        expect(said).toBe(packed.length);
        behind += bytes.length;
      }
      expect(behind).toBeGreaterThan(0);
    },
  );

  it('do so cut at each of its bytes, and between any two of them', async () => {
    const bodies = ['one\ntwo', ' and a half\n', '', 'three\nfo', 'ur\n\nfive\n', 'end'];
    const packed = Buffer.concat(bodies.map((body) => gzipSync(body)));
    const expected = wholeLines(bodies.join(''));
    for (let cut = 1; cut < packed.length; cut++)
      expect((await readPieces(packed, [cut, cut + 9])).lines, String(cut)).toEqual(expected);
    const everywhere = Array.from(packed.keys());
    expect((await readPieces(packed, everywhere)).lines).toEqual(expected);
  });

  it('do so where members are large, and lines longer than members', async () => {
    const random = Buffer.from(
      Array.from({ length: 600_000 }, (_, i) => 32 + (Math.imul(i, 2654435761) >>> 25)),
    );
    const bodies = [
      random,
      Buffer.from('x'.repeat(3_000_000)),
      Buffer.from('\nlast line\n'),
      random.subarray(0, 99_999),
    ];
    const packed = Buffer.concat(bodies.map((body) => gzipSync(body)));
    const cuts = Array.from({ length: 9 }, (_, i) => Math.floor((packed.length * (i + 1)) / 10));
    expect((await readPieces(packed, cuts)).lines.join('') === zcat(packed)).toBe(true);
  });

  it('know the line of a record, and the columns that the file begins with', async () => {
    const rows = Array.from({ length: 60 }, (_, i) => `${String(i)},${'v'.repeat(i)}\n`);
    const packed = Buffer.concat([gzipSync('id,text\n'), ...rows.map((row) => gzipSync(row))]);
    const objects = new MemoryObjectStore();
    const whole = await putSource(objects, { bucket: 'input', key: 'in/a.csv.gz' }, packed, true);
    const reading = { objects, signal, onBytes: () => undefined };
    const bad = { policy: 'fail', onSkip: () => undefined } as const;
    const ids: unknown[] = [];
    for (const segment of segmentsOf(whole, [500, 900, 1_500, 1_501, 2_200])) {
      const form = { header: true, bad, multiline: false };
      ids.push(...(await collect(csvRows(reading, segment, form))).flat().map(({ id }) => id));
      for (const { bytes, offset } of await collect(sourceBlocks(reading, segment))) {
        const first = bytes.toString().split(',')[0] ?? '';
        const line = first.startsWith('id') ? 1 : Number(first) + 2;
        expect(await lineNumberAt(reading, segment, offset)).toBe(line);
      }
    }
    expect(ids).toEqual(rows.map((_, i) => String(i)));
  });

  it('are refused, and never read wrongly, where a member holds what looks like one', async () => {
    const inner = gzipSync('inner line\n');
    const hidden = Buffer.concat([latin1('before\n'), inner, inner, latin1('\nafter\n')]);
    const stored = gzipSync(hidden, { level: 0 });
    const packed = Buffer.concat([gzipSync('first\n'), stored, gzipSync('last\n')]);
    const expected = wholeLines(zcat(packed));
    let refused = 0;
    for (let cut = 1; cut < packed.length; cut++) {
      const read = await readPieces(packed, [cut]).catch((error: unknown) => error);
      if (read instanceof BadInputError) {
        refused++;
        expect(read.message).toMatch(
          /^in\/a\.gz: what begins at byte \d+ looks like a member of gzip and lies within one/,
        );
        expect(read.message).toMatch(/--split-size/);
      } else expect(read).toMatchObject({ lines: expected });
    }
    // Cut before it, within the member that holds it.
    expect(refused).toBeGreaterThan(20);
    expect(refused).toBeLessThan(stored.length);
  });

  it('are refused where the file is not whole, by one of them at least', async () => {
    const bodies = Array.from({ length: 12 }, (_, i) =>
      `line ${String(i)} ${'word '.repeat(i)}\n`.repeat(20),
    );
    const packed = Buffer.concat(bodies.map((body) => gzipSync(body)));
    const cuts = [200, 400, 600, 800];
    const broken = Array.from({ length: 120 }, (_, i) => {
      const bytes = Buffer.from(packed);
      const place = Math.floor((packed.length * i) / 120);
      bytes[place] = (bytes[place] ?? 0) ^ 0x10;
      return bytes;
    });
    broken.push(
      packed.subarray(0, -1),
      packed.subarray(0, packed.length - 9),
      Buffer.concat([packed, latin1('x')]),
    );
    broken.push(Buffer.concat([packed, Buffer.alloc(3), packed]));
    for (const bytes of broken) {
      const read = await readPieces(bytes, cuts).catch((error: unknown) => error);
      // Times and the kind of machine in a head mean nothing.
      if (read instanceof BadInputError) expect(read.message).toMatch(/^in\/a\.gz: not whole gzip data: /);
      else expect(read).toMatchObject({ lines: wholeLines(bodies.join('')) });
    }
    for (const bytes of broken.slice(-4))
      await expect(readPieces(bytes, cuts)).rejects.toThrow('not whole gzip data');
  });
});

describe('blocked gzip', () => {
  it('is read as others are', async () => {
    const block = (body: Buffer): Buffer => {
      const data = deflateRawSync(body);
      const size = data.length + 25;
      const head = Buffer.from([
        31,
        139,
        8,
        4,
        0,
        0,
        0,
        0,
        0,
        255,
        6,
        0,
        66,
        67,
        2,
        0,
        size & 255,
        size >> 8,
      ]);
      return Buffer.concat([head, data, gzipSync(body).subarray(-8)]);
    };
    const body = Buffer.from(
      Array.from({ length: 40_000 }, (_, i) => `row ${String(Math.imul(i, 40503) >>> 3)}`).join('\n'),
    );
    const blocks: Buffer[] = [];
    for (let at = 0; at < body.length; at += 65_280) blocks.push(block(body.subarray(at, at + 65_280)));
    const packed = Buffer.concat([...blocks, block(Buffer.alloc(0))]);
    const { lines } = await readPieces(packed, [30_000, 60_000, 61_000, packed.length - 10]);
    expect(lines.join('') === zcat(packed)).toBe(true);
  });
});
