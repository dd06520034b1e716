import { createReadStream } from 'node:fs';
import type { TaskOutput } from '../../worker/operator.ts';

const readBytes = 256 * 1024;

/** Puts out a file that DuckDB has written, which holds so many rows. */
export async function putOut(path: string, rows: number, output: TaskOutput): Promise<void> {
  const pieces = createReadStream(path, { highWaterMark: readBytes }) as AsyncIterable<Buffer>;
  let untold = rows;
  for await (const bytes of pieces) {
    await output.write(bytes, untold);
    untold = 0;
  }
}
