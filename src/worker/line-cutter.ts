import type { LineBlock } from './operator.ts';
import { BadInputError } from './operator.ts';

const newline = 10;
/** Blocks are cut at the first line end after this size. */
const blockBytes = 256 * 1024;
/** Longer pieces of a stream are cut, so that a block never grows far beyond its size. */
const pieceBytes = 512 * 1024;
/** From this size on a piece is cut as it is, and not joined with those before it. */
const largeBytes = 64 * 1024;
const none: readonly LineBlock[] = [];

/** A chunk in pieces of at most half a megabyte. */
export function* pieces(chunk: Uint8Array): Generator<Buffer> {
  for (let at = 0; at < chunk.length; at += pieceBytes) {
    const size = Math.min(pieceBytes, chunk.length - at);
    yield Buffer.from(chunk.buffer, chunk.byteOffset + at, size);
  }
}

/** Gathers pieces of a file into blocks of whole lines. Throws `BadInputError` where a line is too long. */
export class LineCutter {
  readonly #file: string;
  readonly #lineBytes: number;
  /** Offset of the first gathered byte. */
  #offset: number;
  #pieces: Buffer[] = [];
  #size = 0;
  /** Bytes since the last "\n". */
  #openBytes = 0;

  constructor(file: string, lineBytes: number, offset: number) {
    this.#file = file;
    this.#lineBytes = lineBytes;
    this.#offset = offset;
  }

  /** Sets where the first line begins; before the first piece. */
  begin(offset: number): void {
    this.#offset = offset;
  }

  /** Blocks, once there is enough for one: of a large piece only the line that it ends is copied. */
  push(piece: Buffer): readonly LineBlock[] {
    if (piece.length === 0) return none;
    const first = piece.indexOf(newline);
    if (this.#openBytes + (first < 0 ? piece.length : first) > this.#lineBytes) {
      const offset = this.#offset + this.#size - this.#openBytes;
      throw new BadInputError(
        `${this.#file}: the line at byte ${String(offset)} is longer than ${String(this.#lineBytes)} bytes`,
      );
    }
    if (first < 0) {
      this.#gather(piece);
      this.#openBytes += piece.length;
      return none;
    }
    this.#openBytes = piece.length - 1 - piece.lastIndexOf(newline);
    if (piece.length < largeBytes) {
      this.#gather(piece);
      return this.#size < blockBytes ? none : [this.#cut(this.#size - this.#openBytes)];
    }
    const blocks: LineBlock[] = [];
    let rest = piece;
    if (this.#size > 0) {
      this.#gather(piece.subarray(0, first + 1));
      blocks.push(this.#cut(this.#size));
      rest = piece.subarray(first + 1);
    }
    if (rest.length > 0) this.#gather(rest);
    if (rest.length > this.#openBytes) blocks.push(this.#cut(rest.length - this.#openBytes));
    return blocks;
  }

  #gather(piece: Buffer): void {
    this.#pieces.push(piece);
    this.#size += piece.length;
  }

  /** What is left at the end. */
  rest(): LineBlock | undefined {
    return this.#size === 0 ? undefined : this.#cut(this.#size);
  }

  #cut(size: number): LineBlock {
    const [only] = this.#pieces;
    const all =
      only !== undefined && this.#pieces.length === 1 ? only : Buffer.concat(this.#pieces, this.#size);
    const block = { bytes: all.subarray(0, size), file: this.#file, offset: this.#offset };
    const open = all.subarray(size);
    // A copy where it is small, so that the open line does not hold the whole block.
    this.#pieces = open.length === 0 ? [] : [open.length < 65_536 ? Buffer.from(open) : open];
    this.#size = open.length;
    this.#offset += size;
    return block;
  }
}
