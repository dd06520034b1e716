import { createHash } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { NotFoundError } from '../contracts/errors.ts';
import { parseUri } from '../contracts/keys.ts';
import type { ObjectStore } from '../ports/object-store.ts';
import { BadInputError } from './operator.ts';
import type { Operator } from './operator.ts';

/** A bundle of user code: an ES module whose default export is an operator. */
export interface CodeRef {
  readonly s3: string;
  /** SHA-256 of the bundle, 64 hex digits. */
  readonly sha256: string;
}

/** Bundles that a warm environment keeps. */
const keptOperators = 8;
const keptByStore = new WeakMap<ObjectStore, Map<string, Operator>>();

/**
 * Loads the operator of a bundle: fetches it, checks it against its digest, writes it to the scratch directory and
 * imports it; later loads of the same digest are served from memory. Throws `BadInputError` where the object is not
 * the bundle that was submitted or has no operator in it; what the bundle itself throws comes as it is.
 */
export async function loadCode(objects: ObjectStore, ref: CodeRef, scratchDir: string): Promise<Operator> {
  const kept = keptByStore.get(objects) ?? new Map<string, Operator>();
  keptByStore.set(objects, kept);
  const known = kept.get(ref.sha256);
  if (known !== undefined) return known;
  const operator = await loadOperator(objects, ref, scratchDir);
  const [oldest] = kept.keys();
  if (kept.size >= keptOperators && oldest !== undefined) kept.delete(oldest);
  kept.set(ref.sha256, operator);
  return operator;
}

async function loadOperator(objects: ObjectStore, ref: CodeRef, scratchDir: string): Promise<Operator> {
  const source = await fetchBundle(objects, ref);
  const digest = createHash('sha256').update(source).digest('hex');
  if (digest !== ref.sha256) {
    throw new BadInputError(`code ${ref.s3}: its SHA-256 is ${digest}, the job says ${ref.sha256}`);
  }
  const path = join(scratchDir, `code-${digest}.mjs`);
  await writeFile(path, source);
  const loaded: unknown = await import(pathToFileURL(path).href);
  const operator =
    typeof loaded === 'object' && loaded !== null && 'default' in loaded ? loaded.default : undefined;
  if (!isOperator(operator)) {
    throw new BadInputError(
      `code ${ref.s3}: its default export must be an operator: { check(options), run(context) }`,
    );
  }
  return operator;
}

async function fetchBundle(objects: ObjectStore, ref: CodeRef): Promise<Uint8Array> {
  const place = parseUri(ref.s3);
  if (place === undefined) throw new BadInputError(`code ${ref.s3}: not an s3:// address`);
  try {
    return await objects.readAll(place);
  } catch (cause) {
    if (cause instanceof NotFoundError)
      throw new BadInputError(`code ${ref.s3}: there is no such object`, { cause });
    throw cause;
  }
}

function isOperator(value: unknown): value is Operator {
  return (
    typeof value === 'object' &&
    value !== null &&
    'check' in value &&
    typeof value.check === 'function' &&
    'run' in value &&
    typeof value.run === 'function' &&
    (!('combiner' in value) || value.combiner === undefined || typeof value.combiner === 'function')
  );
}
