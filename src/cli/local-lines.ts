import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { JobId } from '../contracts/ids.ts';
import { isOfAnother } from '../contracts/job-lines.ts';
import { epochMs } from '../contracts/units.ts';
import { type LogEvent, mostEvents, readLogEvents } from '../local/logs/log-events.ts';
import type { LogLine } from '../ports/log-reader.ts';
import { readLogLine } from '../report/log-lines.ts';

/**
 * What the functions and tasks of a local stack have logged of a job, oldest first. Of a job that has logged more than can be
 * held, the oldest lines, and beside them the oldest of those that its code has not printed.
 */
export async function localLines(
  stateDir: string,
  jobId: JobId,
  limit: number = mostEvents,
): Promise<readonly LogLine[]> {
  const root = join(stateDir, 'logs');
  const entries = await readdir(root, { recursive: true, withFileTypes: true }).catch(() => []);
  const directories = [
    ...new Set(entries.filter((each) => each.isFile()).map(({ parentPath }) => parentPath)),
  ];
  const read = async (isWanted: (line: LogLine) => boolean): Promise<readonly LogLine[]> => {
    const found = await readLogEvents(
      directories,
      0,
      (event) =>
        event.message.includes(jobId) && !isOfAnother(jobId, event.message) && isWanted(lineOf(event)),
      { limit },
    );
    return found.map(({ event }) => lineOf(event));
  };
  const lines = await read(() => true);
  if (lines.length < limit) return lines;
  const isPrinted = (line: LogLine): boolean => readLogLine(line).event === 'user-output';
  const others = await read((line) => !isPrinted(line));
  return [...lines.filter(isPrinted), ...others].toSorted((a, b) => a.at - b.at);
}

const lineOf = ({ timestamp, logStreamName, message }: LogEvent): LogLine => ({
  at: epochMs(timestamp),
  source: logStreamName,
  text: message,
});
