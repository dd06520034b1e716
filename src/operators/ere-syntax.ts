/** What of an extended regular expression matters to matching, over bytes. */
export type Ere =
  | { readonly kind: 'empty' }
  /** One byte: `set[byte]` is 1 where it matches. */
  | { readonly kind: 'byte'; readonly set: Uint8Array }
  | { readonly kind: 'assert'; readonly what: Assertion }
  | { readonly kind: 'cat' | 'alt'; readonly items: readonly Ere[] }
  | { readonly kind: 'repeat'; readonly item: Ere; readonly min: number; readonly max: number }
  | { readonly kind: 'group'; readonly item: Ere; readonly index: number }
  /** `bytes` are those that the group's text can hold. */
  | { readonly kind: 'backreference'; readonly group: number; readonly bytes: Uint8Array };

/** What holds between two bytes. A "line" is what lies between newlines. */
export type Assertion = 'line-start' | 'line-end' | 'word-start' | 'word-end' | 'word-edge' | 'no-word-edge';

/** A set with the bytes for which `holds`. */
export function byteSet(holds: (byte: number) => boolean): Uint8Array {
  const set = new Uint8Array(256);
  for (let byte = 0; byte < 256; byte++) set[byte] = holds(byte) ? 1 : 0;
  return set;
}

const within = (from: string, to: string) => (byte: number) =>
  byte >= from.charCodeAt(0) && byte <= to.charCodeAt(0);
const isUpper = within('A', 'Z');
const isLower = within('a', 'z');
const isDigit = within('0', '9');
const isAlnum = (byte: number): boolean => isUpper(byte) || isLower(byte) || isDigit(byte);
const isSpace = (byte: number): boolean => byte === 0x20 || (byte >= 0x09 && byte <= 0x0d);

/** Letters, digits and "_" of the C locale. */
export const isWordByte = (byte: number): boolean => isAlnum(byte) || byte === 0x5f;

/** Whether a byte is in a POSIX class of the C locale. */
export const posixClasses: Readonly<Record<string, (byte: number) => boolean>> = {
  alpha: (byte) => isUpper(byte) || isLower(byte),
  digit: isDigit,
  alnum: isAlnum,
  upper: isUpper,
  lower: isLower,
  space: isSpace,
  blank: (byte) => byte === 0x20 || byte === 0x09,
  punct: (byte) => byte > 0x20 && byte < 0x7f && !isAlnum(byte),
  print: (byte) => byte >= 0x20 && byte < 0x7f,
  graph: (byte) => byte > 0x20 && byte < 0x7f,
  cntrl: (byte) => byte < 0x20 || byte === 0x7f,
  xdigit: (byte) => isDigit(byte) || within('a', 'f')(byte) || within('A', 'F')(byte),
};

/** What a letter after a backslash means to GNU grep; other letters would mean nothing, so they are refused. */
export const escapes: Readonly<Record<string, Ere>> = {
  w: { kind: 'byte', set: byteSet(isWordByte) },
  W: { kind: 'byte', set: byteSet((byte) => !isWordByte(byte)) },
  s: { kind: 'byte', set: byteSet(isSpace) },
  S: { kind: 'byte', set: byteSet((byte) => !isSpace(byte)) },
  b: { kind: 'assert', what: 'word-edge' },
  B: { kind: 'assert', what: 'no-word-edge' },
  '<': { kind: 'assert', what: 'word-start' },
  '>': { kind: 'assert', what: 'word-end' },
  '`': { kind: 'assert', what: 'line-start' },
  "'": { kind: 'assert', what: 'line-end' },
};

/** The byte, or the lower case of it if it is an ASCII letter. */
export const foldByte = (byte: number): number => (isUpper(byte) ? byte | 0x20 : byte);

/** The set with both cases of every ASCII letter in it. */
export function foldCase(set: Uint8Array): Uint8Array {
  return byteSet((byte) => {
    const other = isUpper(byte) || isLower(byte) ? byte ^ 0x20 : byte;
    return set[byte] === 1 || set[other] === 1;
  });
}
