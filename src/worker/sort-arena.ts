import { headerBytes, writeFrame } from './framing.ts';

/** Index bytes per record: 8 sort key, 4 frame start, 4 key length, 1 header length, 2 partition. */
const indexBytesPerRecord = 19;
/** The index of a record takes the low 24 bits of its sort key. */
const maxRecords = 1 << 24;
/** Groups up to this size are cheaper to sort by insertion. */
const insertionLimit = 8;
/** Keys alike this far are compared by memcmp from there on. */
const maxRadixBytes = 64;

/**
 * Records in memory, as frames end to end, and their order by (partition, key bytes, emission).
 *
 * Sorting: five key bytes and the record's index are packed into 64 bits, which V8 sorts natively, without a
 * comparator; groups that are still equal are sorted by their next five bytes, and so on. The index in the low
 * bits keeps equal keys in order of emission.
 */
export class SortArena {
  readonly bytes: Buffer;
  count = 0;
  #used = 0;
  readonly #capacity: number;
  readonly #partitions: number;
  readonly #frameStart: Uint32Array;
  readonly #headerBytes: Uint8Array;
  readonly #keyBytes: Uint32Array;
  readonly #partition: Uint16Array;
  readonly #order: BigUint64Array;
  /** The same memory as `#order`: low and high word of each entry (little-endian, as every platform of Node). */
  readonly #words: Uint32Array;

  /** Takes at most `memoryBytes`, index included (and at least 64 bytes and one record). */
  constructor(memoryBytes: number, partitions: number) {
    this.#partitions = partitions;
    this.#capacity = Math.min(maxRecords, Math.max(1, Math.floor((memoryBytes * 0.3) / indexBytesPerRecord)));
    this.bytes = Buffer.allocUnsafeSlow(Math.max(64, Math.floor(memoryBytes * 0.7)));
    this.#frameStart = new Uint32Array(this.#capacity + 1);
    this.#headerBytes = new Uint8Array(this.#capacity);
    this.#keyBytes = new Uint32Array(this.#capacity);
    this.#partition = new Uint16Array(this.#capacity);
    this.#order = new BigUint64Array(this.#capacity);
    this.#words = new Uint32Array(this.#order.buffer);
  }

  /** Copies a record in; false where there is no room for it. `sizeBytes` is its `frameBytes`. */
  add(key: Uint8Array, value: Uint8Array, partition: number, sizeBytes: number): boolean {
    const index = this.count;
    if (index === this.#capacity || this.#used + sizeBytes > this.bytes.length) return false;
    this.#frameStart[index] = this.#used;
    this.#headerBytes[index] = headerBytes(key.length, value.length);
    this.#keyBytes[index] = key.length;
    this.#partition[index] = partition;
    this.#used = writeFrame(this.bytes, this.#used, key, value);
    this.#frameStart[index + 1] = this.#used;
    this.count = index + 1;
    return true;
  }

  clear(): void {
    this.count = 0;
    this.#used = 0;
  }

  /** After `sort`: the record (by number of emission) at place `rank` of the order. */
  at(rank: number): number {
    return (this.#words[2 * rank] ?? 0) & 0xffffff;
  }
  partition(index: number): number {
    return this.#partition[index] ?? 0;
  }
  frameStart(index: number): number {
    return this.#frameStart[index] ?? 0;
  }
  frameEnd(index: number): number {
    return this.#frameStart[index + 1] ?? 0;
  }
  keyStart(index: number): number {
    return (this.#frameStart[index] ?? 0) + (this.#headerBytes[index] ?? 0);
  }
  keyEnd(index: number): number {
    return this.keyStart(index) + (this.#keyBytes[index] ?? 0);
  }

  /** Puts the order right; call before `at`. */
  sort(): void {
    for (let rank = 0; rank < this.count; rank++) this.#words[2 * rank] = rank;
    const withPartition = this.#partitions > 1;
    if (withPartition) this.#packPartition();
    else this.#packBytes(0, this.count, 0);
    const pending: { from: number; to: number; depth: number }[] = [];
    this.#sortNative(0, this.count, withPartition ? 2 : 5, pending);
    for (let group = pending.pop(); group !== undefined; group = pending.pop()) {
      const { from, to, depth } = group;
      if (to - from <= insertionLimit) this.#sortByInsertion(from, to, depth);
      else if (this.#allEndWithin(from, to, depth)) this.#sortEnded(from, to, depth);
      else if (depth >= maxRadixBytes) this.#sortByComparing(from, to, depth);
      else {
        this.#packBytes(from, to, depth);
        this.#sortNative(from, to, depth + 5, pending);
      }
    }
  }

  /** Sort key of the first round: 16 bits of partition, then 16 bits of key (8 low bits stay 0). */
  #packPartition(): void {
    for (let rank = 0; rank < this.count; rank++) {
      const start = this.keyStart(rank);
      const size = this.#keyBytes[rank] ?? 0;
      const first = size > 0 ? (this.bytes[start] ?? 0) : 0;
      const second = size > 1 ? (this.bytes[start + 1] ?? 0) : 0;
      this.#words[2 * rank + 1] = ((this.#partition[rank] ?? 0) << 16) | (first << 8) | second;
    }
  }

  /** Sort key of the later rounds: five key bytes from `depth`, zeros after the key's end. */
  #packBytes(from: number, to: number, depth: number): void {
    const { bytes } = this;
    for (let rank = from; rank < to; rank++) {
      const index = this.at(rank);
      const at = this.keyStart(index) + depth;
      const left = (this.#keyBytes[index] ?? 0) - depth;
      const b0 = left > 0 ? (bytes[at] ?? 0) : 0;
      const b1 = left > 1 ? (bytes[at + 1] ?? 0) : 0;
      const b2 = left > 2 ? (bytes[at + 2] ?? 0) : 0;
      const b3 = left > 3 ? (bytes[at + 3] ?? 0) : 0;
      const b4 = left > 4 ? (bytes[at + 4] ?? 0) : 0;
      this.#words[2 * rank + 1] = (b0 << 24) | (b1 << 16) | (b2 << 8) | b3;
      this.#words[2 * rank] = (b4 << 24) | index;
    }
  }

  #sortNative(
    from: number,
    to: number,
    depth: number,
    pending: { from: number; to: number; depth: number }[],
  ): void {
    this.#order.subarray(from, to).sort();
    const words = this.#words;
    let begin = from;
    for (let rank = from + 1; rank <= to; rank++) {
      const same =
        rank < to &&
        words[2 * rank + 1] === words[2 * begin + 1] &&
        (words[2 * rank] ?? 0) >>> 24 === (words[2 * begin] ?? 0) >>> 24;
      if (same) continue;
      if (rank - begin > 1) pending.push({ from: begin, to: rank, depth });
      begin = rank;
    }
  }

  #allEndWithin(from: number, to: number, depth: number): boolean {
    for (let rank = from; rank < to; rank++) {
      if ((this.#keyBytes[this.at(rank)] ?? 0) > depth) return false;
    }
    return true;
  }

  /** Keys that ended and were equal up to padding differ in length alone; equal lengths are in order already. */
  #sortEnded(from: number, to: number, depth: number): void {
    const size = this.#keyBytes[this.at(from)];
    for (let rank = from + 1; rank < to; rank++) {
      if (this.#keyBytes[this.at(rank)] !== size) {
        this.#sortByComparing(from, to, depth);
        return;
      }
    }
  }

  #sortByInsertion(from: number, to: number, depth: number): void {
    for (let rank = from + 1; rank < to; rank++) {
      const index = this.at(rank);
      let place = rank;
      while (place > from && this.#compare(this.at(place - 1), index, depth) > 0) {
        this.#words[2 * place] = this.at(place - 1);
        place--;
      }
      this.#words[2 * place] = index;
    }
  }

  #sortByComparing(from: number, to: number, depth: number): void {
    const indexes = Uint32Array.from({ length: to - from }, (_, place) => this.at(from + place));
    indexes.sort((left, right) => this.#compare(left, right, depth));
    for (let place = 0; place < indexes.length; place++)
      this.#words[2 * (from + place)] = indexes[place] ?? 0;
  }

  #compare(left: number, right: number, depth: number): number {
    const leftEnd = this.keyEnd(left);
    const rightEnd = this.keyEnd(right);
    return (
      this.bytes.compare(
        this.bytes,
        Math.min(this.keyStart(right) + depth, rightEnd),
        rightEnd,
        Math.min(this.keyStart(left) + depth, leftEnd),
        leftEnd,
      ) ||
      // Both ended before `depth` and were equal there but for the padding: zeros of the longer one.
      leftEnd - this.keyStart(left) - (rightEnd - this.keyStart(right)) ||
      left - right
    );
  }
}
