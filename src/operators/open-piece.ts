/** Pieces are of about so many bytes; those of many partitions are smaller, so that together they take no more than this. */
const mostPieceBytes = 256 * 1024;
const leastPieceBytes = 4 * 1024;
export const allPiecesBytes = 16 * 1024 * 1024;

/** About how many bytes a piece has where there are so many partitions. */
export const pieceBytesOf = (partitions: number): number =>
  Math.max(leastPieceBytes, Math.min(mostPieceBytes, Math.floor(allPiecesBytes / partitions)));

/** What a piece begins with: of many tables and partitions most may get a line or two. */
const firstBytes = 512;

/** Lines that are held for one partition. */
export class OpenPiece {
  bytes: Buffer = Buffer.allocUnsafe(firstBytes);
  used = 0;
  rows = 0;

  add(source: Buffer, start: number, end: number): void {
    const size = end - start;
    if (this.used + size > this.bytes.length) this.#grow(size);
    // A call into native code costs more than a short line.
    if (size > 40) source.copy(this.bytes, this.used, start, end);
    else for (let at = 0; at < size; at++) this.bytes[this.used + at] = source[start + at] ?? 0;
    this.used += size;
    this.rows++;
  }

  /** Begins anew, in the same memory, but where it is far more than the `usualBytes` of a piece, as behind a long line. */
  empty(usualBytes: number): void {
    this.used = 0;
    this.rows = 0;
    if (this.bytes.length > 2 * usualBytes) this.bytes = Buffer.allocUnsafe(firstBytes);
  }

  #grow(size: number): void {
    const grown = Buffer.allocUnsafe(Math.max(2 * this.bytes.length, this.used + size));
    this.bytes.copy(grown, 0, 0, this.used);
    this.bytes = grown;
  }
}
