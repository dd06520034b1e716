import { execFileSync } from 'node:child_process';
import { createZstdCompress, gzipSync, zstdCompressSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { MemoryObjectStore } from '../../../src/adapters/memory/memory-object-store.ts';
import { withUnpackedSizes } from '../../../src/app/size-packed.ts';
import { type SourceObject, splitObjects } from '../../../src/core/model/splits.ts';

const text = Buffer.from(
  Array.from({ length: 200_000 }, (_, i) => `line ${String(i)} ${String((i * 7919) % 1000)}`).join('\n'),
);
const splitBytes = text.length;

async function tasksOf(files: Readonly<Record<string, Uint8Array>>): Promise<string[][]> {
  const store = new MemoryObjectStore();
  const objects: SourceObject[] = [];
  for (const [key, body] of Object.entries(files)) {
    await store.write({ bucket: 'in', key }, body);
    objects.push({ bucket: 'in', key, sizeBytes: body.length, etag: `"${key}"` });
  }
  const sized = await withUnpackedSizes(store, objects);
  const split = splitObjects(sized, { format: 'text', splitBytes, field: 'stages[0].inputs[0]' });
  return split.map((task) => task.map(({ key }) => key));
}

const six = (name: string, body: Uint8Array): Record<string, Uint8Array> =>
  Object.fromEntries(Array.from({ length: 6 }, (_, index) => [`${String(index)}.${name}`, body]));

/** What a pipe makes: no head of a frame tells its size. */
async function streamed(body: Uint8Array): Promise<Buffer> {
  const packing = createZstdCompress();
  packing.end(body);
  const chunks: Buffer[] = [];
  for await (const chunk of packing) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

describe('compressed inputs', () => {
  it('are sized by what they unpack to: six of a task each are six tasks', async () => {
    const files = { ...six('gz', gzipSync(text)) };
    expect(gzipSync(text).length * 6).toBeLessThan(splitBytes);
    expect(await tasksOf(files)).toEqual(Object.keys(files).map((key) => [key]));
    const frames = six('zst', zstdCompressSync(text));
    expect(await tasksOf(frames)).toEqual(Object.keys(frames).map((key) => [key]));
  });

  it('are so however well they are packed', async () => {
    const files = six('gz', gzipSync(Buffer.alloc(splitBytes, 'all alike\n')));
    expect(await tasksOf(files)).toHaveLength(6);
  });

  it('share a task where they hold little', async () => {
    expect(await tasksOf(six('gz', gzipSync('few words\n')))).toHaveLength(1);
    expect(await tasksOf(six('zst', zstdCompressSync('few words\n')))).toHaveLength(1);
  });

  it('are taken for four times what they store where nothing tells more', async () => {
    const frames = six('zst', await streamed(text.subarray(0, splitBytes / 2)));
    expect((await tasksOf(frames)).length).toBeLessThan(6);
    const half = gzipSync(text.subarray(0, splitBytes / 2));
    const members = six('gz', Buffer.concat([half, half, gzipSync('')]));
    expect((await tasksOf(members)).length).toBeGreaterThanOrEqual(3);
  });

  it('are counted by their blocks where they are bzip2', async (ctx) => {
    let packed: Buffer;
    try {
      packed = execFileSync('bzip2', ['-c'], { input: text, maxBuffer: 2 ** 28 });
    } catch {
      ctx.skip('there is no bzip2 here');
      return;
    }
    expect(packed.length * 6).toBeLessThan(splitBytes);
    const files = six('bz2', packed);
    expect(await tasksOf(files)).toEqual(Object.keys(files).map((key) => [key]));
  });

  it('are cut where they are gzip of several members, small or large, and not where they are one', async () => {
    const noise = Buffer.from(
      Array.from({ length: text.length }, (_, i) => 32 + (Math.imul(i, 2_654_435_761) >>> 26)),
    );
    const rows = Buffer.from(noise.toString('latin1').replace(/(.{50})/g, '$1\n'));
    const small = Array.from({ length: 40 }, (_, i) => gzipSync(rows.subarray(i * 50_000, (i + 1) * 50_000)));
    const quarter = Math.ceil(rows.length / 4);
    const large = [0, 1, 2, 3].map((i) => gzipSync(rows.subarray(i * quarter, (i + 1) * quarter)));
    expect(await tasksOf({ 'one.gz': gzipSync(Buffer.concat([text, text, text])) })).toHaveLength(1);
    expect(
      (await tasksOf({ 'small.gz': Buffer.concat([...small, ...small, ...small]) })).length,
    ).toBeGreaterThan(1);
    expect((await tasksOf({ 'large.gz': Buffer.concat([...large, ...large]) })).length).toBeGreaterThan(1);
  });

  it('are no error of the plan where they have gone: their reader says so', async () => {
    const gone = { bucket: 'in', key: 'gone.gz', sizeBytes: 10, etag: '"x"' };
    const [sized] = await withUnpackedSizes(new MemoryObjectStore(), [gone]);
    expect(sized).toMatchObject({ key: 'gone.gz', sizeBytes: 10 });
  });
});
