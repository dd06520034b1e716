import { createHash } from 'node:crypto';
import { NotFoundError } from '../../contracts/errors.ts';
import { parseUri } from '../../contracts/keys.ts';
import type { ObjectStore } from '../../ports/object-store.ts';
import { BadInputError } from '../operator.ts';

/** A bundle of user code: an ES module whose default export is an operator. */
export interface CodeRef {
  readonly s3: string;
  /** SHA-256 of the bundle, 64 hex digits. */
  readonly sha256: string;
}

/** Bundles that a warm environment keeps, as bytes: what has run is never used again. */
const keptBundles = 4;
const largestKeptBytes = 4 * 1024 * 1024;
const keptByStore = new WeakMap<ObjectStore, Map<string, Uint8Array>>();

/**
 * The bytes of a bundle, or of another file that travels with a job, checked against its digest; later calls for the same digest are served from memory. Throws
 * `BadInputError`, which names it as `what`, where the object is not what was submitted. Ends early where the signal fires.
 */
export async function fetchBundle(
  objects: ObjectStore,
  ref: CodeRef,
  { what = `code ${ref.s3}`, signal }: { readonly what?: string; readonly signal?: AbortSignal } = {},
): Promise<Uint8Array> {
  const kept = keptByStore.get(objects) ?? new Map<string, Uint8Array>();
  keptByStore.set(objects, kept);
  const known = kept.get(ref.sha256);
  if (known !== undefined) return known;
  const source = await read(objects, ref, what, signal);
  const digest = createHash('sha256').update(source).digest('hex');
  if (digest !== ref.sha256) {
    throw new BadInputError(`${what}: its SHA-256 is ${digest}, the job says ${ref.sha256}`);
  }
  if (source.length > largestKeptBytes) return source;
  const [oldest] = kept.keys();
  if (kept.size >= keptBundles && oldest !== undefined) kept.delete(oldest);
  kept.set(ref.sha256, source);
  return source;
}

async function read(
  objects: ObjectStore,
  ref: CodeRef,
  what: string,
  signal: AbortSignal | undefined,
): Promise<Uint8Array> {
  const place = parseUri(ref.s3);
  if (place === undefined) throw new BadInputError(`${what}: ${ref.s3} is not an s3:// address`);
  try {
    return await objects.readAll(place, undefined, signal);
  } catch (cause) {
    if (cause instanceof NotFoundError)
      throw new BadInputError(`${what}: there is no such object`, { cause });
    throw cause;
  }
}
