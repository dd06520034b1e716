import {
  brotliCompressSync,
  brotliDecompressSync,
  constants,
  deflateRawSync,
  inflateRawSync,
} from 'node:zlib';
import * as z from 'zod';
import { BrokenInvariantError } from '../../contracts/errors.ts';
import type { FinalPart, PartitionIndex } from '../../contracts/records.ts';

/** Longest JSON text that is stored as it is; longer ones are deflated, since items end at 400 KB. */
const PLAIN_CHARS = 4_096;
const INFLATED_LIMIT_BYTES = 64 * 1024 * 1024;
/** Ten thousand parts whose etags are as long as fit an item once they are deflated take a quarter of it. */
const FINAL_PART_LIMIT_BYTES = 4 * 1024 * 1024;
const LARGEST_U32 = 0xffff_ffff;
const NARROW = 0;
const WIDE = 1;

/** A value as JSON text, deflated where it is longer than `plainChars`. */
export function packJson(value: unknown, plainChars = PLAIN_CHARS): string | Uint8Array {
  const text = JSON.stringify(value);
  return text.length <= plainChars ? text : packText(text);
}

/**
 * What `packJson` packed. Throws `BrokenInvariantError` on anything else.
 *
 * @param mostBytes - of what was deflated. What user code may have written needs one of its own: some kilobytes may inflate
 * to more than a process bears to parse.
 */
export function unpackJson(packed: unknown, mostBytes = INFLATED_LIMIT_BYTES): unknown {
  if (typeof packed === 'string') return JSON.parse(packed);
  if (!(packed instanceof Uint8Array)) throw new BrokenInvariantError('a stored value is no JSON');
  return JSON.parse(unpackText(packed, mostBytes));
}

/** A text, deflated. */
export const packText = (text: string): Uint8Array => new Uint8Array(deflateRawSync(text));

/** Of brotli's levels the last but one: 30 KB take 9 ms, and are a quarter smaller than deflated. */
const brotliQuality = 10;

/** A long text in as few bytes as may be, by brotli: what is written once and seldom read. */
export const packTightly = (text: string): Uint8Array =>
  new Uint8Array(brotliCompressSync(text, { params: { [constants.BROTLI_PARAM_QUALITY]: brotliQuality } }));

/** What `packText` packed. Throws `BrokenInvariantError` on anything else. */
export const unpackText = (packed: unknown, mostBytes = INFLATED_LIMIT_BYTES): string =>
  unpackBy(inflateRawSync, packed, mostBytes);

/** What `packTightly` packed. Throws `BrokenInvariantError` on anything else. */
export const unpackTightly = (packed: unknown, mostBytes = INFLATED_LIMIT_BYTES): string =>
  unpackBy(brotliDecompressSync, packed, mostBytes);

function unpackBy(
  unpack: (bytes: Uint8Array, options: { readonly maxOutputLength: number }) => Buffer,
  packed: unknown,
  mostBytes: number,
): string {
  if (!(packed instanceof Uint8Array)) throw new BrokenInvariantError('a stored text is not binary');
  try {
    return unpack(packed, { maxOutputLength: mostBytes }).toString('utf8');
  } catch (cause) {
    if (!(cause instanceof RangeError)) throw cause;
    throw new BrokenInvariantError(`a stored text may inflate to ${mostBytes} bytes, and is longer`);
  }
}

/**
 * A partition index in 8 bytes a partition (12 where a length exceeds 4 GiB): one byte of width, then lengths,
 * then CRCs, little-endian. A thousand partitions as JSON would take 20 KB and so 20 write units.
 */
export function packPartitions({ lengths, crcs }: PartitionIndex): Uint8Array {
  const isWide = lengths.some((length) => length > LARGEST_U32);
  const width = isWide ? 8 : 4;
  const bytes = new Uint8Array(1 + lengths.length * (width + 4));
  const view = new DataView(bytes.buffer);
  view.setUint8(0, isWide ? WIDE : NARROW);
  for (const [index, length] of lengths.entries()) {
    const at = 1 + index * width;
    if (isWide) view.setFloat64(at, length, true);
    else view.setUint32(at, length, true);
    view.setUint32(1 + lengths.length * width + index * 4, crcs[index] ?? 0, true);
  }
  return bytes;
}

/** What `packPartitions` packed. Throws `BrokenInvariantError` on anything else. */
export function unpackPartitions(packed: unknown): PartitionIndex {
  if (!(packed instanceof Uint8Array))
    throw new BrokenInvariantError('a stored partition index is not binary');
  const view = new DataView(packed.buffer, packed.byteOffset, packed.byteLength);
  const isWide = view.getUint8(0) === WIDE;
  const width = isWide ? 8 : 4;
  const count = (packed.byteLength - 1) / (width + 4);
  if (!Number.isInteger(count)) throw new BrokenInvariantError('a stored partition index is cut off');
  // Of known size: lists that grow leave a multiple of themselves behind, and there are ten thousand at once.
  const lengths = new Array<number>(count);
  const crcs = new Array<number>(count);
  for (let index = 0; index < count; index++) {
    const at = 1 + index * width;
    lengths[index] = isWide ? view.getFloat64(at, true) : view.getUint32(at, true);
    crcs[index] = view.getUint32(1 + count * width + index * 4, true);
  }
  return { lengths, crcs };
}

const finalPart = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('empty') }),
  z.object({
    kind: z.literal('upload'),
    uploadId: z.string(),
    sizeBytes: z.number(),
    parts: z.array(z.object({ number: z.number(), etag: z.string() })),
  }),
]);
const finalHead = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('md5'), uploadId: z.string(), sizeBytes: z.number(), first: z.number() }),
  z.object({ kind: z.literal('numbered'), uploadId: z.string(), sizeBytes: z.number() }),
  z.object({ kind: z.literal('inline') }),
  z.object({ kind: z.literal('plain') }),
]);
const md5Etag = /^"[0-9a-f]{32}"$/;
const MD5_BYTES = 16;
const NUMBER_BYTES = 2;

/**
 * A final part: a line of JSON, and after it, where the etags of the parts are MD5 sums as S3 gives them, 16 bytes each, before
 * each of them the part's number in two bytes, little-endian, where the numbers have gaps, as they have where late parts are sent
 * twice; or the bytes of a part that is small. Ten thousand etags as text would not fit an item, and do not deflate.
 */
export function packFinalPart(part: FinalPart): Uint8Array {
  if (part.kind === 'inline')
    return new Uint8Array(Buffer.concat([Buffer.from(`${JSON.stringify({ kind: 'inline' })}\n`), part.body]));
  if (part.kind === 'upload' && hasMd5Etags(part.parts)) {
    const { uploadId, sizeBytes, parts } = part;
    const first = parts[0]?.number ?? 1;
    const isNumbered = parts.some(({ number }, index) => number !== first + index);
    const head = isNumbered
      ? { kind: 'numbered', uploadId, sizeBytes }
      : { kind: 'md5', uploadId, sizeBytes, first };
    const sums = parts.map(({ number, etag }) => {
      const sum = Buffer.from(etag.slice(1, -1), 'hex');
      return isNumbered ? Buffer.concat([Buffer.from([number & 0xff, number >> 8]), sum]) : sum;
    });
    return new Uint8Array(Buffer.concat([Buffer.from(`${JSON.stringify(head)}\n`), ...sums]));
  }
  const head = { kind: 'plain' };
  return new Uint8Array(
    Buffer.concat([Buffer.from(`${JSON.stringify(head)}\n`), deflateRawSync(JSON.stringify(part))]),
  );
}

/** What `packFinalPart` packed. Throws where it is anything else. */
export function unpackFinalPart(packed: unknown): FinalPart {
  if (!(packed instanceof Uint8Array)) throw new BrokenInvariantError('a stored final part is not binary');
  const bytes = Buffer.from(packed.buffer, packed.byteOffset, packed.byteLength);
  const end = bytes.indexOf('\n');
  const head = finalHead.parse(JSON.parse(bytes.toString('utf8', 0, end)));
  const body = bytes.subarray(end + 1);
  if (head.kind === 'inline') return { kind: 'inline', body: new Uint8Array(body) };
  if (head.kind === 'plain') return finalPart.parse(unpackJson(new Uint8Array(body), FINAL_PART_LIMIT_BYTES));
  const parts = [];
  const numberBytes = head.kind === 'numbered' ? NUMBER_BYTES : 0;
  for (let at = 0; at < body.length; at += numberBytes + MD5_BYTES) {
    const number: number = head.kind === 'numbered' ? body.readUInt16LE(at) : head.first + parts.length;
    const etag = `"${body.toString('hex', at + numberBytes, at + numberBytes + MD5_BYTES)}"`;
    parts.push({ number, etag });
  }
  return { kind: 'upload', uploadId: head.uploadId, sizeBytes: head.sizeBytes, parts };
}

const hasMd5Etags = (parts: readonly { etag: string }[]): boolean =>
  parts.every(({ etag }) => md5Etag.test(etag));
