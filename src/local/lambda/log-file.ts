import { createWriteStream, mkdirSync } from 'node:fs';
import { dirname } from 'node:path';

/** Lines appended to one file. */
export interface LogFile {
  /** Appends a line; a full disk loses lines but never stops the caller. */
  write(line: string): void;
  /** Resolves when all lines are handed to the system. */
  close(): Promise<void>;
}

/** Opens a log for appending, with its folders; one that cannot be made loses its lines. */
export function openLogFile(path: string): LogFile {
  try {
    mkdirSync(dirname(path), { recursive: true });
  } catch {
    // The stream below meets the same fault, and ends by it.
  }
  const stream = createWriteStream(path, { flags: 'a' });
  stream.on('error', () => undefined);
  return {
    write(line) {
      if (stream.writable) stream.write(`${line}\n`);
    },
    close() {
      return new Promise((resolve) => {
        if (stream.closed || stream.errored !== null) {
          resolve();
          return;
        }
        stream.once('close', resolve);
        stream.end();
      });
    },
  };
}
