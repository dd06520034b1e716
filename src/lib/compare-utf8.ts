/** Orders strings as their UTF-8 bytes would be ordered, which UTF-16 does not do past U+D7FF. */
export function compareUtf8(a: string, b: string): number {
  const shared = Math.min(a.length, b.length);
  for (let at = 0; at < shared; at++) {
    const unitA = a.charCodeAt(at);
    const unitB = b.charCodeAt(at);
    if (unitA !== unitB) return utf8Rank(unitA) - utf8Rank(unitB);
  }
  return a.length - b.length;
}

/** Surrogates make code points above all others, so they rank past U+E000 to U+FFFF. */
function utf8Rank(unit: number): number {
  if (unit >= 0xe000) return unit - 0x800;
  return unit >= 0xd800 ? unit + 0x2000 : unit;
}
