const offset = 0x811c9dc5;
const prime = 0x01000193;
const quote = 0x22;
const backslash = 0x5c;
const space = 0x20;

/**
 * The partition of a key: FNV-1a over its bytes, mixed (its low bits alone spread badly), modulo `partitions`.
 * Part of the format of intermediate data: both sides of a join must agree.
 */
export const partitionOf = (key: Uint8Array, partitions: number): number =>
  partitionOfRange(key, 0, key.length, partitions);

/** The partition of a key that lies in bytes `[start, end)`. */
export function partitionOfRange(bytes: Uint8Array, start: number, end: number, partitions: number): number {
  if (partitions === 1) return 0;
  let hash = offset;
  for (let at = start; at < end; at++) hash = Math.imul(hash ^ (bytes[at] ?? 0), prime);
  return partitionOfHash(hash, partitions);
}

/**
 * The partition of the JSON of a text that lies in bytes `[start, end)`; -1 where its JSON has escapes, so that nothing less
 * than writing it tells.
 */
export function partitionOfPlainText(
  bytes: Uint8Array,
  start: number,
  end: number,
  partitions: number,
): number {
  if (partitions === 1) return 0;
  let hash = Math.imul(offset ^ quote, prime);
  for (let at = start; at < end; at++) {
    const byte = bytes[at] ?? 0;
    if (byte < space || byte === quote || byte === backslash) return -1;
    hash = Math.imul(hash ^ byte, prime);
  }
  return partitionOfHash(Math.imul(hash ^ quote, prime), partitions);
}

/** The partition of a key by the FNV-1a hash of its bytes. */
export function partitionOfHash(hash: number, partitions: number): number {
  let mixed = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return ((mixed ^ (mixed >>> 16)) >>> 0) % partitions;
}
