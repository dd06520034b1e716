/** Whether a log event matches. */
export type EventFilter = (message: string) => boolean;

/** A pattern in a part of CloudWatch's language that is not served here. */
export class UnsupportedPatternError extends Error {
  override readonly name = 'UnsupportedPatternError';
}

/**
 * Reads a filter pattern: empty (all events); terms, quoted or not, all of which must occur; or
 * `{ $.field = "text" }`, which events match that are JSON objects with that text in the field.
 *
 * @throws UnsupportedPatternError for any other pattern.
 */
export function parseFilterPattern(pattern: string): EventFilter {
  const trimmed = pattern.trim();
  if (trimmed.startsWith('{')) return jsonFilter(trimmed);
  const terms = [...trimmed.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, bare]) => quoted ?? bare ?? '');
  // Optional, excluded and pattern terms, and space-delimited fields.
  const strange = terms.find((term, index) => /^[?\-%[]/.test(term) && !isQuoted(trimmed, index));
  if (strange !== undefined) throw new UnsupportedPatternError(`the term ${strange} is not supported`);
  return (message) => terms.every((term) => message.includes(term));
}

function isQuoted(pattern: string, index: number): boolean {
  return [...pattern.matchAll(/"[^"]*"|\S+/g)][index]?.[0].startsWith('"') ?? false;
}

function jsonFilter(pattern: string): EventFilter {
  const match = /^\{\s*\$\.([A-Za-z0-9_.]+)\s*=\s*"([^"]*)"\s*\}$/.exec(pattern);
  if (match === null) throw new UnsupportedPatternError('only { $.field = "text" } is supported');
  const [, path = '', text = ''] = match;
  const fields = path.split('.');
  return (message) => {
    const value = fields.reduce<unknown>(fieldOf, parseJson(message));
    return value === text;
  };
}

function fieldOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? new Map<string, unknown>(Object.entries(value)).get(name)
    : undefined;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
