import type { AttemptRecord, JobRecord } from '../contracts/records.ts';
import { uriOf } from '../contracts/keys.ts';
import type { StagedSet } from './staging.ts';

/**
 * A message of the service with the user's own paths for the keys of staged files.
 *
 * @param written - how a path stands in the text: as it is, where that is not said.
 */
export function withLocalPaths(
  message: string,
  sets: readonly StagedSet[],
  written: (path: string) => string = (path) => path,
): string {
  let text = message;
  for (const { bucket, prefix, objects } of sets) {
    if (!text.includes(prefix)) continue;
    for (const { key, file } of objects) {
      // A function, since "$&" and the like stand for something in a text that replaces.
      const path = (): string => written(file.path);
      text = text.replaceAll(uriOf({ bucket, key }), path).replaceAll(key, path);
    }
  }
  return text;
}

/** A path as it stands inside of a text of JSON. */
const inJson = (path: string): string => JSON.stringify(path).slice(1, -1);

/** A line of a log, which stays JSON where it is that. */
export function lineInLocalWords(text: string, sets: readonly StagedSet[]): string {
  const isJson = text.startsWith('{');
  return withLocalPaths(text, sets, isJson ? inJson : undefined);
}

/** A failure names the user's files, not the keys under which they were uploaded. */
export function jobInLocalWords(job: JobRecord, sets: readonly StagedSet[]): JobRecord {
  if (job.error === undefined) return job;
  return { ...job, error: { ...job.error, message: withLocalPaths(job.error.message, sets) } };
}

/** Those of attempts, too. */
export function attemptInLocalWords(attempt: AttemptRecord, sets: readonly StagedSet[]): AttemptRecord {
  const { failure } = attempt;
  if (failure === undefined) return attempt;
  return { ...attempt, failure: { ...failure, message: withLocalPaths(failure.message, sets) } };
}
