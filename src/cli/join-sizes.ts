import { limits } from '../contracts/limits.ts';
import { codecOfKey } from '../core/model/splits.ts';
import type { BuiltinJobOptions } from '../operators/builtin-jobs.ts';
import type { InputFile } from './input-formats.ts';
import type { SizedFile } from './packed-inputs.ts';
import { mostObjects } from './remote-inputs.ts';

/**
 * Right-hand sides of up to so many bytes are held by every task where the user does not say how to join. To send one to each
 * split of the left-hand side is then less than to shuffle both, and the table fits into the least worker.
 */
export const mostBroadcastBytes = limits.defaultSplitBytes;
/** As many times as large as what it holds a task's left-hand side should be, so that it does not spend its time on making a table. */
const leftPerRight = 8;
/** About how many times as large text is as when it is compressed. */
const unpacksTo = 5;

/** One side of a join, as far as it was looked at. */
interface SeenSide<Kind> {
  /** Its addresses on S3. */
  readonly uris: readonly string[];
  readonly files: readonly Kind[];
}

type Fields = Pick<
  BuiltinJobOptions,
  'broadcast' | 'partitions' | 'splitBytes' | 'format' | 'rightFormat' | 'rows'
>;

/** Whether all files of a side were seen. */
const isWhole = ({ uris, files }: SeenSide<unknown>): boolean =>
  uris.length === 0 || (uris.length === 1 && files.length > 0 && files.length < mostObjects);

/** About how many bytes a side holds; undefined where not all of it was seen. */
function aboutBytes(side: SeenSide<InputFile>): number | undefined {
  if (!isWhole(side)) return undefined;
  return side.files.reduce(
    (sum, { path, sizeBytes }) => sum + (codecOfKey(path) === undefined ? 1 : unpacksTo) * sizeBytes,
    0,
  );
}

/**
 * Bytes that a side holds; undefined where not all of it was seen, or a compressed file does not tell. What is usual is no answer
 * here: a table of repeated values is packed thirtyfold, and who holds one that is too large fails.
 */
function toldBytes(side: SeenSide<SizedFile>): number | undefined {
  if (!isWhole(side)) return undefined;
  return side.files.reduce<number | undefined>(
    (sum, { heldBytes }) => (sum === undefined || heldBytes === undefined ? undefined : sum + heldBytes),
    0,
  );
}

/**
 * How a join of CSV is cut whose right-hand side is small, where the user says neither whether that is broadcast nor into how many
 * partitions both are shuffled. `isAsked`: which of these the user has said.
 */
export function joinSizes(
  sides: { readonly left: SeenSide<InputFile>; readonly right: SeenSide<SizedFile> },
  fields: Fields,
  asked: { readonly partitions: boolean; readonly splitBytes: boolean; readonly slots: number | undefined },
): Pick<Fields, 'broadcast' | 'splitBytes'> {
  const isCsv = [fields.format, fields.rightFormat, fields.rows].every(
    (format) => (format ?? 'csv') === 'csv',
  );
  const rightBytes = toldBytes(sides.right);
  const isTold = fields.broadcast !== undefined || asked.partitions;
  if (!isCsv || isTold || rightBytes === undefined || rightBytes > mostBroadcastBytes) return {};
  const leftBytes = aboutBytes(sides.left);
  if (asked.splitBytes || asked.slots === undefined || leftBytes === undefined) return { broadcast: true };
  const most = leftPerRight * rightBytes;
  if (most <= (fields.splitBytes ?? limits.defaultSplitBytes)) return { broadcast: true };
  // As many tasks for each slot, and no more than that takes.
  const rounds = Math.ceil(leftBytes / (asked.slots * most));
  return { broadcast: true, splitBytes: Math.max(1, Math.ceil(leftBytes / (asked.slots * rounds))) };
}
