import { createReadStream } from 'node:fs';
import { open, rm } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import type { Row } from '../worker/operator.ts';
import { decodeRow } from './join-rows.ts';

const newline = Buffer.from('\n');
const writeBytes = 1024 * 1024;

/**
 * The right-hand rows of one key. As many as fit into `maxBytes` are held in memory, the others lie in a file, a
 * JSON line each, so that a key that half the input shares does not end the worker.
 */
export class RightGroup {
  private readonly held: Row[] = [];
  private heldBytes = 0;
  private file: { readonly path: string; readonly handle: FileHandle } | undefined;
  private unwritten: Buffer[] = [];
  private unwrittenBytes = 0;
  private readonly scratchDir: string;
  private readonly maxBytes: number;

  constructor({ scratchDir, maxBytes }: { scratchDir: string; maxBytes: number }) {
    this.scratchDir = scratchDir;
    this.maxBytes = maxBytes;
  }

  /** Adds a row, given as JSON. */
  add(json: Buffer): Promise<void> | undefined {
    if (this.heldBytes + json.length <= this.maxBytes) {
      this.heldBytes += json.length;
      this.held.push(decodeRow(json));
      return undefined;
    }
    return this.spill(json);
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
    for await (const line of linesOf(this.file.path)) {
      const right = decodeRow(line);
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

  private async spill(json: Buffer): Promise<void> {
    if (this.file === undefined) {
      const path = join(this.scratchDir, 'join-right-group.ndjson');
      this.file = { path, handle: await open(path, 'w') };
    }
    // JSON text has no newline of its own. A copy, since the record's memory is not ours.
    this.unwritten.push(Buffer.from(json), newline);
    this.unwrittenBytes += json.length + newline.length;
    if (this.unwrittenBytes >= writeBytes) await this.writeOut(this.file.handle);
  }

  private async writeOut(handle: FileHandle): Promise<void> {
    if (this.unwrittenBytes > 0) await handle.appendFile(Buffer.concat(this.unwritten));
    this.unwritten = [];
    this.unwrittenBytes = 0;
  }
}

/** Lines of a file, each of which ends in a newline. `node:readline` would also end lines at U+2028. */
async function* linesOf(path: string): AsyncGenerator<Buffer> {
  let rest: Buffer[] = [];
  for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) {
    let start = 0;
    for (let end = chunk.indexOf(newline); end >= 0; end = chunk.indexOf(newline, start)) {
      yield Buffer.concat([...rest, chunk.subarray(start, end)]);
      rest = [];
      start = end + 1;
    }
    if (start < chunk.length) rest.push(chunk.subarray(start));
  }
}
