import { open, rm } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { StoreUnavailableError } from '../contracts/errors.ts';
import type { NextChunk } from './frame-cursor.ts';
import type { FrameSink } from './frame-sink.ts';

/** A sorted run in a scratch file. */
export interface Run {
  readonly path: string;
  readonly sizeBytes: number;
  /** Offsets at which the partitions end. */
  readonly boundaries: readonly number[];
}

const writeBufferBytes = 256 * 1024;

/** A full or broken scratch disk is a fault of the place, not of the user's code, in whose process files may be sorted. */
export class ScratchError extends StoreUnavailableError {}

async function onDisk<T>(what: string, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (cause) {
    throw new ScratchError(`scratch file could not be ${what}`, {}, { cause });
  }
}

/** Writes a run; `finish` or `discard` closes the file. */
export class RunWriter implements FrameSink {
  readonly #path: string;
  readonly #file: FileHandle;
  readonly #boundaries: number[];
  readonly #buffer: Buffer;
  #used = 0;
  #written = 0;

  private constructor(path: string, file: FileHandle, partitions: number, bufferBytes: number) {
    this.#path = path;
    this.#file = file;
    this.#boundaries = new Array<number>(partitions).fill(0);
    this.#buffer = Buffer.allocUnsafeSlow(bufferBytes);
  }

  /** Creates the file; throws `StoreUnavailableError` where that cannot be, or the file is there. */
  static async create(path: string, partitions: number, bufferBytes = writeBufferBytes): Promise<RunWriter> {
    return new RunWriter(path, await onDisk('created', open(path, 'wx')), partitions, bufferBytes);
  }

  put(partition: number, bytes: Buffer, start: number, end: number): Promise<void> | undefined {
    // Counted at once: `#boundaries` holds sizes until `finish` adds them up.
    this.#boundaries[partition] = (this.#boundaries[partition] ?? 0) + end - start;
    if (end - start > this.#buffer.length - this.#used) return this.#putSlowly(bytes, start, end);
    bytes.copy(this.#buffer, this.#used, start, end);
    this.#used += end - start;
    return undefined;
  }

  async #putSlowly(bytes: Buffer, start: number, end: number): Promise<void> {
    await this.#flush();
    if (end - start > this.#buffer.length) {
      await this.#writeAll(bytes.subarray(start, end));
      return;
    }
    bytes.copy(this.#buffer, 0, start, end);
    this.#used = end - start;
  }

  async #flush(): Promise<void> {
    await this.#writeAll(this.#buffer.subarray(0, this.#used));
    this.#used = 0;
  }

  async #writeAll(bytes: Buffer): Promise<void> {
    for (let done = 0; done < bytes.length;) {
      const { bytesWritten } = await onDisk('written', this.#file.write(bytes, done));
      done += bytesWritten;
    }
    this.#written += bytes.length;
  }

  /** Ends the file and tells what is in it. */
  async finish(): Promise<Run> {
    await this.#flush();
    await onDisk('written', this.#file.close());
    let sum = 0;
    const boundaries = this.#boundaries.map((sizeBytes) => (sum += sizeBytes));
    return { path: this.#path, sizeBytes: this.#written, boundaries };
  }

  /** Closes and removes the file. */
  async discard(): Promise<void> {
    await this.#file.close().catch(() => undefined);
    await rm(this.#path, { force: true });
  }
}

/** Reads a run in chunks; `close` releases and removes the file. */
export class RunReader {
  readonly #run: Run;
  readonly #file: FileHandle;
  #position = 0;

  private constructor(run: Run, file: FileHandle) {
    this.#run = run;
    this.#file = file;
  }

  static async open(run: Run): Promise<RunReader> {
    return new RunReader(run, await onDisk('opened', open(run.path, 'r')));
  }

  /** Chunks of `chunkBytes`, each in memory of its own, so that views of them stay valid. */
  chunks(chunkBytes: number): NextChunk {
    return async () => {
      const size = Math.min(chunkBytes, this.#run.sizeBytes - this.#position);
      if (size <= 0) return undefined;
      const chunk = Buffer.allocUnsafeSlow(size);
      const { bytesRead } = await onDisk('read', this.#file.read(chunk, 0, size, this.#position));
      if (bytesRead === 0) throw new ScratchError('scratch file is shorter than what was written');
      this.#position += bytesRead;
      return chunk.subarray(0, bytesRead);
    };
  }

  async close(): Promise<void> {
    await this.#file.close().catch(() => undefined);
    await rm(this.#run.path, { force: true });
  }
}
