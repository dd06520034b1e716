import { InvalidInputError } from './errors.ts';
import { limits } from './limits.ts';

const quote = 0x22;
const backslash = 0x5c;

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

/**
 * The value of a document from outside, safe to walk through, to store and to send on: not deeper than
 * `limits.jsonDepth`, without halves of surrogate pairs and numbers beyond range, neither of which would be written
 * as it was read. `what` begins the message: "body". Throws `InvalidInputError`.
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
