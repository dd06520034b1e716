import * as z from 'zod';

/*
 * What workers and the embedded S3 of one machine say to each other where bytes go by files: S3 itself has none of it. All
 * requests are POSTs, signed as any other, and hold and answer JSON.
 */

/** Variable of workers: `true` where the S3 of their endpoint hands files. */
export const handedFilesSetting = 'OUTRIDER_HANDED_FILES';

/** Parameters of the query that say what is asked for. */
export const HandedQuery = {
  /** Of a bucket: the files of objects. */
  files: 'outrider-files',
  /** Of an upload: a file for the bytes of its parts. */
  room: 'outrider-room',
  /** Of a part: its bytes are in that file. */
  part: 'outrider-part',
} as const;

/** Objects that may be asked for at once. */
export const mostHandedFiles = 1_000;

export const filesRequestSchema = z.object({ keys: z.array(z.string()).min(1).max(mostHandedFiles) });

/** A file that begins with an object's bytes. It is the one that was meant only as long as `ino` and `mtimeNs` are its own. */
const handedFileSchema = z.object({
  path: z.string(),
  ino: z.string(),
  mtimeNs: z.string(),
  sizeBytes: z.number(),
  /** In quotes, as S3 gives it. */
  etag: z.string(),
});
export type HandedFile = z.infer<typeof handedFileSchema>;

/** In the order of the keys; null where a GET has to tell why not. */
export const filesAnswerSchema = z.object({ files: z.array(handedFileSchema.nullable()) });
export type FilesAnswer = z.infer<typeof filesAnswerSchema>;

export const roomAnswerSchema = z.object({ path: z.string() });

/** Where a part lies in its upload's room. */
export const partRequestSchema = z.object({ at: z.int().min(0), sizeBytes: z.int().min(1) });
export type PartRequest = z.infer<typeof partRequestSchema>;

/** ETag in quotes. */
export const partAnswerSchema = z.object({ etag: z.string() });
