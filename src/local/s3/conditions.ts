import { badRequest, notImplemented, preconditionFailed } from './errors.ts';
import type { ObjectMeta } from './object-file.ts';
import type { WriteCondition } from './object-store.ts';
import type { Target } from './request.ts';

/** Bytes of an object, the last one included. */
export interface ByteRange {
  readonly startByte: number;
  readonly endByte: number;
}

/**
 * The one range that a Range header asks for. `undefined` means the whole object: no header, one
 * that is malformed, or several ranges, which S3 passes over too.
 */
export function parseRange(
  header: string | undefined,
  sizeBytes: number,
): ByteRange | 'unsatisfiable' | undefined {
  const match = /^bytes=(\d*)-(\d*)$/.exec(header?.trim() ?? '');
  const [, first = '', last = ''] = match ?? [];
  if (match === null || (first === '' && last === '')) return undefined;
  if (first === '') {
    const wanted = Math.min(Number(last), sizeBytes);
    return wanted === 0 ? 'unsatisfiable' : { startByte: sizeBytes - wanted, endByte: sizeBytes - 1 };
  }
  const startByte = Number(first);
  if (last !== '' && Number(last) < startByte) return undefined;
  if (startByte >= sizeBytes) return 'unsatisfiable';
  return { startByte, endByte: last === '' ? sizeBytes - 1 : Math.min(Number(last), sizeBytes - 1) };
}

/**
 * Whether a read goes on: `'not-modified'` is a 304.
 *
 * @throws {S3Error} PreconditionFailed.
 */
export function checkReadConditions(target: Target, meta: ObjectMeta): 'serve' | 'not-modified' {
  const ifMatch = target.headers.get('if-match');
  const ifNoneMatch = target.headers.get('if-none-match');
  const unmodifiedSince = parseDate(target.headers.get('if-unmodified-since'));
  const modifiedSince = parseDate(target.headers.get('if-modified-since'));
  const modifiedMs = Math.floor(meta.lastModifiedMs / 1000) * 1000;

  if (ifMatch !== undefined) {
    if (!matchesEtag(ifMatch, meta.etag)) throw preconditionFailed('If-Match');
  } else if (unmodifiedSince !== undefined && modifiedMs > unmodifiedSince) {
    throw preconditionFailed('If-Unmodified-Since');
  }
  if (ifNoneMatch !== undefined) return matchesEtag(ifNoneMatch, meta.etag) ? 'not-modified' : 'serve';
  return modifiedSince !== undefined && modifiedMs <= modifiedSince ? 'not-modified' : 'serve';
}

/** @throws {S3Error} PreconditionFailed if the source of a copy is not as the request wants it. */
export function checkCopyConditions(target: Target, meta: ObjectMeta): void {
  const ifMatch = target.headers.get('x-amz-copy-source-if-match');
  const ifNoneMatch = target.headers.get('x-amz-copy-source-if-none-match');
  for (const name of ['x-amz-copy-source-if-modified-since', 'x-amz-copy-source-if-unmodified-since']) {
    if (target.headers.has(name)) throw notImplemented(`The header ${name}`);
  }
  if (ifMatch !== undefined && !matchesEtag(ifMatch, meta.etag))
    throw preconditionFailed('x-amz-copy-source-If-Match');
  if (ifNoneMatch !== undefined && matchesEtag(ifNoneMatch, meta.etag)) {
    throw preconditionFailed('x-amz-copy-source-If-None-Match');
  }
}

/** @throws {S3Error} NotImplemented for forms that S3 has not either. */
export function parseWriteCondition(target: Target): WriteCondition {
  const ifMatch = target.headers.get('if-match');
  const ifNoneMatch = target.headers.get('if-none-match');
  if (ifMatch !== undefined && ifNoneMatch !== undefined) {
    throw badRequest('InvalidRequest', 'If-Match and If-None-Match cannot be used together.');
  }
  if (ifNoneMatch !== undefined) {
    if (ifNoneMatch !== '*') throw notImplemented('If-None-Match with a value other than *');
    return { ifNoneMatchAny: true };
  }
  return ifMatch === undefined ? {} : { ifMatch: unquote(ifMatch) };
}

/** An ETag without its quotes. */
export function unquote(etag: string): string {
  return etag.trim().replace(/^(?:W\/)?"(.*)"$/, '$1');
}

function matchesEtag(header: string, etag: string): boolean {
  return header.split(',').some((candidate) => candidate.trim() === '*' || unquote(candidate) === etag);
}

function parseDate(header: string | undefined): number | undefined {
  if (header === undefined) return undefined;
  const ms = Date.parse(header);
  // A date that cannot be read is no condition, as RFC 9110 has it.
  return Number.isNaN(ms) ? undefined : ms;
}
