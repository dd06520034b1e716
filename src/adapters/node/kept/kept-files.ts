import { randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { NotFoundError } from '../../../contracts/errors.ts';
import type { ByteRange } from '../../../ports/object-store.ts';

/** A file with the next bytes of an object. */
interface Piece {
  readonly path: string;
  readonly sizeBytes: number;
}

interface KeptObject {
  readonly sizeBytes: number;
  readonly pieces: readonly Piece[];
}

/** Objects as files in a directory of their own, which is made when it is needed. */
export class KeptFiles {
  readonly #directory: string;
  readonly #objects = new Map<string, KeptObject>();
  /** Parts of uploads that are not complete, by upload and number. */
  readonly #uploads = new Map<string, Map<number, Piece>>();

  constructor(directory: string) {
    this.#directory = directory;
  }

  keys(): readonly string[] {
    return [...this.#objects.keys()];
  }

  sizeOf(key: string): number | undefined {
    return this.#objects.get(key)?.sizeBytes;
  }

  async write(key: string, body: Uint8Array): Promise<void> {
    const piece = await this.#store(body);
    await this.remove(key);
    this.#objects.set(key, { sizeBytes: piece.sizeBytes, pieces: [piece] });
  }

  beginUpload(): string {
    const uploadId = randomUUID();
    this.#uploads.set(uploadId, new Map());
    return uploadId;
  }

  async writePart(uploadId: string, number: number, body: Uint8Array): Promise<void> {
    this.#uploads.get(uploadId)?.set(number, await this.#store(body));
  }

  /** Whether there was such an upload. */
  async completeUpload(uploadId: string, key: string, numbers: readonly number[]): Promise<boolean> {
    const parts = this.#uploads.get(uploadId);
    if (parts === undefined) return false;
    const pieces = numbers.flatMap((number) => parts.get(number) ?? []);
    this.#uploads.delete(uploadId);
    await this.remove(key);
    this.#objects.set(key, { sizeBytes: pieces.reduce((sum, each) => sum + each.sizeBytes, 0), pieces });
    return true;
  }

  async abortUpload(uploadId: string): Promise<void> {
    const pieces = this.#uploads.get(uploadId)?.values() ?? [];
    this.#uploads.delete(uploadId);
    await dropFiles(pieces);
  }

  async remove(key: string): Promise<void> {
    const pieces = this.#objects.get(key)?.pieces ?? [];
    this.#objects.delete(key);
    await dropFiles(pieces);
  }

  /** Throws `NotFoundError` where there is no such object. `range.end` past its end is cut. */
  async *read(key: string, range?: ByteRange): AsyncGenerator<Uint8Array> {
    const object = this.#objects.get(key);
    if (object === undefined) throw new NotFoundError(`${key} is not kept here`);
    const { start = 0, end = object.sizeBytes } = range ?? {};
    let begins = 0;
    for (const { path, sizeBytes } of object.pieces) {
      const from = Math.max(0, start - begins);
      const to = Math.min(sizeBytes, end - begins);
      begins += sizeBytes;
      if (from < to) yield* createReadStream(path, { start: from, end: to - 1 }) as AsyncIterable<Buffer>;
    }
  }

  async clear(): Promise<void> {
    this.#objects.clear();
    this.#uploads.clear();
    await rm(this.#directory, { recursive: true, force: true, maxRetries: 3 });
  }

  async #store(body: Uint8Array): Promise<Piece> {
    await mkdir(this.#directory, { recursive: true, mode: 0o700 });
    const path = join(this.#directory, randomUUID());
    await writeFile(path, body, { mode: 0o600 });
    return { path, sizeBytes: body.length };
  }
}

async function dropFiles(pieces: Iterable<Piece>): Promise<void> {
  for (const { path } of pieces) await rm(path, { force: true });
}
