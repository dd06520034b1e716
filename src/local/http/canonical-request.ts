import { createHash, createHmac } from 'node:crypto';

/** One parameter of a query string, decoded. */
export type QueryPair = readonly [key: string, value: string];

/** The pairs of a raw query string, decoded, in order; `undefined` if an escape is not UTF-8. */
export function parseQuery(rawQuery: string): QueryPair[] | undefined {
  try {
    return rawQuery
      .split('&')
      .filter((part) => part !== '')
      .map((part) => {
        const at = part.indexOf('=');
        return at < 0
          ? ([decodeURIComponent(part), ''] as const)
          : ([decodeURIComponent(part.slice(0, at)), decodeURIComponent(part.slice(at + 1))] as const);
      });
  } catch {
    return undefined;
  }
}

/** Path and query string of a request target, both still encoded. */
export function splitUrl(url: string): readonly [path: string, query: string] {
  const at = url.indexOf('?');
  return at < 0 ? [url, ''] : [url.slice(0, at), url.slice(at + 1)];
}

/** Percent-encodes everything but the characters that RFC 3986 leaves unreserved. */
export function encodeRfc3986(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

/** S3 signs the path as sent; all others sign it normalised and encoded once more. */
export function canonicalPath(rawPath: string): string {
  const segments: string[] = [];
  for (const segment of rawPath.split('/')) {
    if (segment === '' || segment === '.') continue;
    if (segment === '..') segments.pop();
    else segments.push(encodeRfc3986(segment));
  }
  const trailing = segments.length > 0 && rawPath.endsWith('/') ? '/' : '';
  return `/${segments.join('/')}${trailing}`;
}

/** The pairs as they are signed: encoded anew, by key and value. */
export function canonicalQuery(query: readonly QueryPair[]): string {
  return query
    .map(([key, value]) => [encodeRfc3986(key), encodeRfc3986(value)] as const)
    .sort(([keyA, valueA], [keyB, valueB]) => compareText(keyA, keyB) || compareText(valueA, valueB))
    .map(([key, value]) => `${key}=${value}`)
    .join('&');
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** A header's value as it is signed: white space made one blank. */
export function canonicalHeader(value: string | readonly string[] | undefined): string {
  const text = typeof value === 'string' ? value : (value ?? []).join(',');
  return text.trim().replace(/\s+/g, ' ');
}

/** SHA-256 in hex. */
export function sha256Hex(data: string | Uint8Array): string {
  return createHash('sha256').update(data).digest('hex');
}

/** The key that a secret gives within a scope: date, region, service, `aws4_request`. */
export function signingKey(secretAccessKey: string, scopeParts: readonly string[]): Buffer {
  let key: Buffer = Buffer.from(`AWS4${secretAccessKey}`);
  for (const part of scopeParts) key = createHmac('sha256', key).update(part).digest();
  return key;
}
