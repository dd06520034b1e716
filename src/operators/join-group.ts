import { createReadStream } from 'node:fs';
import { open, rm } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import type { Row } from '../worker/operator.ts';

/** Of the length before each row in the file. */
const lengthBytes = 4;
const writeBytes = 1024 * 1024;

/**
 * The right-hand rows of one key. As many as fit into `maxBytes` are held in memory, the others lie in a file, so that a key that half the input shares does not end the worker.
 */
export class RightGroup {
  private readonly held: Row[] = [];
  private heldBytes = 0;
  private file: { readonly path: string; readonly handle: FileHandle } | undefined;
  private unwritten: Buffer[] = [];
  private unwrittenBytes = 0;
  private readonly scratchDir: string;
  private readonly maxBytes: number;
  private readonly unpack: (bytes: Buffer) => Row;

  constructor(options: { scratchDir: string; maxBytes: number; unpack: (bytes: Buffer) => Row }) {
    this.scratchDir = options.scratchDir;
    this.maxBytes = options.maxBytes;
    this.unpack = options.unpack;
  }

  /** Adds a row, given as the bytes that `unpack` reads. */
  add(bytes: Buffer): Promise<void> | undefined {
    if (this.heldBytes + bytes.length <= this.maxBytes) {
      this.heldBytes += bytes.length;
      this.held.push(this.unpack(bytes));
      return undefined;
    }
    return this.spill(bytes);
  }

  /** Pairs each left-hand row with each of the group. Left rows are few at a time: each call reads the file once. */
  async pairWith(
    lefts: readonly Row[],
    pair: (left: Row, right: Row) => Promise<void> | undefined,
  ): Promise<void> {
    for (const left of lefts) {
      for (const right of this.held) {
        const wait = pair(left, right);
        if (wait !== undefined) await wait;
      }
    }
    if (this.file === undefined || lefts.length === 0) return;
    await this.writeOut(this.file.handle);
    for await (const bytes of rowsOf(this.file.path)) {
      const right = this.unpack(bytes);
      for (const left of lefts) {
        const wait = pair(left, right);
        if (wait !== undefined) await wait;
      }
    }
  }

  /** Removes the file. */
  async close(): Promise<void> {
    if (this.file === undefined) return;
    await this.file.handle.close();
    await rm(this.file.path, { force: true });
  }

  private async spill(bytes: Buffer): Promise<void> {
    if (this.file === undefined) {
      const path = join(this.scratchDir, 'join-right-group');
      this.file = { path, handle: await open(path, 'w') };
    }
    const length = Buffer.alloc(lengthBytes);
    length.writeUInt32LE(bytes.length);
    // A copy, since the record's memory is not ours.
    this.unwritten.push(length, Buffer.from(bytes));
    this.unwrittenBytes += lengthBytes + bytes.length;
    if (this.unwrittenBytes >= writeBytes) await this.writeOut(this.file.handle);
  }

  private async writeOut(handle: FileHandle): Promise<void> {
    if (this.unwrittenBytes > 0) await handle.appendFile(Buffer.concat(this.unwritten));
    this.unwritten = [];
    this.unwrittenBytes = 0;
  }
}

/** The rows of a file, each behind its length. */
async function* rowsOf(path: string): AsyncGenerator<Buffer> {
  let pieces: Buffer[] = [];
  let size = 0;
  let needed = lengthBytes;
  for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) {
    pieces.push(chunk);
    size += chunk.length;
    if (size < needed) continue;
    const bytes = Buffer.concat(pieces);
    let at = 0;
    for (needed = sizeAt(bytes, at); at + needed <= bytes.length; needed = sizeAt(bytes, at)) {
      yield bytes.subarray(at + lengthBytes, at + needed);
      at += needed;
    }
    pieces = [bytes.subarray(at)];
    size = bytes.length - at;
  }
}

/** Bytes of the row at a place with its length, or of as much as must be there to know. */
const sizeAt = (bytes: Buffer, at: number): number =>
  at + lengthBytes > bytes.length ? lengthBytes : lengthBytes + bytes.readUInt32LE(at);
