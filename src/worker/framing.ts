import { limits } from '../contracts/limits.ts';
import { BadInputError } from './operator.ts';

/*
 * How records lie in intermediate objects and scratch files: varint key length, varint value length, key, value.
 * Frames delimit themselves, so that any run of whole frames is a byte range that can be read on its own.
 */

/** Bytes that `length` takes as a varint (seven bits per byte, lowest first). */
export function varintBytes(length: number): number {
  if (length < 0x80) return 1;
  if (length < 0x4000) return 2;
  if (length < 0x20_0000) return 3;
  return length < 0x1000_0000 ? 4 : 5;
}

/** Writes `length` at `at`; answers the position after it. */
export function writeVarint(target: Uint8Array, at: number, length: number): number {
  let rest = length;
  let position = at;
  while (rest >= 0x80) {
    target[position++] = (rest & 0x7f) | 0x80;
    rest >>>= 7;
  }
  target[position++] = rest;
  return position;
}

/** Bytes of the two lengths before a key and a value. */
export const headerBytes = (keyBytes: number, valueBytes: number): number =>
  varintBytes(keyBytes) + varintBytes(valueBytes);

/** Bytes of a whole frame. Throws `BadInputError` where the record is longer than `limits.recordBytes`. */
export function frameBytes(keyBytes: number, valueBytes: number): number {
  if (keyBytes + valueBytes > limits.recordBytes) {
    throw new BadInputError(
      `a record has ${String(keyBytes + valueBytes)} bytes; the most is ${String(limits.recordBytes)}`,
    );
  }
  return headerBytes(keyBytes, valueBytes) + keyBytes + valueBytes;
}

/** Copies bytes; a loop beats the call into native code for the short keys of a word count. */
export function copyBytes(target: Uint8Array, at: number, source: Uint8Array): void {
  const size = source.length;
  if (size > 24) {
    target.set(source, at);
    return;
  }
  for (let index = 0; index < size; index++) target[at + index] = source[index] ?? 0;
}

/** Writes a frame at `at`, where `frameBytes` must be free; answers the position after it. */
export function writeFrame(target: Uint8Array, at: number, key: Uint8Array, value: Uint8Array): number {
  const keyAt = writeVarint(target, writeVarint(target, at, key.length), value.length);
  copyBytes(target, keyAt, key);
  copyBytes(target, keyAt + key.length, value);
  return keyAt + key.length + value.length;
}

/** A record as a frame of its own. */
export function frameOf(key: Uint8Array, value: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(frameBytes(key.length, value.length));
  writeFrame(frame, 0, key, value);
  return frame;
}
