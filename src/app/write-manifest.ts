import { StoreUnavailableError } from '../contracts/errors.ts';
import type { ObjectRef } from '../contracts/keys.ts';
import { encoded, type Manifest } from '../core/model/manifest.ts';
import type { ObjectStore, UploadedPart, UploadRef } from '../ports/object-store.ts';

/** What is held of a manifest at once; one up to this size is written in one request. */
const pieceBytes = 8 * 1024 * 1024;

/**
 * Writes a manifest, of which one piece is in memory at a time. May be repeated, also while another does so: the
 * same lines make the same bytes. Gives up its upload where it fails.
 */
export async function writeManifest(
  objects: ObjectStore,
  bucket: string,
  { key, texts }: Manifest,
): Promise<void> {
  const ref = { bucket, key };
  let upload: UploadRef | undefined;
  const parts: UploadedPart[] = [];
  try {
    for (const { piece, isLast } of piecesOf(texts())) {
      if (upload === undefined && isLast) {
        await objects.write(ref, piece);
        return;
      }
      upload ??= await objects.beginUpload(ref);
      parts.push(await objects.uploadPart(upload, parts.length + 1, piece));
    }
    if (upload !== undefined) await complete(objects, ref, upload, parts);
  } catch (cause) {
    if (upload !== undefined) await objects.abortUpload(upload).catch(() => undefined);
    throw cause;
  }
}

/** `gone`: the answer to our own completion was lost and it was repeated, so that the object is there. */
async function complete(
  objects: ObjectStore,
  ref: ObjectRef,
  upload: UploadRef,
  parts: readonly UploadedPart[],
): Promise<void> {
  if ((await objects.completeUpload(upload, parts)) === 'completed') return;
  if ((await objects.head(ref)) === undefined)
    throw new StoreUnavailableError('a manifest could not be completed', { key: ref.key });
}

/** UTF-8 takes at most so many bytes for each 16 bits of a text. */
const bytesPerUnit = 3;

/** The bytes of the texts in pieces of about one size, the last one shorter; a single empty piece where there are none. */
function* piecesOf(texts: Iterable<string>): Generator<{ piece: Uint8Array; isLast: boolean }> {
  const rest = texts[Symbol.iterator]();
  const first: string[] = [];
  let next = rest.next();
  for (let most = 0; next.done !== true; next = rest.next()) {
    most += bytesPerUnit * next.value.length;
    if (most > pieceBytes) break;
    first.push(next.value);
  }
  // Most manifests are small: buffers for large ones would be more than all else that a small job takes.
  if (next.done === true) yield { piece: new TextEncoder().encode(first.join('')), isLast: true };
  else yield* largePieces(first, next.value, rest);
}

/** Of texts that may not fit into one piece: some of them, the next, and the rest. */
function* largePieces(
  first: readonly string[],
  next: string,
  rest: Iterator<string>,
): Generator<{ piece: Uint8Array; isLast: boolean }> {
  const all = function* (): Generator<string> {
    yield* first;
    yield next;
    for (let more = rest.next(); more.done !== true; more = rest.next()) yield more.value;
  };
  // A piece is written before the next but one is made: two buffers do for all of them.
  const pair = [new Uint8Array(pieceBytes), new Uint8Array(pieceBytes)] as const;
  let turn = 0;
  let before: Uint8Array | undefined;
  for (const { buffer, usedBytes } of encoded(all(), () => pair[turn++ % 2 === 0 ? 0 : 1])) {
    if (before !== undefined) yield { piece: before, isLast: false };
    before = buffer.subarray(0, usedBytes);
  }
  if (before !== undefined) yield { piece: before, isLast: true };
}
