import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { describe, expect, it, onTestFinished } from 'vitest';
import { MemoryObjectStore } from '../../../src/adapters/memory/memory-object-store.ts';
import { createRng } from '../../../src/lib/rng.ts';
import type { ByteRange, ObjectStore } from '../../../src/ports/object-store.ts';
import { frameOf } from '../../../src/worker/framing.ts';
import { Gate } from '../../../src/lib/gate.ts';
import type { UpstreamSegment } from '../../../src/worker/upstream-segment.ts';
import { recordsInOrder } from '../../../src/worker/stage-records.ts';
import type { MergeReading } from '../../../src/worker/stage-records.ts';

const kib = 1024;
const mib = 1024 * kib;

/** Counts what is read: how often, and which bytes. */
function counting(objects: MemoryObjectStore): {
  objects: ObjectStore;
  reads: string[];
  bytes: () => number;
} {
  const reads: string[] = [];
  let bytes = 0;
  const note = (key: string, range: ByteRange | undefined): void => {
    reads.push(`${key} ${String(range?.start)}-${String(range?.end)}`);
    bytes += (range?.end ?? 0) - (range?.start ?? 0);
  };
  const counted: Pick<ObjectStore, 'read' | 'readAll'> = {
    read: (ref, options) => {
      note(ref.key, options?.range);
      return objects.read(ref, options);
    },
    readAll: (ref, range, signal) => {
      note(ref.key, range);
      return objects.readAll(ref, range, signal);
    },
  };
  return {
    objects: Object.assign(Object.create(objects) as ObjectStore, counted),
    reads,
    bytes: () => bytes,
  };
}

/** So many segments of about so many bytes, each in an object of its own, in order of key. */
async function shuffled(
  objects: MemoryObjectStore,
  count: number,
  bytesOf: number | ((task: number) => number),
  valueBytes = 500,
): Promise<{ segments: UpstreamSegment[]; keys: string[] }> {
  const rng = createRng(`segments ${String(count)}`);
  const segments: UpstreamSegment[] = [];
  const keys: string[] = [];
  for (let task = 0; task < count; task++) {
    const bytesEach = typeof bytesOf === 'number' ? bytesOf : bytesOf(task);
    const value = Buffer.alloc(Math.min(valueBytes, bytesEach >> 1), 1);
    const own = Array.from({ length: Math.max(1, Math.round(bytesEach / (value.length + 12))) }, () =>
      rng.next().toFixed(8),
    ).toSorted();
    keys.push(...own);
    const frames = Buffer.concat(own.map((key) => frameOf(Buffer.from(key), value)));
    const ref = { bucket: 'data', key: `map/${String(task)}` };
    await objects.write(ref, Buffer.concat([Buffer.alloc(7), frames]));
    segments.push({ ref, offset: 7, length: frames.length, crc: crc32(frames), producer: ref.key });
  }
  return { segments, keys: keys.toSorted() };
}

async function merge(
  objects: ObjectStore,
  segments: readonly UpstreamSegment[],
  extra: Partial<MergeReading>,
): Promise<string[]> {
  const scratchDir = await mkdtemp(join(tmpdir(), 'outrider-segments-'));
  onTestFinished(() => rm(scratchDir, { recursive: true }));
  const found: string[] = [];
  const reading: MergeReading = {
    objects,
    gate: new Gate(16),
    onBytes: () => undefined,
    fetching: (request) => request(),
    memoryBytes: 40 * mib,
    scratchDir,
    signal: new AbortController().signal,
    ...extra,
  };
  for await (const batch of recordsInOrder(reading, segments)) {
    for (const { key } of batch) found.push(key.toString('latin1'));
  }
  expect(await readdir(scratchDir)).toEqual([]);
  return found;
}

describe('a reducer asks for each segment once', () => {
  it.each<[string, number, number | ((task: number) => number), number]>([
    ['10,000 small segments, that memory holds', 10_000, 60, 40 * mib],
    ['10,000 small segments, a fiftieth of which memory holds', 10_000, 400, 200 * kib],
    ['400 segments, each a tenth of the memory', 400, 4 * kib, 40 * kib],
    ['20 segments, each larger than the memory', 20, 100 * kib, 64 * kib],
    ['small ones among large ones', 300, (task) => (task % 3 === 0 ? 30 * kib : 200), 16 * kib],
  ])('%s', async (_, count, bytesOf, memoryBytes) => {
    const store = new MemoryObjectStore();
    const { segments, keys } = await shuffled(store, count, bytesOf);
    const { objects, reads } = counting(store);
    expect(await merge(objects, segments, { memoryBytes })).toEqual(keys);
    expect(reads).toHaveLength(count);
    expect(new Set(reads).size).toBe(count);
  });

  it('also of more than one answer holds, whatever memory it has, and of its small neighbours', async () => {
    const store = new MemoryObjectStore();
    const sizes = [kib, 70 * mib, kib, 45 * mib, 40 * mib, 65 * mib, kib];
    const { segments, keys } = await shuffled(store, sizes.length, (task) => sizes[task] ?? 0, 64 * kib);
    const { objects, reads } = counting(store);
    expect(await merge(objects, segments, { memoryBytes: 300 * mib })).toEqual(keys);
    expect(new Set(reads).size).toBe(sizes.length);
    expect(reads).toHaveLength(sizes.length);
  });

  it('and once more where it came damaged, whole or as a stream', async () => {
    const store = new MemoryObjectStore();
    const { segments, keys } = await shuffled(store, 3, 100 * kib);
    for (const memoryBytes of [4 * mib, 64 * kib]) {
      const { objects, reads } = counting(store);
      let isFirst = true;
      const spoilFirst = (): ((bytes: Uint8Array) => Uint8Array) => {
        const spoils = isFirst;
        isFirst = false;
        return (bytes) => (spoils ? bytes.map((byte) => byte ^ 1) : bytes);
      };
      const spoiling = Object.assign(Object.create(objects) as ObjectStore, {
        async readAll(...asked: Parameters<ObjectStore['readAll']>) {
          return spoilFirst()(await objects.readAll(...asked));
        },
        async *read(...asked: Parameters<ObjectStore['read']>) {
          const spoil = spoilFirst();
          for await (const chunk of objects.read(...asked)) yield spoil(chunk);
        },
      });
      expect(await merge(spoiling, segments, { memoryBytes })).toEqual(keys);
      expect(reads).toHaveLength(segments.length + 1);
    }
  });
});

describe('a reducer whose input is larger than its scratch space', () => {
  const space = (freeBytes: number) => () => Promise.resolve({ freeBytes, totalBytes: 2 * freeBytes });

  it('reads few segments side by side, each byte once', async () => {
    const store = new MemoryObjectStore();
    const { segments, keys } = await shuffled(store, 8, 600 * kib);
    const { objects, reads, bytes } = counting(store);
    const found = await merge(objects, segments, { memoryBytes: 4 * mib, scratchSpace: space(mib) });
    expect(found).toEqual(keys);
    expect(bytes()).toBe(segments.reduce((sum, { length }) => sum + length, 0));
    expect(new Set(reads).size).toBe(reads.length);
  });

  it('fails at once where they are too many, and says what would be right', async () => {
    const store = new MemoryObjectStore();
    const { segments } = await shuffled(store, 2_000, 2 * kib);
    const { objects, reads } = counting(store);
    const merging = merge(objects, segments, { memoryBytes: mib, scratchSpace: space(2 * mib) });
    await expect(merging).rejects.toThrow(
      'the task merges 4 MB in 2000 segments, but its worker has 2 MB of 4 MB of scratch space free: ' +
        'give the stage before it more partitions, or this stage a larger worker.size',
    );
    await expect(merging).rejects.toHaveProperty('name', 'BadInput');
    expect(reads).toHaveLength(0);
  });
});
