const magic = Uint8Array.of(0x1f, 0x8b, 0x08);
const fixedBytes = 10;
/** Flags of a member's head, and those that no member has. */
const hasCheck = 2;
const hasExtra = 4;
const hasName = 8;
const hasComment = 16;
const reservedFlags = 0xe0;

/** Bytes that tell whether a member of gzip may begin at a place. */
export const gzipMagicBytes = magic.length + 1;

/**
 * The first place from `from` on, and before `end`, at which a member of gzip may begin, by its first four bytes; -1 where
 * there is none. One place in 2^27 of other data looks so.
 */
export function gzipCandidate(bytes: Uint8Array, from: number, end = bytes.length): number {
  for (let at = bytes.indexOf(0x1f, from); at >= 0 && at < end; at = bytes.indexOf(0x1f, at + 1)) {
    if (at + gzipMagicBytes > bytes.length) return -1;
    const flags = bytes[at + 3] ?? 0;
    if (bytes[at + 1] === magic[1] && bytes[at + 2] === magic[2] && (flags & reservedFlags) === 0) return at;
  }
  return -1;
}

/**
 * Bytes of the head of a member of gzip; "more" where it goes on behind `bytes`, undefined where it is none.
 *
 * Source: RFC 1952, section 2.3.
 */
export function gzipHeadBytes(bytes: Uint8Array): number | 'more' | undefined {
  if (bytes.length < gzipMagicBytes)
    return magic.some((byte, at) => (bytes[at] ?? byte) !== byte) ? undefined : 'more';
  if (gzipCandidate(bytes, 0, 1) !== 0) return undefined;
  const flags = bytes[3] ?? 0;
  let at = fixedBytes;
  if ((flags & hasExtra) !== 0) at += 2 + (bytes[at] ?? 0) + 256 * (bytes[at + 1] ?? 0);
  for (const flag of [hasName, hasComment]) {
    if ((flags & flag) === 0) continue;
    const zero = at < bytes.length ? bytes.indexOf(0, at) : -1;
    if (zero < 0) return 'more';
    at = zero + 1;
  }
  if ((flags & hasCheck) !== 0) at += 2;
  return at > bytes.length ? 'more' : at;
}
