import { InvalidInputError } from '../../contracts/errors.ts';
import type { SourceFormat } from '../../contracts/job-spec.ts';
import { limits } from '../../contracts/limits.ts';
import type { Codec, PlannedObject, SourceSegment } from '../../contracts/plan.ts';

/** An object that a source input matched. */
export interface SourceObject {
  readonly bucket: string;
  readonly key: string;
  readonly sizeBytes: number;
  readonly etag: string;
  /** About what it holds when it is unpacked, of a compressed one; absent: as much as is stored. */
  readonly unpackedBytes?: number;
  /** Whether it seems to be gzip of several members, at which it can be cut. */
  readonly hasMembers?: boolean;
  /** Of a later part of a job's CSV: the part that has the header. */
  readonly headerIn?: SourceObject;
}

/** Bytes of a gzip file, as it is stored, that are worth a task of their own. */
const leastPackedPiece = 64 * 1024;

const codecs: readonly (readonly [ending: RegExp, codec: Codec])[] = [
  [/\.(gz|gzip)$/i, 'gzip'],
  [/\.(zst|zstd)$/i, 'zstd'],
  [/\.(bz2|bzip2)$/i, 'bzip2'],
];

const codecEntry = (key: string) => codecs.find(([ending]) => ending.test(key));

/** How an object is compressed, which its key tells; undefined where it is plain. */
export const codecOfKey = (key: string): Codec | undefined => codecEntry(key)?.[1];

/** A key without the ending that tells how its object is compressed: what the object holds has that name. */
export const unpackedKey = (key: string): string => key.replace(codecEntry(key)?.[0] ?? '', '');

/** A stream of one member cannot be entered in the middle, and a line end may be a quoted field's own. */
const isWhole = ({ key, hasMembers }: SourceObject, { format, multiline }: SplitOptions): boolean =>
  (codecOfKey(key) !== undefined && hasMembers !== true) || (format === 'csv' && multiline !== false);

/** An object as the tasks that read it know it. */
function fileOf({ bucket, key, sizeBytes, etag }: SourceObject): PlannedObject {
  const codec = codecOfKey(key);
  return {
    ...{ bucket, key, sizeBytes, etag },
    gzip: codec === 'gzip',
    ...(codec === undefined || codec === 'gzip' ? {} : { codec }),
  };
}

/** Pieces of about `splitBytes` unpacked bytes each. */
function piecesOf(object: SourceObject, unpacked: number, options: SplitOptions): number {
  if (isWhole(object, options)) return 1;
  const pieces = Math.ceil(unpacked / options.splitBytes);
  if (codecOfKey(object.key) === undefined) return pieces;
  return Math.max(1, Math.min(pieces, Math.floor(object.sizeBytes / leastPackedPiece)));
}

export interface SplitOptions {
  readonly format: SourceFormat;
  /** Unpacked bytes of a task. */
  readonly splitBytes: number;
  /** Csv: whether quoted fields may hold line ends, as they may where it is left out. */
  readonly multiline?: boolean;
  /** Path of the input in the spec. */
  readonly field: string;
}

/**
 * Cuts objects into the inputs of tasks, in order: about `splitBytes` each, unpacked; small objects share a task,
 * at most `limits.objectsPerTask` of them, since each is a request; large
 * plain ones are cut (the reader aligns cuts to line ends), and gzip of several members (to members). Other compressed
 * objects and CSV of several lines a record stay whole. Empty objects cost nothing. At least one task, possibly with nothing to read. Throws `InvalidInputError` beyond the task limit.
 */
export function splitObjects(
  objects: readonly SourceObject[],
  options: SplitOptions,
): readonly (readonly SourceSegment[])[] {
  const tasks: SourceSegment[][] = [];
  let current: SourceSegment[] = [];
  let currentBytes = 0;
  const close = (): void => {
    if (current.length > 0) tasks.push(current);
    current = [];
    currentBytes = 0;
  };
  for (const object of objects) {
    if (object.sizeBytes === 0) continue;
    const codec = codecOfKey(object.key);
    const unpacked = Math.max(object.sizeBytes, object.unpackedBytes ?? 0);
    const file = fileOf(object);
    const headerIn = object.headerIn && fileOf(object.headerIn);
    const segment = (start: number, end: number): SourceSegment => ({
      ...file,
      ...{ start, end },
      ...(headerIn === undefined ? {} : { headerIn }),
    });
    const isFull = currentBytes + unpacked > options.splitBytes;
    if (current.length > 0 && (isFull || current.length >= limits.objectsPerTask)) close();
    const pieces = piecesOf(object, unpacked, options);
    checkCount(tasks.length + pieces, options);
    for (let i = 0; i < pieces; i++) {
      if (i > 0) close();
      const start = Math.floor((object.sizeBytes * i) / pieces);
      const end = Math.floor((object.sizeBytes * (i + 1)) / pieces);
      current.push(segment(start, end));
      currentBytes += codec === undefined ? end - start : unpacked / pieces;
    }
  }
  close();
  return tasks.length > 0 ? tasks : [[]];
}

function checkCount(tasks: number, options: { readonly splitBytes: number; readonly field: string }): void {
  if (tasks <= limits.tasksPerStage) return;
  throw new InvalidInputError(
    `${options.field}.splitBytes must be larger than ${options.splitBytes}: the input makes more than ${limits.tasksPerStage} tasks`,
    { field: `${options.field}.splitBytes` },
  );
}
