import { deserialize, serialize } from 'node:v8';
import { copyPlain } from '../lib/copy-plain.ts';
import { UserCodeError } from '../worker/operator.ts';
import { nameOf } from './key-codec.ts';

/*
 * Records between stages: JSON where that gives back what was there, which is nearly always and fastest; else as V8
 * clones values, which keeps dates, maps, sets, bytes, undefined, NaN and the like.
 */
const Tag = { json: 0, text: 1, number: 2, clone: 3, undefined: 4 } as const;
const deepest = 256;

/** Values that V8 clones as what they are. Others of a class of their own would come back as plain objects. */
const cloned: ReadonlySet<unknown> = new Set<unknown>(
  [Date, RegExp, Map, Set, ArrayBuffer, Boolean, Number, String].map(({ prototype }): unknown => prototype),
);

/** Writes values into memory of its own, which the next value uses again. */
export class ValueEncoder {
  #bytes = Buffer.allocUnsafeSlow(1024);

  /** The bytes of a value, good until the next call. Throws `UserCodeError` for what cannot go to another stage. */
  encode(value: unknown): Buffer {
    if (typeof value === 'string' && value.isWellFormed()) return this.#text(Tag.text, value);
    if (typeof value === 'number') {
      this.#bytes[0] = Tag.number;
      return this.#bytes.subarray(0, this.#bytes.writeDoubleLE(value, 1));
    }
    if (value === undefined) {
      this.#bytes[0] = Tag.undefined;
      return this.#bytes.subarray(0, 1);
    }
    if (isJson(value, 0)) return this.#text(Tag.json, JSON.stringify(value));
    checkCarried(value);
    return Buffer.concat([Buffer.of(Tag.clone), serialize(value)]);
  }

  #text(tag: number, text: string): Buffer {
    const most = 1 + 3 * text.length;
    if (most > this.#bytes.length) this.#bytes = Buffer.allocUnsafeSlow(2 * most);
    this.#bytes[0] = tag;
    return this.#bytes.subarray(0, 1 + this.#bytes.write(text, 1, 'utf8'));
  }
}

/** The value behind the bytes of `ValueEncoder.encode`. */
export function decodeValue(bytes: Buffer): unknown {
  switch (bytes[0]) {
    case Tag.text:
      return bytes.toString('utf8', 1);
    case Tag.number:
      return bytes.readDoubleLE(1);
    case Tag.json:
      return JSON.parse(bytes.toString('utf8', 1));
    case Tag.clone:
      return deserialize(bytes.subarray(1));
    case Tag.undefined:
      return undefined;
    default:
      throw new Error('bytes that are no record');
  }
}

/**
 * The value behind bytes as it is kept for many to have one of their own of (`ownOf`): decoded, but what is neither plain data nor
 * a text or number as its bytes, which no decoded value of those is.
 */
export const keptValue = (bytes: Buffer): unknown =>
  bytes[0] === Tag.clone ? Buffer.from(bytes) : decodeValue(bytes);

/** A value of one's own of what is kept, which nobody may need again where `isLast`. */
export function ownOf(kept: unknown, isLast = false): unknown {
  if (typeof kept !== 'object' || kept === null) return kept;
  if (Buffer.isBuffer(kept)) return decodeValue(kept);
  return isLast ? kept : copyPlain(kept);
}

/** A copy of a record that no stage has handed on, as it would come from one; where none could, the record itself. */
export function copyOf(record: unknown): unknown {
  if (typeof record !== 'object' || record === null) return record;
  if (isJson(record, 0)) return copyPlain(record);
  return uncarried(record) === undefined ? (deserialize(serialize(record)) as unknown) : record;
}

/** Whether JSON gives back just this value; false as soon as that is known. */
function isJson(value: unknown, depth: number): boolean {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return true;
    case 'number':
      return Number.isFinite(value) && !Object.is(value, -0);
    case 'object':
      break;
    default:
      return false;
  }
  if (value === null) return true;
  // V8 follows circles.
  if (depth > deepest) return false;
  if (Array.isArray(value)) {
    for (const item of value) if (!isJson(item, depth + 1)) return false;
    // What else a list has, as a match of `matchAll` its groups, JSON leaves out.
    return Object.keys(value).length === value.length;
  }
  if (Object.getPrototypeOf(value) !== Object.prototype) return false;
  for (const item of Object.values(value)) if (!isJson(item, depth + 1)) return false;
  return true;
}

/** Throws `UserCodeError` for what V8 would not give back as it was. */
function checkCarried(value: unknown): void {
  const found = uncarried(value);
  if (found !== undefined) throw notCarried(found.value);
}

/** What of a value V8 would not give back as it was: a function, or an object of a class of its own. */
function uncarried(value: unknown): { readonly value: unknown } | undefined {
  const seen = new Set<unknown>();
  const open: unknown[] = [value];
  while (open.length > 0) {
    const next = open.pop();
    if (typeof next === 'function' || typeof next === 'symbol') return { value: next };
    if (typeof next !== 'object' || next === null || seen.has(next)) continue;
    seen.add(next);
    const prototype: unknown = Object.getPrototypeOf(next);
    const isPlain = prototype === null || prototype === Object.prototype || Array.isArray(next);
    if (isPlain) for (const item of Object.values(next) as unknown[]) open.push(item);
    else if (next instanceof Map) for (const pair of next as Map<unknown, unknown>) open.push(...pair);
    else if (next instanceof Set) for (const item of next as Set<unknown>) open.push(item);
    else if (!cloned.has(prototype) && !ArrayBuffer.isView(next) && !(next instanceof Error))
      return { value: next };
  }
  return undefined;
}

function notCarried(value: unknown): UserCodeError {
  const why =
    value instanceof Promise
      ? ': functions of a job must not be async'
      : ': give plain objects, lists and values';
  return new UserCodeError(`a record holds ${nameOf(value)}, which cannot go to another stage${why}`);
}
