import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { JobId } from '../contracts/ids.ts';
import { epochMs } from '../contracts/units.ts';
import { readLogEvents } from '../local/logs/log-events.ts';
import type { LogLine } from '../ports/log-reader.ts';

/** What the functions and tasks of a local stack have logged of a job, oldest first. */
export async function localLines(stateDir: string, jobId: JobId): Promise<readonly LogLine[]> {
  const root = join(stateDir, 'logs');
  const entries = await readdir(root, { recursive: true, withFileTypes: true }).catch(() => []);
  const directories = [
    ...new Set(entries.filter((each) => each.isFile()).map(({ parentPath }) => parentPath)),
  ];
  const events = await readLogEvents(directories, 0, ({ message }) => message.includes(jobId));
  return events.map(({ timestamp, logStreamName, message }) => ({
    at: epochMs(timestamp),
    source: logStreamName,
    text: message,
  }));
}
