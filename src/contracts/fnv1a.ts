const prime = 0x01000193;

/** 32-bit FNV-1a of the UTF-8 bytes of `text`, unsigned: the same on every machine and in every run. */
export function fnv1a(text: string): number {
  let hash = 0x811c9dc5;
  for (let place = 0; place < text.length; place++) {
    const code = text.charCodeAt(place);
    // ASCII is its own bytes, and to encode a short text costs ten times as much as its hash.
    if (code > 0x7f) return ofBytes(new TextEncoder().encode(text.slice(place)), hash);
    hash = Math.imul(hash ^ code, prime);
  }
  return hash >>> 0;
}

function ofBytes(bytes: Uint8Array, before: number): number {
  let hash = before;
  for (const byte of bytes) hash = Math.imul(hash ^ byte, prime);
  return hash >>> 0;
}
