import { InvalidInputError } from '../../contracts/errors.ts';
import type { SourceFormat } from '../../contracts/job-spec.ts';
import { limits } from '../../contracts/limits.ts';
import type { SourceSegment } from '../../contracts/plan.ts';

/** An object that a source input matched. */
export interface SourceObject {
  readonly bucket: string;
  readonly key: string;
  readonly sizeBytes: number;
  readonly etag: string;
}

/** Gzip streams cannot be entered in the middle, and a quoted CSV field may hold a line end. */
const isWhole = (object: SourceObject, format: SourceFormat): boolean =>
  object.key.endsWith('.gz') || format === 'csv';

/**
 * Cuts objects into the inputs of tasks, in order: about `splitBytes` each; small objects share a task,
 * at most `limits.objectsPerTask` of them, since each is a request; large
 * plain ones are cut (the reader aligns cuts to line ends). Gzip and CSV objects stay whole. Empty objects cost
 * nothing. At least one task, possibly with nothing to read. Throws `InvalidInputError` beyond the task limit.
 */
export function splitObjects(
  objects: readonly SourceObject[],
  options: { readonly format: SourceFormat; readonly splitBytes: number; readonly field: string },
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
    const gzip = object.key.endsWith('.gz');
    const segment = (start: number, end: number): SourceSegment => ({
      bucket: object.bucket,
      key: object.key,
      start,
      end,
      sizeBytes: object.sizeBytes,
      etag: object.etag,
      gzip,
    });
    const isFull = currentBytes + object.sizeBytes > options.splitBytes;
    if (current.length > 0 && (isFull || current.length >= limits.objectsPerTask)) close();
    const pieces = isWhole(object, options.format) ? 1 : Math.ceil(object.sizeBytes / options.splitBytes);
    checkCount(tasks.length + pieces, options);
    for (let i = 0; i < pieces; i++) {
      if (i > 0) close();
      const start = Math.floor((object.sizeBytes * i) / pieces);
      const end = Math.floor((object.sizeBytes * (i + 1)) / pieces);
      current.push(segment(start, end));
      currentBytes += end - start;
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
