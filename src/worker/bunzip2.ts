import bitIterator from 'unbzip2-stream/lib/bit_iterator.js';
import bzip2 from 'unbzip2-stream/lib/bzip2.js';

const bytesPerLevel = 100_000;
/** More than any block takes when it is packed, beyond its bytes. */
const slackBytes = 25_000;
const pieceBytes = 64 * 1024;
const headBytes = 4;

/**
 * Unpacks bzip2, also where several streams follow each other, block by block: no more than one is held. Throws an Error
 * where the data are not bzip2, are damaged, or end too soon.
 */
export async function* bunzip2(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  const packed = new Packed(chunks);
  try {
    // A stream is its head, its blocks and its end: each turn takes one of them, and each of them takes bytes.
    while ((await packed.hold(headBytes)) > 0) {
      const size = bytesPerLevel * whole(() => bzip2.header(packed.bits));
      const work = new Int32Array(size);
      for (let crc: number | null = 0; crc !== null;) {
        await packed.hold(size + slackBytes);
        const pieces = new Pieces();
        const before: number = crc;
        crc = whole(() => bzip2.decompress(packed.bits, pieces.add, work, size, before));
        yield* pieces.take();
      }
    }
  } finally {
    await packed.close();
  }
}

/** The package meets the end of its buffers as something undefined. */
function whole<T>(read: () => T): T {
  try {
    return read();
  } catch (cause) {
    if (cause instanceof TypeError) throw new Error('it ends too soon', { cause });
    throw cause;
  }
}

/** Packed bytes that were asked for before they are needed, for what needs them cannot wait. */
class Packed {
  readonly #source: AsyncIterator<Uint8Array>;
  readonly #waiting: Uint8Array[] = [];
  #bits: ReturnType<typeof bitIterator> | undefined;
  #givenBytes = 0;

  constructor(chunks: AsyncIterable<Uint8Array>) {
    this.#source = chunks[Symbol.asyncIterator]();
  }

  /** Once something is held: it looks at its first buffer at once. */
  get bits(): ReturnType<typeof bitIterator> {
    return (this.#bits ??= bitIterator(() => this.#waiting.shift()));
  }

  /** Waits until so many bytes are held, or all that there are; answers how many. */
  async hold(bytes: number): Promise<number> {
    const held = (): number => this.#givenBytes - (this.#bits?.bytesRead ?? 0);
    while (held() < bytes) {
      const next = await this.#source.next();
      if (next.done === true) break;
      if (next.value.length === 0) continue;
      this.#waiting.push(next.value);
      this.#givenBytes += next.value.length;
    }
    return held();
  }

  async close(): Promise<void> {
    await this.#source.return?.();
  }
}

/** Gathers single bytes. */
class Pieces {
  readonly #full: Buffer[] = [];
  #last = Buffer.allocUnsafe(pieceBytes);
  #size = 0;

  readonly add = (byte: number): void => {
    if (this.#size === pieceBytes) {
      this.#full.push(this.#last);
      this.#last = Buffer.allocUnsafe(pieceBytes);
      this.#size = 0;
    }
    this.#last[this.#size++] = byte;
  };

  *take(): Generator<Buffer> {
    yield* this.#full;
    if (this.#size > 0) yield this.#last.subarray(0, this.#size);
  }
}
