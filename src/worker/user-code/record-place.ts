import { wordsOfThrown } from '../failure-of.ts';

/*
 * Where a record comes from that a function of the user's could not take. It is kept on the error under a symbol of all
 * of the process: the worker's side of the process and the bundle have each their own copy of this module.
 */
const placeOfError = Symbol.for('outrider.record-place');

/** A record's place: in an input of the task that is read from files, or told in words. */
export type RecordPlace =
  | { readonly kind: 'file'; readonly input: number; readonly file: string; readonly offset: number }
  | { readonly kind: 'words'; readonly words: string };

/** The error with the place, unless it has one; what is thrown that is no object becomes an error. */
export function atPlace(thrown: unknown, place: RecordPlace | undefined): unknown {
  if (place === undefined) return thrown;
  const error = typeof thrown === 'object' && thrown !== null ? thrown : new Error(wordsOfThrown(thrown));
  if (placeOf(error) !== undefined || !Object.isExtensible(error)) return error;
  Object.defineProperty(error, placeOfError, { value: place, configurable: true });
  return error;
}

/** The place that `atPlace` has kept; undefined where there is none. */
export function placeOf(thrown: unknown): RecordPlace | undefined {
  if (typeof thrown !== 'object' || thrown === null) return undefined;
  return (thrown as { readonly [placeOfError]?: RecordPlace })[placeOfError];
}
