import { BadRecordError } from '../worker/operator.ts';
import type { Combine, TaskContext, TaskOutput } from '../worker/operator.ts';
import { partitionOfHash } from '../worker/partition-of.ts';
import { CountTable } from './count-table.ts';
import type { Spots } from './count-table.ts';

/** Digits that a plain number holds exactly, whatever they are. */
const safeDigits = 15;

const digitZero = 0x30;

/** The count in ASCII digits, as values between stages carry it. */
export const encodeCount = (count: number | bigint): Buffer => Buffer.from(count.toString(), 'latin1');

/** A count of ASCII digits, as a number where it is exact; throws BadRecordError where it is something else. */
export function decodeCount(value: Buffer): number | bigint {
  if (value.length === 0) throw badCount(value);
  let count = 0;
  for (const byte of value) {
    const digit = byte - digitZero;
    if (digit < 0 || digit > 9) throw badCount(value);
    count = count * 10 + digit;
  }
  return value.length <= safeDigits ? count : BigInt(value.toString('latin1'));
}

/** The exact sum of two counts. */
export function addCounts(left: number | bigint, right: number | bigint): number | bigint {
  if (typeof left === 'number' && typeof right === 'number') {
    const sum = left + right;
    if (Number.isSafeInteger(sum)) return sum;
  }
  return BigInt(left) + BigInt(right);
}

/** Combines two counts of one key. */
export const combineCounts: Combine = (left, right) =>
  encodeCount(addCounts(decodeCount(left), decodeCount(right)));

const badCount = (value: Buffer): BadRecordError =>
  new BadRecordError(
    `a count must be decimal digits, not ${JSON.stringify(value.toString('latin1').slice(0, 80))}`,
  );

const one = Buffer.from('1');
/** Three quarters of the slots of a table of 8 MB: a larger one would be farther from the core. */
const maxEntries = (3 << 18) / 4;

/**
 * Sums up occurrences inside the task before they are emitted, within bounded memory. What is emitted is combined as far
 * as pays: each record names its partition, so that the sorter does not look for others of its key.
 */
export class LocalCounts {
  /** Occurrences counted so far. */
  added = 0;
  private readonly table = new CountTable({ arenaBytes: 4 * 1024 * 1024, maxEntries });
  private readonly output: TaskOutput;
  private readonly partitions: number;

  constructor({ output, partitions }: Pick<TaskContext, 'output' | 'partitions'>) {
    this.output = output;
    this.partitions = partitions;
  }

  /** Whether there is room for one more string of this length; where not, `flush` before `add`. */
  hasRoom(length: number): boolean {
    return !this.table.isFull(length);
  }

  /** Counts bytes [start, end); `hash` as `hashBytes` gives it. */
  add(bytes: Buffer, start: number, end: number, hash: number): void {
    this.added++;
    this.table.add(bytes, start, end, hash);
  }

  /** Counts strings; await what is returned. */
  addAll(spots: Spots): Promise<void> | undefined {
    this.added += spots.count;
    const done = this.table.addAll(spots, 0);
    return done === spots.count ? undefined : this.addRest(spots, done);
  }

  private async addRest(spots: Spots, from: number): Promise<void> {
    for (let at = from; at < spots.count;) {
      await this.flush();
      const done = this.table.addAll(spots, at);
      at += done;
      if (done > 0) continue;
      await this.output.emit(spots.bytes.subarray(spots.starts[at], spots.ends[at]), one);
      at++;
    }
  }

  /** Counts a string that does not even fit into an empty table. */
  async addLarge(key: Buffer): Promise<void> {
    this.added++;
    await this.output.emit(key, one);
  }

  /** Emits what is held, and forgets it. */
  async flush(): Promise<void> {
    for (const [key, count, hash] of this.table.entries()) {
      const value = count === 1 ? one : encodeCount(count);
      const wait = this.output.emit(key, value, partitionOfHash(hash, this.partitions));
      if (wait !== undefined) await wait;
    }
    this.table.clear();
  }
}
