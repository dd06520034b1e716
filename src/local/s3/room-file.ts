import { appendFile } from 'node:fs/promises';
import type { ObjectMeta } from './object-file.ts';
import type { Bucket } from './object-store.ts';
import type { ScratchFile } from './scratch-space.ts';
import { roomBytes, roomPath, type Upload } from './upload-store.ts';

/**
 * The room of an upload as the file of its object, where these parts, in this order, are all that is in it: nothing is
 * copied then. Undefined where they are not. What was ended and not published is no such file any more: its parts are
 * copied when they are completed again.
 */
export async function wholeRoom(
  bucket: Bucket,
  upload: Upload,
  parts: readonly { readonly meta: ObjectMeta }[],
): Promise<ScratchFile | undefined> {
  let sizeBytes = 0;
  for (const { meta } of parts) {
    if (meta.inRoomAt !== sizeBytes) return undefined;
    sizeBytes += meta.sizeBytes;
  }
  if ((await roomBytes(bucket, upload)) !== sizeBytes) return undefined;
  const path = roomPath(bucket, upload);
  return {
    path,
    write: () => Promise.reject(new Error('the parts are all that belongs into a room')),
    finish: (last) => appendFile(path, last),
    // It goes with its upload.
    discard: () => Promise.resolve(),
  };
}
