import { createReadStream } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { createInterface } from 'node:readline';

/** One line of a log, as FilterLogEvents answers it. */
export interface LogEvent {
  readonly logStreamName: string;
  /** Milliseconds since the epoch. */
  readonly timestamp: number;
  readonly message: string;
  readonly ingestionTime: number;
  readonly eventId: string;
}

/** Events of one group that are kept in memory for an answer; those beyond are the newest. */
const MAX_EVENTS = 200_000;

/**
 * All events of the logs in some directories that pass `isWanted`, oldest first. Files are streams; lines have
 * no time of their own unless they are JSON with `at`, and get that of the line before, or of the file.
 *
 * @param sinceMs - files not written to since then are not read; the events of others may be older.
 */
export async function readLogEvents(
  directories: readonly string[],
  sinceMs: number,
  isWanted: (event: LogEvent) => boolean,
): Promise<LogEvent[]> {
  const files = (await Promise.all(directories.map((directory) => logFiles(directory, sinceMs))))
    .flat()
    .toSorted();
  const events: LogEvent[] = [];
  for (const file of files) {
    for await (const event of fileEvents(file)) {
      if (isWanted(event)) events.push(event);
      if (events.length >= MAX_EVENTS) return sorted(events);
    }
  }
  return sorted(events);
}

const sorted = (events: readonly LogEvent[]): LogEvent[] =>
  events.toSorted((a, b) => a.timestamp - b.timestamp);

async function logFiles(directory: string, sinceMs: number): Promise<string[]> {
  try {
    const names = await readdir(directory);
    const paths = names.filter((name) => name.endsWith('.log')).map((name) => join(directory, name));
    const times = await Promise.all(paths.map(async (path) => (await stat(path)).mtimeMs));
    return paths.filter((_, index) => (times[index] ?? 0) >= sinceMs);
  } catch {
    return []; // Nothing has run yet.
  }
}

async function* fileEvents(file: string): AsyncGenerator<LogEvent> {
  const logStreamName = basename(file, '.log');
  const { birthtimeMs } = await stat(file);
  let timestamp = Math.trunc(birthtimeMs);
  let number = 0;
  const lines = createInterface({ input: createReadStream(file, 'utf8'), crlfDelay: Infinity });
  for await (const message of lines) {
    timestamp = timeOf(message) ?? timestamp;
    const eventId = `${logStreamName}:${String(number).padStart(10, '0')}`;
    yield { logStreamName, timestamp, message, ingestionTime: timestamp, eventId };
    number++;
  }
}

function timeOf(line: string): number | undefined {
  const at = /^\{"at":"([0-9T:.Z-]{20,30})"/.exec(line)?.[1];
  const time = at === undefined ? Number.NaN : Date.parse(at);
  return Number.isNaN(time) ? undefined : time;
}
