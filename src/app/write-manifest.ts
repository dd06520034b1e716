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

/** The bytes of the texts in pieces of about one size, the last one shorter; a single empty piece where there are none. */
function* piecesOf(texts: Iterable<string>): Generator<{ piece: Uint8Array; isLast: boolean }> {
  // A piece is written before the next but one is made: two buffers do for all of them.
  const pair = [new Uint8Array(pieceBytes), new Uint8Array(pieceBytes)] as const;
  let turn = 0;
  const buffers = encoded(texts, () => pair[turn++ % 2 === 0 ? 0 : 1]);
  let before: Uint8Array | undefined;
  for (const { buffer, usedBytes } of buffers) {
    if (before !== undefined) yield { piece: before, isLast: false };
    before = buffer.subarray(0, usedBytes);
  }
  if (before !== undefined) yield { piece: before, isLast: true };
}
