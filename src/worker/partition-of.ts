/**
 * The partition of a key: FNV-1a over its bytes, mixed (its low bits alone spread badly), modulo `partitions`.
 * Part of the format of intermediate data: both sides of a join must agree.
 */
export function partitionOf(key: Uint8Array, partitions: number): number {
  if (partitions === 1) return 0;
  let hash = 0x811c9dc5;
  for (let index = 0; index < key.length; index++) hash = Math.imul(hash ^ (key[index] ?? 0), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0) % partitions;
}
