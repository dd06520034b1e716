import { open } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { createReadStream } from 'node:fs';
import { join } from 'node:path';
import { BadInputError } from '../../worker/operator.ts';
import type { TaskInput, TaskOutput } from '../../worker/operator.ts';

/*
 * How files travel between stages: as records of a piece each. A key has the task, the file and the number of the piece, so
 * that in order of keys a reader gets file after file.
 */

const pieceBytes = 256 * 1024;
const keyBytes = 12;

/** Sends a file of a task to a partition; answers in how many records. */
export async function sendFile(
  output: TaskOutput,
  path: string,
  { task, file, partition }: { readonly task: number; readonly file: number; readonly partition: number },
): Promise<number> {
  const key = Buffer.alloc(keyBytes);
  key.writeUInt32BE(task, 0);
  key.writeUInt32BE(file, 4);
  let piece = 0;
  for await (const bytes of createReadStream(path, { highWaterMark: pieceBytes }) as AsyncIterable<Buffer>) {
    key.writeUInt32BE(piece++, 8);
    await output.emit(key, bytes, partition);
  }
  return piece;
}

/** Files that were received. */
interface ReceivedFiles {
  /** In order of task. */
  readonly paths: readonly string[];
  /** As how many records they came. */
  readonly pieces: number;
}

/** Writes the files that an input brings into a directory. */
export async function receiveFiles(input: TaskInput, dir: string, name: string): Promise<ReceivedFiles> {
  const paths: string[] = [];
  let pieces = 0;
  let last: { readonly id: Buffer; readonly handle: FileHandle } | undefined;
  try {
    for await (const batch of input.records()) {
      pieces += batch.length;
      for (const { key, value } of batch) {
        if (key.length !== keyBytes)
          throw new BadInputError(`an sql stage reads files and sql stages, which ${name} is not`);
        const id = key.subarray(0, 8);
        if (last?.id.equals(id) !== true) {
          await last?.handle.close();
          const path = join(dir, `${name}-${String(paths.length)}.parquet`);
          paths.push(path);
          last = { id: Buffer.from(id), handle: await open(path, 'w') };
        }
        await last.handle.appendFile(value);
      }
    }
  } finally {
    await last?.handle.close();
  }
  return { paths, pieces };
}
