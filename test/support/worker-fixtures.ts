import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ObjectRef } from '../../src/contracts/keys.ts';
import type { SourceSegment } from '../../src/contracts/plan.ts';
import type { ObjectStore } from '../../src/ports/object-store.ts';
import type { FrameSink } from '../../src/worker/frame-sink.ts';
import { FrameCursor } from '../../src/worker/frame-cursor.ts';

/** A key and value as latin1 text, for short expectations. */
export type TextRecord = readonly [key: string, value: string];

/** Keeps what it is given, per partition. */
export class CollectingSink implements FrameSink {
  readonly frames: { partition: number; frame: Buffer }[] = [];

  put(partition: number, bytes: Buffer, start: number, end: number): undefined {
    this.frames.push({ partition, frame: Buffer.from(bytes.subarray(start, end)) });
    return undefined;
  }

  /** All records in the order in which they came. */
  async records(): Promise<readonly { partition: number; key: string; value: string }[]> {
    const out: { partition: number; key: string; value: string }[] = [];
    for (const { partition, frame } of this.frames) {
      for (const [key, value] of await recordsOf(frame)) out.push({ partition, key, value });
    }
    return out;
  }
}

/** The records in a run of frames. */
export async function recordsOf(frames: Uint8Array): Promise<readonly TextRecord[]> {
  let given = false;
  const cursor = new FrameCursor(0, () => {
    const chunk = given || frames.length === 0 ? undefined : Buffer.from(frames);
    given = true;
    return Promise.resolve(chunk);
  });
  const out: TextRecord[] = [];
  while (await cursor.advance()) {
    const { bytes, keyStart, keyEnd, end } = cursor;
    out.push([bytes.toString('latin1', keyStart, keyEnd), bytes.toString('latin1', keyEnd, end)]);
  }
  return out;
}

/** Bytes of latin1 text. */
export const latin1 = (text: string): Buffer => Buffer.from(text, 'latin1');

/** Runs `body` with an empty directory, which is removed afterwards. */
export async function inTempDir<T>(body: (dir: string) => Promise<T>): Promise<T> {
  const dir = await mkdtemp(join(tmpdir(), 'outrider-worker-test-'));
  try {
    return await body(dir);
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

/** Names of what is in a directory. */
export const namesIn = (dir: string): Promise<string[]> => readdir(dir);

/** Puts an object and answers the segment of all of it. */
export async function putSource(
  objects: ObjectStore,
  ref: ObjectRef,
  body: Uint8Array,
  gzip = false,
): Promise<SourceSegment> {
  await objects.write(ref, body);
  const etag = (await objects.head(ref))?.etag ?? '';
  return { ...ref, start: 0, end: body.length, sizeBytes: body.length, etag, gzip };
}

/** Everything that an async iterable gives. */
export async function collect<T>(source: AsyncIterable<T>): Promise<T[]> {
  const out: T[] = [];
  for await (const item of source) out.push(item);
  return out;
}
