import { limits } from '../contracts/limits.ts';
import { StoreUnavailableError } from '../contracts/errors.ts';
import { viewOf } from './copy-short.ts';

/** Where a cursor gets its bytes: the next chunk, or undefined at the end. Chunks are never changed afterwards. */
export type NextChunk = () => Promise<Buffer | undefined>;

const nothing = Buffer.alloc(0);
const noView = viewOf(nothing);

/**
 * Walks over the frames of a byte stream. After `advance` answered true the current record is
 * `bytes[keyStart, keyEnd)` and `bytes[keyEnd, end)`, its frame `bytes[start, end)`. Views of `bytes` stay valid.
 */
export class FrameCursor {
  /** Ties of a merge are in this order. */
  readonly order: number;
  bytes: Buffer = nothing;
  /** Of the same memory. */
  view: DataView = noView;
  start = 0;
  keyStart = 0;
  keyEnd = 0;
  end = 0;
  /** Partition of the current record; 0 throughout where no boundaries were given. */
  partition = 0;
  /** The first six key bytes as one number, zeros after the key's end. */
  prefix = 0;
  readonly #nextChunk: NextChunk;
  /** Offsets at which the partitions end. */
  readonly #boundaries: readonly number[];
  #position = 0;
  #rest: Buffer | undefined;

  constructor(order: number, nextChunk: NextChunk, boundaries: readonly number[] = []) {
    this.order = order;
    this.#nextChunk = nextChunk;
    this.#boundaries = boundaries;
  }

  /** Moves to the next record: false at the end. Throws `StoreUnavailableError` on bytes that are no frames. */
  advance(): boolean | Promise<boolean> {
    return this.#parse(this.end) === 0 ? true : this.#refill();
  }

  /** Tries to read the frame at `at`: 0 where all of it is there, else how many bytes must be there at least. */
  #parse(at: number): number {
    const { bytes } = this;
    const size = bytes.length;
    let position = at;
    let keyBytes = 0;
    let valueBytes = 0;
    for (let shift = 0; ; shift += 7) {
      if (position >= size) return size - at + 1;
      const byte = bytes[position++] ?? 0;
      keyBytes |= (byte & 0x7f) << shift;
      if (byte < 0x80) break;
      if (shift > 28) throw new StoreUnavailableError('intermediate data is not what was written');
    }
    for (let shift = 0; ; shift += 7) {
      if (position >= size) return size - at + 1;
      const byte = bytes[position++] ?? 0;
      valueBytes |= (byte & 0x7f) << shift;
      if (byte < 0x80) break;
      if (shift > 28) throw new StoreUnavailableError('intermediate data is not what was written');
    }
    if (keyBytes < 0 || valueBytes < 0 || keyBytes + valueBytes > limits.recordBytes) {
      throw new StoreUnavailableError('intermediate data is not what was written');
    }
    const end = position + keyBytes + valueBytes;
    if (end > size) return end - at;
    this.start = at;
    this.keyStart = position;
    this.keyEnd = position + keyBytes;
    this.end = end;
    this.#settle(end - at);
    return 0;
  }

  #settle(sizeBytes: number): void {
    const boundaries = this.#boundaries;
    while (this.partition < boundaries.length - 1 && this.#position >= (boundaries[this.partition] ?? 0)) {
      this.partition++;
    }
    this.#position += sizeBytes;
    const { bytes, keyStart: at } = this;
    const size = this.keyEnd - at;
    const high =
      size > 2
        ? ((bytes[at] ?? 0) << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0)
        : ((size > 0 ? (bytes[at] ?? 0) : 0) << 16) | ((size > 1 ? (bytes[at + 1] ?? 0) : 0) << 8);
    const low =
      size > 5
        ? ((bytes[at + 3] ?? 0) << 16) | ((bytes[at + 4] ?? 0) << 8) | (bytes[at + 5] ?? 0)
        : ((size > 3 ? (bytes[at + 3] ?? 0) : 0) << 16) | ((size > 4 ? (bytes[at + 4] ?? 0) : 0) << 8);
    this.prefix = high * 0x100_0000 + low;
  }

  /** Goes on in the next chunk. Only the record that spans two or more chunks is copied. */
  async #refill(): Promise<boolean> {
    for (;;) {
      const tail = this.bytes.subarray(this.end);
      const needed = tail.length === 0 ? 0 : this.#parse(this.end);
      if (tail.length > 0 && needed === 0) return true;
      const next = needed === 0 ? await this.#take(Infinity) : await this.#gather(tail, needed);
      this.bytes = next ?? nothing;
      this.view = next === undefined ? noView : viewOf(next);
      this.end = 0;
      if (next === undefined) {
        this.start = this.keyStart = this.keyEnd = 0;
        return false;
      }
    }
  }

  /** `tail` and what follows, `needed` bytes in all. */
  async #gather(tail: Buffer, needed: number): Promise<Buffer> {
    const pieces = [tail];
    for (let size = tail.length; size < needed;) {
      const piece = await this.#take(needed - size);
      if (piece === undefined) throw new StoreUnavailableError('intermediate data ends within a record');
      pieces.push(piece);
      size += piece.length;
    }
    return Buffer.concat(pieces, needed);
  }

  /** At most `mostBytes` of the chunk at hand or the next one; what is left of it comes next. */
  async #take(mostBytes: number): Promise<Buffer | undefined> {
    const chunk = this.#rest ?? (await this.#nextChunk());
    this.#rest = undefined;
    if (chunk === undefined || chunk.length <= mostBytes) return chunk;
    this.#rest = chunk.subarray(mostBytes);
    return chunk.subarray(0, mostBytes);
  }
}

/** Order of two cursors' records: partition, key bytes, then the cursors' own order. */
function compareCursors(left: FrameCursor, right: FrameCursor): number {
  return (
    left.partition - right.partition ||
    left.prefix - right.prefix ||
    left.bytes.compare(right.bytes, right.keyStart, right.keyEnd, left.keyStart, left.keyEnd) ||
    left.order - right.order
  );
}

/** A heap of cursors, least record on top. */
export class CursorHeap {
  readonly #heap: FrameCursor[] = [];

  /** Takes a cursor that stands on a record. */
  push(cursor: FrameCursor): void {
    const heap = this.#heap;
    let place = heap.length;
    heap.push(cursor);
    while (place > 0) {
      const parent = (place - 1) >>> 1;
      const above = heap[parent];
      if (above === undefined || compareCursors(above, cursor) <= 0) break;
      heap[place] = above;
      place = parent;
    }
    heap[place] = cursor;
  }

  /** The cursor with the least record, undefined where there is none. */
  top(): FrameCursor | undefined {
    return this.#heap[0];
  }

  /** Call after the top cursor advanced (`more`) or ended. */
  settle(more: boolean): void {
    const heap = this.#heap;
    const moved = more ? heap[0] : heap.pop();
    const size = heap.length;
    if (moved === undefined || size === 0) return;
    let place = 0;
    for (;;) {
      let child = 2 * place + 1;
      let least = heap[child];
      if (least === undefined) break;
      const sibling = child + 1 < size ? heap[child + 1] : undefined;
      if (sibling !== undefined && compareCursors(sibling, least) < 0) {
        least = sibling;
        child++;
      }
      if (compareCursors(moved, least) <= 0) break;
      heap[place] = least;
      place = child;
    }
    heap[place] = moved;
  }
}

/** A heap over cursors that were not advanced yet; their first chunks are read all at once. */
export async function heapOf(cursors: readonly FrameCursor[]): Promise<CursorHeap> {
  const heap = new CursorHeap();
  const begun = await Promise.all(cursors.map(async (cursor) => cursor.advance()));
  cursors.forEach((cursor, place) => {
    if (begun[place] === true) heap.push(cursor);
  });
  return heap;
}
