import * as z from 'zod';
import { parseInput } from './invalid.ts';
import { parseUri } from './keys.ts';
import { limits } from './limits.ts';

/** Where files lie that travel with jobs, each under the digest of what is in it, so that one is kept once. */
export const carriedPrefix = 'input/files/';
/** The key of a file with this SHA-256 (64 hex digits). */
export const carriedKey = (sha256: string): string => `${carriedPrefix}${sha256}`;

/** Whether a path stays below the directory that it is relative to, and names a file there. */
const isInside = (path: string): boolean =>
  !/^[/\\]|\0|\\/.test(path) && path.split('/').every((part) => part !== '' && part !== '.' && part !== '..');

/** A file that is laid into the working directory of a program before it starts. */
export const taskFileSchema = z.strictObject({
  /** Where it is laid, relative to the working directory. */
  path: z
    .string()
    .max(limits.filePathChars)
    .refine(isInside, 'must be a path below the working directory, such as "lib/clean.py"'),
  s3: z.string().refine((uri) => parseUri(uri) !== undefined, 'must look like s3://bucket/key'),
  sha256: z.string().regex(/^[0-9a-f]{64}$/, 'must be 64 hex digits'),
  executable: z.boolean().default(false),
});
export type TaskFile = z.output<typeof taskFileSchema>;

const taskFilesSchema = z
  .array(taskFileSchema)
  .max(limits.filesPerStage, `must name at most ${limits.filesPerStage} files`)
  .refine(
    (files) => new Set(files.map(({ path }) => path)).size === files.length,
    'must name each path once',
  );

/**
 * The files that a stage's options name under `files`; none where that is absent. Throws `InvalidInputError` with the
 * path of the field that is wrong.
 */
export function taskFilesOf(options: Readonly<Record<string, unknown>>): readonly TaskFile[] {
  const { files } = options;
  return files === undefined ? [] : parseInput(taskFilesSchema, files, 'options.files');
}
