import { createReadStream } from 'node:fs';
import { mkdir, open, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { ObjectRef } from '../../src/contracts/keys.ts';
import type { ObjectStore, UploadRef } from '../../src/ports/object-store.ts';
import { partBytes } from '../../src/worker/object-writer.ts';

const refused = (): never => {
  throw new Error('a bench makes no such request');
};

/** Objects as the files of a directory, at the cost of the disk: what one task after another reads and writes. */
export class DirectoryObjects implements ObjectStore {
  readonly #dir: string;
  readonly list = refused;
  readonly copy = refused;
  readonly remove = refused;
  readonly listUploads = refused;
  readonly head = refused;

  constructor(dir: string) {
    this.#dir = dir;
  }

  /** Where an object lies. */
  pathOf({ bucket, key }: ObjectRef): string {
    return join(this.#dir, bucket, key);
  }

  async *read(
    ref: ObjectRef,
    { range }: { range?: { start: number; end: number } } = {},
  ): AsyncGenerator<Uint8Array> {
    const bounds = range === undefined ? {} : { start: range.start, end: range.end - 1 };
    yield* createReadStream(this.pathOf(ref), {
      ...bounds,
      highWaterMark: 1024 * 1024,
    }) as AsyncIterable<Buffer>;
  }

  async readAll(ref: ObjectRef, range?: { start: number; end: number }): Promise<Uint8Array> {
    if (range === undefined) return readFile(this.pathOf(ref));
    const file = await open(this.pathOf(ref));
    try {
      const bytes = Buffer.allocUnsafeSlow(range.end - range.start);
      const { bytesRead } = await file.read(bytes, 0, bytes.length, range.start);
      return bytes.subarray(0, bytesRead);
    } finally {
      await file.close();
    }
  }

  async write(ref: ObjectRef, body: Uint8Array): Promise<'written'> {
    await mkdir(dirname(this.pathOf(ref)), { recursive: true });
    await writeFile(this.pathOf(ref), body);
    return 'written';
  }

  async beginUpload(ref: ObjectRef): Promise<UploadRef> {
    await this.write(ref, new Uint8Array());
    return { ...ref, uploadId: this.pathOf(ref) };
  }

  /** Parts are all of one size but the last, so that their number tells their place. */
  async uploadPart(
    upload: UploadRef,
    number: number,
    body: Uint8Array,
  ): Promise<{ number: number; etag: string }> {
    const file = await open(this.pathOf(upload), 'r+');
    await file.write(body, 0, body.length, (number - 1) * partBytes);
    await file.close();
    return { number, etag: '' };
  }

  completeUpload(): Promise<'completed'> {
    return Promise.resolve('completed');
  }

  abortUpload(): Promise<void> {
    return Promise.resolve();
  }
}
