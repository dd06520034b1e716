import { deserialize, serialize } from 'node:v8';
import { frameBytes, writeFrame } from '../framing.ts';
import type { KeyValue, LineBlock, LocatedRows, Row } from '../operator.ts';
import { ProtocolError } from './protocol.ts';

/** Blocks: length of the file's name (4), the name, the offset (8), the lines. */
export function encodeBlock({ bytes, file, offset }: LineBlock): readonly Uint8Array[] {
  const name = Buffer.from(file);
  const head = Buffer.alloc(12 + name.length);
  head.writeUInt32LE(name.length, 0);
  name.copy(head, 4);
  head.writeDoubleLE(offset, 4 + name.length);
  return [head, bytes];
}

export function decodeBlock(body: Buffer): LineBlock {
  const at = 4 + body.readUInt32LE(0);
  return {
    file: body.toString('utf8', 4, at),
    offset: body.readDoubleLE(at),
    bytes: body.subarray(at + 8),
  };
}

/** Records: frames, end to end. */
export function encodeRecords(records: readonly KeyValue[]): readonly Uint8Array[] {
  const size = records.reduce((sum, { key, value }) => sum + frameBytes(key.length, value.length), 0);
  const frames = Buffer.allocUnsafe(size);
  let at = 0;
  for (const { key, value } of records) at = writeFrame(frames, at, key, value);
  return [frames];
}

export function decodeRecords(body: Buffer): readonly KeyValue[] {
  const records: KeyValue[] = [];
  forEachFrame(body, (keyStart, keyEnd, end) => {
    records.push({ key: body.subarray(keyStart, keyEnd), value: body.subarray(keyEnd, end) });
  });
  return records;
}

/** Rows: as V8 writes them, which keeps what JSON would change, such as -0 and numbers beyond its range. */
export const encodeRows = (rows: readonly Row[]): readonly Uint8Array[] => [serialize(rows)];
export const decodeRows = (body: Buffer): readonly Row[] => deserialize(body) as readonly Row[];
export const encodeLocated = ({ rows, file, offsets }: LocatedRows): readonly Uint8Array[] => [
  serialize({ rows, file, offsets: Float64Array.from(offsets) }),
];
export const decodeLocated = (body: Buffer): LocatedRows => deserialize(body) as LocatedRows;

/** Walks over frames that lie end to end. Throws `ProtocolError` where they do not end with the bytes. */
export function forEachFrame(
  bytes: Buffer,
  visit: (keyStart: number, keyEnd: number, end: number) => void,
): void {
  for (let at = 0; at < bytes.length;) {
    const [keyBytes, afterKey] = varintAt(bytes, at);
    const [valueBytes, keyStart] = varintAt(bytes, afterKey);
    const keyEnd = keyStart + keyBytes;
    at = keyEnd + valueBytes;
    if (at > bytes.length) throw new ProtocolError('a record that is cut off');
    visit(keyStart, keyEnd, at);
  }
}

const highestShift = 28;

function varintAt(bytes: Buffer, at: number): [value: number, next: number] {
  let value = 0;
  let next = at;
  for (let shift = 0; shift <= highestShift; shift += 7) {
    const byte = bytes[next++];
    if (byte === undefined) break;
    value += (byte & 0x7f) * 2 ** shift;
    if (byte < 0x80) return [value, next];
  }
  throw new ProtocolError('a record without its length');
}
