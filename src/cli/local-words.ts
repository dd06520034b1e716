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
  return sets.reduce((text, set) => withPathsOf(set, text, written), message);
}

/** By the number in each key: a log may name each of a hundred thousand files. */
function withPathsOf(
  { bucket, prefix, objects }: StagedSet,
  text: string,
  written: (path: string) => string,
): string {
  const address = uriOf({ bucket, key: '' });
  const digits = String(objects.length).length;
  const parts: string[] = [];
  let done = 0;
  for (let at = text.indexOf(prefix); at >= 0; at = text.indexOf(prefix, at + 1)) {
    const number = at + prefix.length;
    const object = objects[Number(text.slice(number, number + digits))];
    if (object === undefined || !text.startsWith(object.key, at)) continue;
    const isAddress = at - address.length >= done && text.startsWith(address, at - address.length);
    parts.push(text.slice(done, isAddress ? at - address.length : at), written(object.file.path));
    done = at + object.key.length;
  }
  return parts.length === 0 ? text : [...parts, text.slice(done)].join('');
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
