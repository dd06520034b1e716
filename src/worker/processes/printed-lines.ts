import type { Readable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';

/** Characters of a line that go to the log, and lines of one attempt. */
const longestLine = 4 * 1024;
const mostLines = 1_000;

/**
 * Cuts what comes into lines, long ones at a limit; beyond the number of lines that an attempt may print it only reads.
 *
 * @param printed - Shared by all pipes of an attempt.
 */
export function printLines(pipe: Readable, printed: { lines: number }, onLine: (text: string) => void): void {
  const decoder = new StringDecoder('utf8');
  let rest = '';
  const print = (line: string): void => {
    printed.lines++;
    if (printed.lines < mostLines) onLine(line);
    else if (printed.lines === mostLines)
      onLine(`… and more than ${String(mostLines)} lines, which are dropped`);
  };
  pipe.on('data', (chunk: Buffer) => {
    if (printed.lines > mostLines) return;
    const lines = (rest + decoder.write(chunk)).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) print(line.slice(0, longestLine));
    if (rest.length <= longestLine) return;
    print(rest.slice(0, longestLine));
    rest = '';
  });
  let isOver = false;
  // A pipe that is given up closes without an end: what it said until then is said.
  const flush = (): void => {
    if (!isOver && rest !== '') print(rest);
    isOver = true;
  };
  pipe.on('end', flush);
  pipe.on('close', flush);
  pipe.on('error', () => undefined);
}
