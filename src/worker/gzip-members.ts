import {
  constants,
  crc32,
  createGunzip,
  createInflateRaw,
  inflateRawSync,
  type Gunzip,
  type InflateRaw,
} from 'node:zlib';
import { gzipHeadBytes } from '../core/model/gzip-header.ts';

const outBytes = 128 * 1024;
/** Members up to about this size are unpacked in one go: a stream for each would cost more than its work. */
const smallBytes = 256 * 1024;
const smallOutBytes = 4 * 1024 * 1024;
/** A head with names and comments may be long; one beyond this is none. */
const longestHead = 1024 * 1024;
const trailerBytes = 8;
const sizeTurn = 2 ** 32;

/** Some text of a member; the last piece of each, which may be empty, says where in the file the member ends. */
export interface MemberText {
  readonly bytes: Buffer;
  readonly memberEnd?: number;
}

/**
 * Unpacks the members of gzip that follow each other from a byte of a file on, and tells where each ends. Zeros may follow
 * the last. Throws an Error where what comes is no whole member, or its sums do not fit.
 */
export async function* gzipMembers(
  chunks: AsyncIterable<Uint8Array>,
  begin: number,
): AsyncGenerator<MemberText> {
  const bytes = new Lookahead(chunks, begin);
  try {
    let isSmall = true;
    while (await bytes.has(1)) {
      if (bytes.now[0] === 0) {
        await onlyZeros(bytes);
        return;
      }
      const memberBegin = bytes.at;
      bytes.pass(await headOf(bytes));
      const whole = isSmall ? await smallMember(bytes) : undefined;
      if (whole === undefined) yield* largeMember(bytes);
      else yield { bytes: whole };
      yield { bytes: Buffer.alloc(0), memberEnd: bytes.at };
      // The next is likely to be as the one before.
      isSmall = bytes.at - memberBegin <= smallBytes;
    }
  } finally {
    await bytes.close();
  }
}

async function onlyZeros(bytes: Lookahead): Promise<void> {
  while (await bytes.has(1)) {
    if (bytes.now.some((byte) => byte !== 0)) throw new Error('something follows the zeros behind its end');
    bytes.pass(bytes.now.length);
  }
}

async function headOf(bytes: Lookahead): Promise<number> {
  for (let wanted = 32; wanted <= longestHead; wanted *= 4) {
    const isThere = await bytes.has(wanted);
    const size = gzipHeadBytes(bytes.now);
    if (size === undefined) throw new Error('incorrect header check');
    if (size !== 'more') return size;
    if (!isThere) throw new Error('unexpected end of file');
  }
  throw new Error('the head of a member is too long');
}

/** The text of a member that ends within what is looked at; undefined where it does not. */
async function smallMember(bytes: Lookahead): Promise<Buffer | undefined> {
  await bytes.has(smallBytes);
  const some = bytes.now.subarray(0, smallBytes);
  const unpacked = inflateSome(some, smallOutBytes);
  if (unpacked === undefined || unpacked.taken + trailerBytes > some.length) return undefined;
  const { text, taken } = unpacked;
  checkSums(some.subarray(taken), crc32(text), text.length);
  bytes.pass(taken + trailerBytes);
  return text;
}

/**
 * What raw deflated bytes give as far as they go, and how many of them belong to it. Undefined where it is more than
 * `most`. Throws where they are no such data.
 */
export function inflateSome(
  bytes: Uint8Array,
  most: number,
): { readonly text: Buffer; readonly taken: number } | undefined {
  try {
    const options = { info: true, finishFlush: constants.Z_SYNC_FLUSH, maxOutputLength: most };
    // With `info` it answers the engine, too, which its types do not know.
    const { buffer, engine } = inflateRawSync(bytes, options) as unknown as {
      buffer: Buffer;
      engine: { bytesWritten: number };
    };
    return { text: buffer, taken: engine.bytesWritten };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') return undefined;
    throw error;
  }
}

/** The last bytes of a member: the sum of its text, and its size. */
export function checkSums(trailer: Buffer, sum: number, size: number): void {
  if (trailer.length < trailerBytes) throw new Error('unexpected end of file');
  if (trailer.readUInt32LE(0) !== sum) throw new Error('incorrect data check');
  if (trailer.readUInt32LE(4) !== size % sizeTurn) throw new Error('incorrect length check');
}

/**
 * Unpacks the members of gzip that follow each other, by the stream that takes them all. Zeros may follow the last: at the
 * first of them it ends as if nothing came behind, so that what does is looked at here. Throws as `gzipMembers`.
 */
export async function* gunzipped(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  const bytes = new Lookahead(chunks, 0);
  try {
    const gunzip = createGunzip({ chunkSize: outBytes });
    const feeding = new Feeding(bytes, gunzip);
    try {
      yield* gunzip as AsyncIterable<Buffer>;
    } finally {
      gunzip.destroy();
      await feeding.end();
    }
    await onlyZeros(bytes);
  } finally {
    await bytes.close();
  }
}

async function* largeMember(bytes: Lookahead): AsyncGenerator<MemberText> {
  const inflate = createInflateRaw({ chunkSize: outBytes });
  const feeding = new Feeding(bytes, inflate);
  let sum = 0;
  let size = 0;
  try {
    for await (const chunk of inflate as AsyncIterable<Buffer>) {
      sum = crc32(chunk, sum);
      size += chunk.length;
      yield { bytes: chunk };
    }
  } finally {
    inflate.destroy();
    await feeding.end();
  }
  await bytes.has(trailerBytes);
  checkSums(bytes.now, sum, size);
  bytes.pass(trailerBytes);
}

const isOver = ({ destroyed, readableEnded }: Unpacking): boolean => destroyed || readableEnded;

type Unpacking = Gunzip | InflateRaw;

/** Gives bytes to a stream that ends before they do, and what it did not take back. */
class Feeding {
  readonly #bytes: Lookahead;
  readonly #inflate: Unpacking;
  readonly #done: Promise<void>;
  /** What was given, and may not have been taken yet. */
  #given: Buffer[] = [];
  #taken = 0;
  #failure: Error | undefined;

  constructor(bytes: Lookahead, inflate: Unpacking) {
    this.#bytes = bytes;
    this.#inflate = inflate;
    this.#done = this.#feed().catch((error: unknown) => {
      this.#failure = error instanceof Error ? error : new Error(String(error));
      inflate.destroy(this.#failure);
    });
  }

  /** To be called when the stream has ended. */
  async end(): Promise<void> {
    await this.#done;
    this.#forget();
    const rest = Buffer.concat(this.#given);
    this.#bytes.putBack(rest.subarray(Math.max(0, this.#inflate.bytesWritten - this.#taken)));
  }

  async #feed(): Promise<void> {
    const inflate = this.#inflate;
    const over = new Promise<void>((resolve) => {
      for (const event of ['end', 'close', 'error']) inflate.once(event, resolve);
    });
    while (!isOver(inflate)) {
      const chunk = await this.#bytes.take();
      if (chunk === undefined) {
        inflate.end();
        return;
      }
      this.#given.push(chunk);
      if (isOver(inflate)) return;
      const written = new Promise<void>((resolve) => {
        inflate.write(chunk, () => {
          resolve();
        });
      });
      await Promise.race([written, over]);
      this.#forget();
    }
  }

  #forget(): void {
    for (let first = this.#given[0]; first !== undefined; first = this.#given[0]) {
      if (this.#taken + first.length > this.#inflate.bytesWritten) return;
      this.#taken += first.length;
      this.#given.shift();
    }
  }
}

/** Bytes of a stream that can be looked at before they are taken. */
class Lookahead {
  readonly #chunks: AsyncIterator<Uint8Array>;
  #now: Buffer = Buffer.alloc(0);
  #at: number;

  constructor(chunks: AsyncIterable<Uint8Array>, begin: number) {
    this.#chunks = chunks[Symbol.asyncIterator]();
    this.#at = begin;
  }

  /** Place in the file of what comes next. */
  get at(): number {
    return this.#at;
  }

  /** What is there to be looked at. */
  get now(): Buffer {
    return this.#now;
  }

  /** Waits for so many bytes; false where the file ends before. */
  async has(count: number): Promise<boolean> {
    if (this.#now.length >= count) return true;
    const parts: Buffer[] = [this.#now];
    let size = this.#now.length;
    // More than is asked for at once, so that what is left over is not copied again for each small member.
    const wanted = count < smallBytes ? count : 2 * count;
    while (size < wanted) {
      const next = await this.#chunks.next();
      if (next.done === true) break;
      const chunk: Uint8Array = next.value;
      parts.push(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length));
      size += chunk.length;
    }
    this.#now = Buffer.concat(parts, size);
    return size >= count;
  }

  pass(count: number): void {
    this.#now = this.#now.subarray(count);
    this.#at += count;
  }

  /** All that is there, or the next chunk; undefined at the end. */
  async take(): Promise<Buffer | undefined> {
    if (!(await this.has(1))) return undefined;
    const all = this.#now;
    this.pass(all.length);
    return all;
  }

  putBack(bytes: Buffer): void {
    this.#now = Buffer.concat([bytes, this.#now]);
    this.#at -= bytes.length;
  }

  async close(): Promise<void> {
    await this.#chunks.return?.();
  }
}
