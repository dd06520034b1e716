import type { FrameView } from './frame-sink.ts';
import { keepMemory, takeMemory } from './kept-memory.ts';
import type { KeyBatch } from './operator.ts';

/*
 * One block of memory. Bytes of records lie from its begin on, keys before values; the index of the records lies at
 * its end and grows towards them; what is left between is enough for the order, which is made when all are there.
 */

/** Words of the index per record: sort key (bytes 0 to 3; byte 4 and partition), begin, key length, length. */
const indexWords = 5;
const indexBytes = 4 * indexWords;
/** With its place in the order. */
const overheadBytes = indexBytes + 8;
/** The index of a record takes the low 24 bits of its place in the order. */
const maxRecords = 1 << 24;
/** Groups up to this size are cheaper to sort by insertion. */
const insertionLimit = 8;
/** Keys alike this far are compared by memcmp from there on. */
const maxRadixBytes = 64;
/** Bytes that are compared in a loop: a call into native code costs more. */
const loopBytes = 24;
/** Alignment of the order, and what its begin may lose by it. */
const alignBytes = 8;

/** A part of the order whose keys are alike up to `depth`. */
interface Group {
  readonly from: number;
  readonly to: number;
  readonly depth: number;
}

/**
 * Records in memory and their order by (partition, key bytes, emission); a view of one of them, see `moveTo`.
 *
 * Sorting: records are parted by partition; then five key bytes and the record's index are packed into 64 bits,
 * which V8 sorts natively, without a comparator; groups that are still equal are sorted by their next five bytes,
 * and so on. The index in the low bits keeps equal keys in order of emission.
 */
export class SortArena implements FrameView {
  readonly bytes: Buffer;
  count = 0;
  keyStart = 0;
  keyEnd = 0;
  end = 0;
  partition = 0;
  #used = 0;
  readonly #partitions: number;
  /** Of the same memory. */
  readonly view: DataView;
  /** All of the memory as words. The index of record i begins at word `#top - indexWords * (i + 1)`. */
  readonly #words: Uint32Array<ArrayBuffer>;
  readonly #top: number;
  /** First word of the order while it is there: low and high word of each entry (little-endian, as all of Node). */
  #orderAt = 0;

  /** Takes at most `memoryBytes`, index and order included (and at least 256 bytes). */
  constructor(memoryBytes: number, partitions: number) {
    this.#partitions = partitions;
    const sizeBytes = Math.floor(Math.max(256, memoryBytes) / alignBytes) * alignBytes;
    const memory = takeMemory(sizeBytes);
    this.bytes = Buffer.from(memory);
    this.view = new DataView(memory);
    this.#words = new Uint32Array(memory);
    this.#top = this.#words.length;
  }

  /** Copies a record in; false where there is no room for it. */
  add(key: Uint8Array, value: Uint8Array, partition: number): boolean {
    const sizeBytes = key.length + value.length;
    if (!this.#hasRoom(1, sizeBytes)) return false;
    const at = this.#used;
    copyIn(this.bytes, at, key);
    copyIn(this.bytes, at + key.length, value);
    this.#index({ at, keyBytes: key.length, sizeBytes, partition });
    this.#used = at + sizeBytes;
    return true;
  }

  /** Copies keys of a batch in, from number `from` on; answers how many found room. */
  addKeys({ bytes, starts, ends, partitions, count }: KeyBatch, from: number): number {
    const first = starts[from] ?? 0;
    let taken = count - from;
    // All of them at once if there is room, else as many as there is room for.
    if (!this.#hasRoom(taken, (ends[count - 1] ?? 0) - first)) {
      taken = 0;
      while (from + taken < count && this.#hasRoom(taken + 1, (ends[from + taken] ?? 0) - first)) taken++;
    }
    if (taken === 0) return 0;
    const last = from + taken;
    // What lies between keys, their line ends, comes along: one copy is cheaper than many.
    const shift = this.#used - first;
    this.#used += bytes.copy(this.bytes, this.#used, first, ends[last - 1]);
    for (let each = from; each < last; each++) {
      const start = starts[each] ?? 0;
      const keyBytes = (ends[each] ?? 0) - start;
      this.#index({ at: start + shift, keyBytes, sizeBytes: keyBytes, partition: partitions[each] ?? 0 });
    }
    return taken;
  }

  #hasRoom(records: number, bytes: number): boolean {
    const after = this.count + records;
    const left = 4 * this.#top - alignBytes - this.#used - bytes;
    return after <= maxRecords && left >= after * overheadBytes;
  }

  #index({ at, keyBytes, sizeBytes, partition }: IndexEntry): void {
    const words = this.#words;
    const entry = this.#top - indexWords * ++this.count;
    let head = 0;
    let fifth = 0;
    if (keyBytes > 4) {
      head = this.view.getUint32(at);
      fifth = this.bytes[at + 4] ?? 0;
    } else if (keyBytes > 0) {
      // Zeros after the key's end. There are always four bytes: the index lies behind.
      head = this.view.getUint32(at) & (-1 << (8 * (4 - keyBytes)));
    }
    words[entry] = head;
    words[entry + 1] = (fifth << 16) | partition;
    words[entry + 2] = at;
    words[entry + 3] = keyBytes;
    words[entry + 4] = sizeBytes;
  }

  /** Ends the use of its memory, which another may have then. */
  release(): void {
    this.clear();
    keepMemory(this.#words.buffer);
  }

  clear(): void {
    this.count = 0;
    this.#used = 0;
  }

  /** After `sort`: the record (by number of emission) at place `rank` of the order. */
  at(rank: number): number {
    return (this.#words[this.#orderAt + 2 * rank] ?? 0) & 0xffffff;
  }

  /** After `sort`: stands on the record at place `rank` of the order. */
  moveTo(rank: number): void {
    const words = this.#words;
    const entry = this.#entry(this.at(rank));
    const start = words[entry + 2] ?? 0;
    this.partition = (words[entry + 1] ?? 0) & 0xffff;
    this.keyStart = start;
    this.keyEnd = start + (words[entry + 3] ?? 0);
    this.end = start + (words[entry + 4] ?? 0);
  }

  #entry(index: number): number {
    return this.#top - indexWords * (index + 1);
  }

  #start(index: number): number {
    return this.#words[this.#entry(index) + 2] ?? 0;
  }

  #keyBytes(index: number): number {
    return this.#words[this.#entry(index) + 3] ?? 0;
  }

  /** Puts the order right; call before `at` and `moveTo`, and add nothing until `clear`. */
  sort(): void {
    this.#orderAt = (Math.ceil(this.#used / alignBytes) * alignBytes) / 4;
    const ends = this.#partBy();
    const order = new BigUint64Array(this.bytes.buffer, 4 * this.#orderAt, this.count);
    const pending: Group[] = [];
    let from = 0;
    for (const to of ends) {
      this.#sortNative(order, { from, to, depth: 5 }, pending);
      from = to;
    }
    for (let group = pending.pop(); group !== undefined; group = pending.pop()) {
      const { from: first, to, depth } = group;
      if (to - first <= insertionLimit) this.#sortByInsertion(group);
      else if (this.#allEndWithin(group)) this.#sortEnded(group);
      else if (depth >= maxRadixBytes) this.#sortByComparing(group);
      else {
        this.#packBytes(group);
        this.#sortNative(order, { from: first, to, depth: depth + 5 }, pending);
      }
    }
  }

  /** Writes the order parted by partition, with the first five key bytes of each; answers where partitions end. */
  #partBy(): Uint32Array {
    const words = this.#words;
    const places = new Uint32Array(this.#partitions);
    let entry = this.#top;
    for (let index = 0; index < this.count; index++) {
      entry -= indexWords;
      const partition = (words[entry + 1] ?? 0) & 0xffff;
      places[partition] = (places[partition] ?? 0) + 1;
    }
    let before = 0;
    for (let partition = 0; partition < places.length; partition++) {
      const records = places[partition] ?? 0;
      places[partition] = before;
      before += records;
    }
    entry = this.#top;
    for (let index = 0; index < this.count; index++) {
      entry -= indexWords;
      const fifthAndPartition = words[entry + 1] ?? 0;
      const partition = fifthAndPartition & 0xffff;
      const place = places[partition] ?? 0;
      places[partition] = place + 1;
      words[this.#orderAt + 2 * place] = ((fifthAndPartition >>> 16) << 24) | index;
      words[this.#orderAt + 2 * place + 1] = words[entry] ?? 0;
    }
    return places;
  }

  /** Sort key of the later rounds: five key bytes from `depth`, zeros after the key's end. */
  #packBytes({ from, to, depth }: Group): void {
    const { bytes } = this;
    const words = this.#words;
    for (let rank = from; rank < to; rank++) {
      const index = this.at(rank);
      const at = this.#start(index) + depth;
      const left = this.#keyBytes(index) - depth;
      const b0 = left > 0 ? (bytes[at] ?? 0) : 0;
      const b1 = left > 1 ? (bytes[at + 1] ?? 0) : 0;
      const b2 = left > 2 ? (bytes[at + 2] ?? 0) : 0;
      const b3 = left > 3 ? (bytes[at + 3] ?? 0) : 0;
      const b4 = left > 4 ? (bytes[at + 4] ?? 0) : 0;
      words[this.#orderAt + 2 * rank + 1] = (b0 << 24) | (b1 << 16) | (b2 << 8) | b3;
      words[this.#orderAt + 2 * rank] = (b4 << 24) | index;
    }
  }

  /** Sorts a part of the order and adds the groups that are still alike, now up to `depth`. */
  #sortNative(order: BigUint64Array, { from, to, depth }: Group, pending: Group[]): void {
    if (to - from < 2) return;
    order.subarray(from, to).sort();
    const words = this.#words;
    const base = this.#orderAt;
    let begin = from;
    for (let rank = from + 1; rank <= to; rank++) {
      const same =
        rank < to &&
        words[base + 2 * rank + 1] === words[base + 2 * begin + 1] &&
        (words[base + 2 * rank] ?? 0) >>> 24 === (words[base + 2 * begin] ?? 0) >>> 24;
      if (same) continue;
      if (rank - begin > 1) pending.push({ from: begin, to: rank, depth });
      begin = rank;
    }
  }

  #allEndWithin({ from, to, depth }: Group): boolean {
    for (let rank = from; rank < to; rank++) {
      if (this.#keyBytes(this.at(rank)) > depth) return false;
    }
    return true;
  }

  /** Keys that ended and were equal up to padding differ in length alone; equal lengths are in order already. */
  #sortEnded(group: Group): void {
    const { from, to } = group;
    const size = this.#keyBytes(this.at(from));
    for (let rank = from + 1; rank < to; rank++) {
      if (this.#keyBytes(this.at(rank)) !== size) {
        this.#sortByComparing(group);
        return;
      }
    }
  }

  #sortByInsertion({ from, to, depth }: Group): void {
    const words = this.#words;
    const base = this.#orderAt;
    for (let rank = from + 1; rank < to; rank++) {
      const index = this.at(rank);
      let place = rank;
      while (place > from && this.#compare(this.at(place - 1), index, depth) > 0) {
        words[base + 2 * place] = this.at(place - 1);
        place--;
      }
      words[base + 2 * place] = index;
    }
  }

  #sortByComparing({ from, to, depth }: Group): void {
    const indexes = Uint32Array.from({ length: to - from }, (_, place) => this.at(from + place));
    indexes.sort((left, right) => this.#compare(left, right, depth));
    for (let place = 0; place < indexes.length; place++)
      this.#words[this.#orderAt + 2 * (from + place)] = indexes[place] ?? 0;
  }

  #compare(left: number, right: number, depth: number): number {
    const { bytes } = this;
    const leftStart = this.#start(left);
    const rightStart = this.#start(right);
    const leftBytes = this.#keyBytes(left);
    const rightBytes = this.#keyBytes(right);
    const shorter = Math.min(leftBytes, rightBytes);
    let at = Math.min(depth, shorter);
    for (const stop = Math.min(shorter, at + loopBytes); at < stop; at++) {
      const differs = (bytes[leftStart + at] ?? 0) - (bytes[rightStart + at] ?? 0);
      if (differs !== 0) return differs;
    }
    const [leftEnd, rightEnd] = [leftStart + leftBytes, rightStart + rightBytes];
    return (
      (at < shorter ? bytes.compare(bytes, rightStart + at, rightEnd, leftStart + at, leftEnd) : 0) ||
      // All that both have is equal, be it by padding: the shorter one is first, then the earlier one.
      leftBytes - rightBytes ||
      left - right
    );
  }
}

interface IndexEntry {
  readonly at: number;
  readonly keyBytes: number;
  readonly sizeBytes: number;
  readonly partition: number;
}

/** Copies bytes; a loop beats the call into native code for the short keys of a word count. */
function copyIn(target: Buffer, at: number, source: Uint8Array): void {
  const size = source.length;
  if (size > loopBytes) target.set(source, at);
  else for (let index = 0; index < size; index++) target[at + index] = source[index] ?? 0;
}
