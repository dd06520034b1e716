import { randomUUID } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import { mkdir, open, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { isLiveProcess, startOf } from '../live-process.ts';
import { giveBuffer, takeBuffer } from './buffers.ts';

/** Scratch spaces of this process, which a second server in it must not sweep. */
const liveTokens = new Set<string>();

/** A file under way: bytes go in until it is linked or renamed elsewhere, or removed. */
export interface ScratchFile {
  readonly path: string;
  /** Takes one chunk, which is the caller's again afterwards; waits where the disk is behind. */
  write(chunk: Uint8Array): Promise<void>;
  /** Writes what is left and closes the file. */
  finish(last: Uint8Array): Promise<void>;
  /** Closes and removes the file, if it is still here. Never fails. */
  discard(): Promise<void>;
}

/** Holds files under way, on the file system of the objects; names tell which process writes them. */
export class ScratchSpace {
  private readonly dir: string;
  private readonly token = randomUUID();
  private readonly start = startOf(process.pid) ?? '';
  private count = 0;

  private constructor(dir: string) {
    this.dir = dir;
  }

  /** Opens the directory and removes what dead processes left in it. */
  static async open(dir: string): Promise<ScratchSpace> {
    await mkdir(dir, { recursive: true });
    for (const name of await readdir(dir)) {
      if (isAbandoned(name)) await rm(join(dir, name), { force: true });
    }
    const space = new ScratchSpace(dir);
    liveTokens.add(space.token);
    return space;
  }

  /** Ends the claim on this space's files; call it once all of them are done. */
  close(): void {
    liveTokens.delete(this.token);
  }

  /** A name in the directory that nothing else uses. */
  newPath(): string {
    this.count += 1;
    return join(this.dir, [process.pid, this.start, this.token, this.count].join('_'));
  }

  /** Starts an empty file. */
  async create(): Promise<ScratchFile> {
    const path = this.newPath();
    return new BatchedFile(path, await open(path, 'wx'));
  }
}

class BatchedFile implements ScratchFile {
  readonly path: string;
  private readonly handle: FileHandle;
  private batch: Buffer | undefined;
  private batchBytes = 0;
  private closed = false;

  constructor(path: string, handle: FileHandle) {
    this.path = path;
    this.handle = handle;
  }

  async write(chunk: Uint8Array): Promise<void> {
    for (let at = 0; at < chunk.length;) {
      this.batch ??= takeBuffer();
      const piece = chunk.subarray(at, at + this.batch.length - this.batchBytes);
      this.batch.set(piece, this.batchBytes);
      this.batchBytes += piece.length;
      at += piece.length;
      if (this.batchBytes === this.batch.length) await this.flush();
    }
  }

  async finish(last: Uint8Array): Promise<void> {
    await this.write(last);
    await this.flush();
    this.closed = true;
    this.giveBack();
    await this.handle.close();
  }

  async discard(): Promise<void> {
    if (!this.closed) {
      this.closed = true;
      await this.handle.close().catch(() => undefined);
      this.giveBack();
    }
    await rm(this.path, { force: true }).catch(() => undefined);
  }

  private async flush(): Promise<void> {
    for (let at = 0; at < this.batchBytes && this.batch !== undefined;) {
      const { bytesWritten } = await this.handle.write(this.batch, at, this.batchBytes - at);
      at += bytesWritten;
    }
    this.batchBytes = 0;
  }

  private giveBack(): void {
    if (this.batch !== undefined) giveBuffer(this.batch);
    this.batch = undefined;
  }
}

function isAbandoned(name: string): boolean {
  const [, pidText, start, token = ''] = /^(\d+)_(\d*)_([\w-]+)_\d+$/.exec(name) ?? [];
  const pid = Number(pidText);
  if (pid === process.pid) return !liveTokens.has(token);
  // An id is given again: the process that has it now is another one where it began at another time.
  return !isLiveProcess(pid, start === undefined || start === '' ? undefined : Number(start));
}
