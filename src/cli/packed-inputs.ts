import type { Codec } from '../contracts/plan.ts';
import { heldBytes, lookRange, tellingRange } from '../core/model/packed-size.ts';
import { codecOfKey } from '../core/model/splits.ts';
import { forEachBounded } from '../lib/bounded.ts';
import { bytesIn, type InputFile } from './input-formats.ts';

/** Compressed files that are asked how much they hold; of more nobody is. */
const mostAsked = 1_000;
const atOnce = 16;

/** A file, and how much it holds when it is unpacked. */
export interface SizedFile extends InputFile {
  /** Absent: it is compressed, and what it holds cannot be told. */
  readonly heldBytes?: number;
}

/**
 * Files with how much each of them holds: what it stores, or as its ends tell of a compressed one.
 *
 * @param option - How the user names this input in messages, such as `--right`.
 * @param mostBytes - Of compressed files that store more than that between them none is looked at.
 * @throws InvalidInputError where a file cannot be read.
 */
export async function withHeldBytes(
  option: string,
  files: readonly InputFile[],
  mostBytes: number,
): Promise<readonly SizedFile[]> {
  const packed = files.flatMap((file) => {
    const codec = codecOfKey(file.path);
    return codec === undefined ? [] : [{ file, codec }];
  });
  const stored = packed.reduce((sum, { file }) => sum + file.sizeBytes, 0);
  const held = new Map<InputFile, number>();
  if (packed.length <= mostAsked && stored <= mostBytes)
    await forEachBounded(packed, atOnce, async ({ file, codec }) => {
      const bytes = await heldBy(option, file, codec);
      if (bytes !== undefined) held.set(file, bytes);
    });
  return files.map((file) => {
    const bytes = codecOfKey(file.path) === undefined ? file.sizeBytes : held.get(file);
    return bytes === undefined ? file : { ...file, heldBytes: bytes };
  });
}

async function heldBy(option: string, file: InputFile, codec: Codec): Promise<number | undefined> {
  if (file.sizeBytes === 0) return 0;
  const look = await bytesIn(option, file, lookRange(file));
  const telling = await bytesIn(option, file, tellingRange(file, codec));
  return look && telling && heldBytes(file, codec, look, telling);
}
