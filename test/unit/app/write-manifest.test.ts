import { describe, expect, it } from 'vitest';
import { MemoryObjectStore } from '../../../src/adapters/memory/memory-object-store.ts';
import { writeManifest } from '../../../src/app/write-manifest.ts';
import { manifestOf } from '../../../src/core/model/manifest.ts';
import type { ObjectStore } from '../../../src/ports/object-store.ts';
import { collect } from '../../support/worker-fixtures.ts';

const bucket = 'data';
const key = 'jobs/a/plans/b/inputs/c/0.ndjson';

/** Lines whose characters take one, two, three and four bytes, so that parts end within them. */
const linesOf = (count: number, segments: number) =>
  Array.from({ length: count }, (_, line) => ({
    segments: Array.from({ length: segments }, (_, index) => ({
      key: `é€😀 ${'x'.repeat(index % 7)}`,
      line,
      index,
    })),
  }));

async function read(objects: ObjectStore): Promise<Buffer> {
  return Buffer.concat(await collect(objects.read({ bucket, key })));
}

describe('a manifest', () => {
  it.each([
    ['nothing', 0, 0],
    ['a line without segments', 1, 0],
    ['few lines', 5, 3],
    ['lines of more segments than are made into text at once', 3, 1_501],
    ['more than one part', 40, 6_000],
  ])('of %s is the JSON of its lines, each at its offsets', async (_, count, segments) => {
    const lines = linesOf(count, segments);
    const objects = new MemoryObjectStore();
    const { manifest, offsets } = manifestOf(key, lines);
    await writeManifest(objects, bucket, manifest);
    const body = await read(objects);
    expect(body.equals(Buffer.from(lines.map((line) => `${JSON.stringify(line)}\n`).join('')))).toBe(true);
    expect(offsets).toHaveLength(count + 1);
    lines.forEach((line, index) => {
      const text = body.toString('utf8', offsets[index], offsets[index + 1]);
      expect(JSON.parse(text)).toEqual(line);
    });
    expect(await collect(objects.listUploads({ bucket, key: '' }))).toEqual([]);
  });

  it('gives its upload up where a part cannot be written', async () => {
    const objects = new MemoryObjectStore();
    let parts = 0;
    const failing = Object.assign(Object.create(objects) as ObjectStore, {
      uploadPart: async (...asked: Parameters<ObjectStore['uploadPart']>) => {
        if (++parts === 2) throw new Error('no');
        return objects.uploadPart(...asked);
      },
    });
    const { manifest } = manifestOf(key, linesOf(40, 6_000));
    await expect(writeManifest(failing, bucket, manifest)).rejects.toThrow('no');
    expect(await collect(objects.listUploads({ bucket, key: '' }))).toEqual([]);
    expect(await objects.head({ bucket, key })).toBeUndefined();
  });

  it('is there where the answer to its completion was lost', async () => {
    const objects = new MemoryObjectStore();
    const { manifest } = manifestOf(key, linesOf(40, 6_000));
    const losing = Object.assign(Object.create(objects) as ObjectStore, {
      completeUpload: async (...asked: Parameters<ObjectStore['completeUpload']>) => {
        await objects.completeUpload(...asked);
        return objects.completeUpload(...asked); // As the client that had no answer repeats it.
      },
    });
    await writeManifest(losing, bucket, manifest);
    expect((await objects.head({ bucket, key }))?.sizeBytes).toBeGreaterThan(8 * 1024 * 1024);
  });
});
