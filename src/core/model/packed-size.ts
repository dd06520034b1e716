import type { Codec } from '../../contracts/plan.ts';
import { gzipCandidate } from './gzip-header.ts';
import type { SourceObject } from './splits.ts';

type Sized = Pick<SourceObject, 'sizeBytes'>;

/** Beginning of a file that is looked at, of gzip for a second member: those of blocked gzip have 64 KiB at most. */
const lookBytes = 128 * 1024;
/** Smaller gzip files are not worth a look. */
const leastCutBytes = 2 * 64 * 1024;
/** Of one member text is hardly packed less than that. */
const leastTextRatio = 2;

/** Bytes [start, end) of a compressed object whose beginning `heldBytes` looks at. */
export const lookRange = ({ sizeBytes }: Sized): { start: number; end: number } => ({
  start: 0,
  end: Math.min(sizeBytes, lookBytes),
});

/** Bytes [start, end) of an object that tell whether it may be gzip of several members; empty where it is not asked. */
export const gzipLookRange = (object: Sized): { start: number; end: number } =>
  object.sizeBytes < leastCutBytes ? { start: 0, end: 0 } : lookRange(object);

/**
 * About how much a gzip object holds, and whether it seems to be several members, by its `gzipLookRange` and its
 * `tellingRange`. It seems so where a second one begins in the look, where the last is far smaller than all, and where it is so
 * large that its last bytes tell nothing. Whoever reads the pieces finds out: of a single member the first gives all.
 */
export function gzipShape(
  object: SourceObject,
  look: Uint8Array,
  telling: Uint8Array,
): { readonly unpackedBytes: number; readonly isSeveral: boolean } {
  const { sizeBytes } = object;
  const unpackedBytes = unpackedSize(object, 'gzip', telling);
  const ratio = ratioOfMembers(look);
  if (ratio !== undefined)
    return { unpackedBytes: Math.max(sizeBytes, Math.ceil(ratio * sizeBytes)), isSeveral: true };
  const last = gzipSize(telling);
  const isUntold = last === undefined || sizeBytes > gzipTurn / usualRatio / 2;
  const isSeveral = look.length > 0 && (isUntold || last < sizeBytes * leastTextRatio);
  return { unpackedBytes, isSeveral };
}

/** By how much the members were packed that end in a look; undefined where none is seen to. */
function ratioOfMembers(look: Uint8Array): number | undefined {
  let [held, at] = [0, 0];
  for (
    let next = gzipCandidate(look, leastMember);
    next >= 0;
    next = gzipCandidate(look, next + leastMember)
  ) {
    const size = little(look, next - gzipSizeBytes, gzipSizeBytes);
    // What only looks like a begin comes after any four bytes.
    if (size > (next - at) * mostDeflated) continue;
    held += size;
    at = next;
  }
  return at === 0 ? undefined : held / at;
}

/** Head, data and sums of a member of nothing. */
const leastMember = 20;

/** Bytes [start, end) of a compressed object that tell about how much it holds. */
export function tellingRange({ sizeBytes }: Sized, codec: Codec): { start: number; end: number } {
  if (codec === 'gzip') return { start: Math.max(0, sizeBytes - gzipSizeBytes), end: sizeBytes };
  return { start: 0, end: Math.min(sizeBytes, codec === 'zstd' ? zstdHeadBytes : bzip2HeadBytes) };
}

/** Text is packed to about so much less where nothing tells more. */
const usualRatio = 4;
/** Deflate packs a thousandfold at most; a size beyond that is none. */
const mostDeflated = 1_032;
const gzipSizeBytes = 4;
/** Sizes of gzip begin anew after so many bytes. */
const gzipTurn = 2 ** 32;
const zstdHeadBytes = 18;
const zstdMagic = 0xfd2fb528;
const bzip2HeadBytes = 128 * 1024;
const bzip2LevelBytes = 100_000;

/**
 * About how many bytes an object holds when it is unpacked, by its `tellingRange`: exact for gzip of one member under 4 GiB
 * and for zstd of one frame that tells its size, by the number of its blocks for bzip2, a usual ratio else. Never less
 * than it stores.
 */
export function unpackedSize({ sizeBytes }: SourceObject, codec: Codec, telling: Uint8Array): number {
  const found = codec === 'gzip' ? gzipSize(telling) : codec === 'zstd' ? zstdSize(telling) : undefined;
  const told = codec === 'bzip2' ? bzip2Size(sizeBytes, telling) : undefined;
  const usual = told ?? sizeBytes * usualRatio;
  // A size of less than is stored is that of one of several members.
  if (found === undefined || found < sizeBytes * leastPacked) return usual;
  if (codec !== 'gzip') return Math.max(found, sizeBytes);
  if (found > sizeBytes * mostDeflated || sizeBytes > gzipTurn / usualRatio / 2)
    return Math.max(usual, sizeBytes);
  return Math.max(found, sizeBytes);
}

/**
 * About how many bytes an object holds when it is unpacked, by its `lookRange` and its `tellingRange`, where something in it tells;
 * undefined where only what is usual could be said, of which it may hold ten times as much. Of gzip of several members, and of
 * zstd of several frames, that are packed very well it may still be too little.
 */
export function heldBytes(
  object: Sized,
  codec: Codec,
  look: Uint8Array,
  telling: Uint8Array,
): number | undefined {
  const { sizeBytes } = object;
  const isSeenWhole = look.length === sizeBytes;
  if (codec === 'zstd') {
    const held = zstdSize(telling);
    return held === undefined || held < sizeBytes * leastPacked ? undefined : held;
  }
  if (codec === 'bzip2') {
    if (!isSeenWhole) return bzip2Size(sizeBytes, look);
    const blocks = bzip2Blocks(look).length;
    const blockBytes = bzip2BlockBytes(look);
    return blocks === 0 || blockBytes === undefined ? undefined : blocks * blockBytes;
  }
  const ratio = ratioOfMembers(look);
  if (ratio !== undefined) return Math.ceil(ratio * sizeBytes);
  const last = gzipSize(telling);
  if (last === undefined || last > sizeBytes * mostDeflated) return undefined;
  const isOne = isSeenWhole || last >= sizeBytes * leastTextRatio;
  return isOne && sizeBytes <= gzipTurn / usualRatio / 2 ? last : undefined;
}

/** What cannot be packed grows by a few bytes. */
const leastPacked = 0.9;

const little = (bytes: Uint8Array, at: number, count: number): number =>
  Array.from(bytes.subarray(at, at + count)).reduce((sum, byte, index) => sum + byte * 2 ** (8 * index), 0);

/** The last bytes of a member: how many it holds. */
const gzipSize = (tail: Uint8Array): number | undefined =>
  tail.length < gzipSizeBytes ? undefined : little(tail, 0, gzipSizeBytes);

/** What the head of a frame tells, if it does. Source: RFC 8878, section 3.1.1.1. */
function zstdSize(head: Uint8Array): number | undefined {
  const descriptor = head[4];
  if (descriptor === undefined || little(head, 0, 4) !== zstdMagic) return undefined;
  const isSingle = (descriptor & 0x20) !== 0;
  const bytes = [isSingle ? 1 : 0, 2, 4, 8][descriptor >>> 6] ?? 0;
  if (bytes === 0) return undefined;
  const at = 5 + (isSingle ? 0 : 1) + ([0, 1, 2, 4][descriptor & 3] ?? 0);
  if (head.length < at + bytes) return undefined;
  return little(head, at, bytes) + (bytes === 2 ? 256 : 0);
}

/** What a full block holds; undefined where the head tells no level. */
function bzip2BlockBytes(head: Uint8Array): number | undefined {
  const level = (head[3] ?? 0) - 0x30;
  return level < 1 || level > 9 ? undefined : level * bzip2LevelBytes;
}

/** As many full blocks as come on average in what was looked at; undefined where fewer than two begin there. */
function bzip2Size(sizeBytes: number, head: Uint8Array): number | undefined {
  const blockBytes = bzip2BlockBytes(head);
  if (blockBytes === undefined) return undefined;
  const blocks = bzip2Blocks(head);
  const [first, last] = [blocks[0], blocks.at(-1)];
  if (first === undefined || last === undefined || first === last) return undefined;
  const perByte = ((blocks.length - 1) * blockBytes) / (last - first);
  return Math.max(sizeBytes, Math.round(perByte * sizeBytes));
}

/** Bytes at which blocks begin, of which each may begin at any bit: they open with the first digits of pi. */
function bzip2Blocks(head: Uint8Array): number[] {
  const high = 0x314159;
  const low = 0x265359;
  const found: number[] = [];
  let before = 0;
  let behind = 0;
  for (const [index, byte] of head.entries())
    for (let bit = 7; bit >= 0; bit--) {
      before = ((before << 1) | (behind >>> 23)) & 0xffffff;
      behind = ((behind << 1) | ((byte >>> bit) & 1)) & 0xffffff;
      if (before === high && behind === low) found.push(index - 5);
    }
  return found;
}
