import { createReadStream } from 'node:fs';
import { pipeline } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { InvalidInputError } from '../contracts/errors.ts';

/** A line of a file with where it stands, for messages. */
export interface TraceLine {
  readonly path: string;
  /** From 1. */
  readonly number: number;
  /** Without its line end. */
  readonly text: string;
}

/** A longer line is taken for a file of another kind; the longest of a known trace has 142 kB. */
const MAX_LINE_CHARS = 16 * 1024 * 1024;

/** The error for a line that cannot be read: `path:line: problem`. */
export function badLine(line: TraceLine, problem: string): InvalidInputError {
  const where = `${line.path}:${line.number}`;
  return new InvalidInputError(`${where}: ${problem}`, { path: line.path, line: line.number });
}

/** Bytes of a file as text, unpacked where its name ends in `.gz`. */
function openText(path: string): AsyncIterable<string> {
  const file = createReadStream(path);
  if (!path.endsWith('.gz')) return file.setEncoding('utf8');
  // The callback has nothing to do: faults of either stream also reject the iteration.
  return pipeline(file, createGunzip(), () => undefined).setEncoding('utf8');
}

/**
 * Lines of a text file, plain or gzip, read as they are asked for; blank ones are left out but counted.
 * Throws `InvalidInputError` if the file is missing, unreadable, cut short or has an endless line.
 */
export async function* traceLines(path: string): AsyncGenerator<TraceLine, void, void> {
  let number = 0;
  let rest = '';
  const line = (text: string): TraceLine => ({
    path,
    number: ++number,
    text: text.endsWith('\r') ? text.slice(0, -1) : text,
  });
  try {
    for await (const chunk of openText(path)) {
      const pieces = (rest + chunk).split('\n');
      rest = pieces.pop() ?? '';
      for (const piece of pieces) {
        const next = line(piece);
        if (next.text.trim() !== '') yield next;
      }
      if (rest.length > MAX_LINE_CHARS) throw badLine(line(''), 'line of over 16 MiB; this is no such trace');
    }
  } catch (error) {
    if (error instanceof InvalidInputError) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    throw new InvalidInputError(`cannot read trace ${path}: ${reason}`, { path }, { cause: error });
  }
  if (rest.trim() !== '') yield line(rest);
}
