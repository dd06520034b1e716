import { InvalidInputError } from './errors.ts';
import { limits } from './limits.ts';

const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;
const colon = 0x3a;
const space = 0x20;

/** Whether JSON nests arrays and objects deeper than `most`. Looks at brackets outside of strings only. */
export function isDeeperThan(text: string, most: number): boolean {
  // Each level has a bracket of its own.
  if (text.length <= most) return false;
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === quote) {
      at = stringEnd(text, at);
    } else if (code === 0x5b || code === 0x7b) {
      depth++;
      if (depth > most) return true;
    } else if (code === 0x5d || code === 0x7d) depth--;
  }
  return false;
}

/** Where the string that begins at `start` ends; the end of the text where it does not. */
function stringEnd(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let slashes = 0;
    while (text.charCodeAt(end - 1 - slashes) === backslash) slashes++;
    if (slashes % 2 === 0) return end;
  }
  return text.length;
}

/** An object or array of JSON that has begun. */
interface Opened {
  readonly path: string;
  /** Those that it has; absent in an array. */
  readonly names?: Set<string>;
  /** The last of its names, or how many of its items have ended. */
  last: string | number;
}

const pathAt = ({ path, last }: Opened): string =>
  typeof last === 'number' ? `${path}[${String(last)}]` : path === '' ? last : `${path}.${last}`;

/**
 * The path of a name that an object of JSON has twice, such as `stages[0].inputs`: of its values all but the last are lost.
 * Expects JSON that was read before.
 */
export function namedTwice(json: string): string | undefined {
  const opened: Opened[] = [];
  for (let at = 0; at < json.length; at++) {
    const code = json.charCodeAt(at);
    const inner = opened.at(-1);
    if (code === quote) {
      const end = stringEnd(json, at);
      if (inner?.names !== undefined && isName(json, end)) {
        inner.last = JSON.parse(json.slice(at, end + 1)) as string;
        if (inner.names.has(inner.last)) return pathAt(inner);
        inner.names.add(inner.last);
      }
      at = end;
    } else if (code === 0x5b || code === 0x7b) {
      const path = inner === undefined ? '' : pathAt(inner);
      opened.push(code === 0x7b ? { path, names: new Set(), last: '' } : { path, last: 0 });
    } else if (code === 0x5d || code === 0x7d) opened.pop();
    else if (code === comma && typeof inner?.last === 'number') inner.last += 1;
  }
  return undefined;
}

/** Whether the string that ends at `end` has a value. */
function isName(json: string, end: number): boolean {
  let at = end + 1;
  while (json.charCodeAt(at) <= space) at++;
  return json.charCodeAt(at) === colon;
}

/**
 * The value of a document from outside, safe to walk through, to store and to send on: not deeper than
 * `limits.jsonDepth`, without halves of surrogate pairs and numbers beyond range, neither of which would be written
 * as it was read. Of a name that an object has twice the last value counts. `what` begins the message: "body". Throws
 * `InvalidInputError`.
 */
export function parseDocument(text: string, what: string): unknown {
  const refuse = (message: string, cause?: unknown): never => {
    throw new InvalidInputError(`${what} ${message}`, { field: what }, { cause });
  };
  if (isDeeperThan(text, limits.jsonDepth)) {
    refuse(`must be JSON that nests no deeper than ${String(limits.jsonDepth)} levels`);
  }
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message.replaceAll(/\s+/g, ' ') : '';
    refuse(`must be JSON: ${reason.slice(0, 200)}`, cause);
  }
  const flaw = flawOf(document);
  if (flaw !== undefined) refuse(flaw);
  return document;
}

/** What of a parsed value would not be written as it was read. */
function flawOf(document: unknown): string | undefined {
  const open = [document];
  for (let value = open.pop(); open.length > 0 || value !== undefined; value = open.pop()) {
    if (typeof value === 'string' && !value.isWellFormed()) return halfPair;
    if (typeof value === 'number' && !Number.isFinite(value))
      return 'must hold numbers that are in the range of doubles';
    if (typeof value !== 'object' || value === null) continue;
    for (const [key, item] of Object.entries(value)) {
      if (!key.isWellFormed()) return halfPair;
      open.push(item);
    }
  }
  return undefined;
}

const halfPair = 'must be text without halves of surrogate pairs (\\ud800 to \\udfff alone)';
