import { BadRecordError } from '../worker/operator.ts';
import type { Combine, TaskOutput } from '../worker/operator.ts';
import { CountTable } from './count-table.ts';

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

/** Sums up occurrences inside the task before they are emitted, within bounded memory. */
export class LocalCounts {
  /** Occurrences counted so far. */
  added = 0;
  private readonly table = new CountTable({ arenaBytes: 8 * 1024 * 1024, maxEntries: 1 << 18 });
  private readonly output: TaskOutput;

  constructor(output: TaskOutput) {
    this.output = output;
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

  /** Counts a string that does not even fit into an empty table. */
  async addLarge(key: Buffer): Promise<void> {
    this.added++;
    await this.output.emit(key, one);
  }

  /** Emits what is held, and forgets it. */
  async flush(): Promise<void> {
    for (const [key, count] of this.table.entries()) {
      const wait = this.output.emit(key, count === 1 ? one : encodeCount(count));
      if (wait !== undefined) await wait;
    }
    this.table.clear();
  }
}
