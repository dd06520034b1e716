import { Readable, type Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createZstdDecompress } from 'node:zlib';
import type { Codec } from '../contracts/plan.ts';
import { bunzip2 } from './bunzip2.ts';
import { gunzipped } from './gzip-members.ts';
import { BadInputError } from './operator.ts';
import { zstdFrames } from './zstd-frames.ts';

const chunkSize = 128 * 1024;

/**
 * Unpacks the bytes of a file: all members, frames or streams that follow each other in it. Throws `BadInputError` that
 * names the file where they are not whole data of the codec, and what `chunks` throws.
 */
export async function* unpacked(
  chunks: AsyncIterable<Uint8Array>,
  codec: Codec,
  file: string,
): AsyncGenerator<Uint8Array> {
  // An error of the source is no error of the data.
  const source: { error?: Error } = {};
  const watched = (async function* () {
    try {
      yield* chunks;
    } catch (error) {
      source.error = error instanceof Error ? error : new Error(String(error));
      throw source.error;
    }
  })();
  try {
    if (codec === 'bzip2') yield* bunzip2(watched);
    else if (codec === 'gzip') yield* gunzipped(watched);
    else yield* throughZlib(zstdFrames(watched), createZstdDecompress({ chunkSize }));
  } catch (cause) {
    if (source.error !== undefined) throw source.error;
    const what = cause instanceof Error ? cause.message : String(cause);
    throw new BadInputError(`${file}: not whole ${codec} data: ${what}`, { cause });
  }
}

async function* throughZlib(
  chunks: AsyncIterable<Uint8Array>,
  unpack: Transform,
): AsyncGenerator<Uint8Array> {
  const feeding = pipeline(Readable.from(chunks, { objectMode: false }), unpack).catch(() => undefined);
  try {
    for await (const chunk of unpack) {
      if (chunk instanceof Uint8Array) yield chunk;
    }
  } finally {
    unpack.destroy();
    await feeding;
  }
}
