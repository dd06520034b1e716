import { createReadStream } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { LineSplitter } from '../line-splitter.ts';

/** One line of a log, as FilterLogEvents answers it. */
export interface LogEvent {
  readonly logStreamName: string;
  /** Milliseconds since the epoch. */
  readonly timestamp: number;
  readonly message: string;
  readonly ingestionTime: number;
  readonly eventId: string;
}

/** Where an event stands among those of its group: by time, and of one time by file and line. */
export interface LogPlace {
  readonly timestamp: number;
  readonly file: string;
  /** Of the file's lines, from 0. */
  readonly line: number;
}

export interface LogRange {
  /** Events up to this one are left out. */
  readonly after?: LogPlace;
  /** Events at most, the oldest; 200,000 where nothing is said. */
  readonly limit?: number;
}

/** An event, and where it stands. */
export interface PlacedEvent {
  readonly event: LogEvent;
  readonly place: LogPlace;
}

/** Events of one group that are kept in memory for an answer. */
export const mostEvents = 200_000;
/** How many more are taken in before the newest are dropped again. */
const slackEvents = 10_000;

/**
 * The oldest events of the logs in some directories that pass `isWanted`, in order. Files are streams; lines have
 * no time of their own unless they are JSON with `at`, and get that of the line before, or of the file.
 *
 * @param sinceMs - files not written to since then are not read; the events of others may be older.
 */
export async function readLogEvents(
  directories: readonly string[],
  sinceMs: number,
  isWanted: (event: LogEvent) => boolean,
  { after, limit = mostEvents }: LogRange = {},
): Promise<readonly PlacedEvent[]> {
  const files = (await Promise.all(directories.map((directory) => logFiles(directory, sinceMs)))).flat();
  let events: PlacedEvent[] = [];
  for (const file of files) {
    for await (const found of fileEvents(file)) {
      if (!isWanted(found.event) || (after !== undefined && byPlace(found.place, after) <= 0)) continue;
      events.push(found);
      if (events.length >= limit + slackEvents) events = oldest(events, limit);
    }
  }
  return oldest(events, limit);
}

const oldest = (events: readonly PlacedEvent[], limit: number): PlacedEvent[] =>
  events.toSorted((a, b) => byPlace(a.place, b.place)).slice(0, limit);

function byPlace(a: LogPlace, b: LogPlace): number {
  if (a.timestamp !== b.timestamp) return a.timestamp - b.timestamp;
  if (a.file !== b.file) return a.file < b.file ? -1 : 1;
  return a.line - b.line;
}

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

async function* fileEvents(file: string): AsyncGenerator<PlacedEvent> {
  const logStreamName = basename(file, '.log');
  const { birthtimeMs } = await stat(file);
  let timestamp = Math.trunc(birthtimeMs);
  let number = 0;
  for await (const message of linesOf(file)) {
    timestamp = timeOf(message) ?? timestamp;
    const eventId = `${logStreamName}:${String(number).padStart(10, '0')}`;
    const event = { logStreamName, timestamp, message, ingestionTime: timestamp, eventId };
    yield { event, place: { timestamp, file, line: number } };
    number++;
  }
}

async function* linesOf(file: string): AsyncGenerator<string> {
  const lines = new LineSplitter();
  const textOf = (line: Buffer): string => line.toString('utf8').replace(/\r$/, '');
  for await (const chunk of createReadStream(file) as AsyncIterable<Buffer>)
    for (const line of lines.push(chunk)) yield textOf(line);
  const rest = lines.rest();
  if (rest !== undefined) yield textOf(rest);
}

function timeOf(line: string): number | undefined {
  const at = /^\{"at":"([0-9T:.Z-]{20,30})"/.exec(line)?.[1];
  const time = at === undefined ? Number.NaN : Date.parse(at);
  return Number.isNaN(time) ? undefined : time;
}
