import { InvalidInputError } from '../../contracts/errors.ts';
import { type SourceInput } from '../../contracts/job-spec.ts';
import { uriOf } from '../../contracts/keys.ts';
import { type SourceObject, unpackedKey } from './splits.ts';

/** The name of an output part, its directory before it; files of a user's own machine are staged with a number before theirs. */
const partKey = /^(?<directory>.*\/|)(?:(?<=^input\/[^/]+\/)\d+-)?part-(?<number>\d{5,})$/s;

/** What the name of an object or file tells of the output part that it is; undefined where that is not the name of one. */
export function partOf(key: string): { readonly directory: string; readonly number: number } | undefined {
  const { directory, number } = partKey.exec(unpackedKey(key))?.groups ?? {};
  return directory === undefined ? undefined : { directory, number: Number(number) };
}

/** What is to be done about a part whose header is in one that is not there. */
export const withoutFirstPart = (part: string): string =>
  `${part} has the name of a later part of a job's output, and the header of CSV is in part-00000: name that too, read without a header, or name the file otherwise where it has one of its own`;

/**
 * The objects of an input of CSV with a header, each later part of a job's output with the part that has the header for all
 * of them: the one numbered 0 of its directory, and of files that were staged together the last such before it. An empty
 * one has no header, so that the others are read as they are.
 *
 * @param objects - In reading order.
 * @throws InvalidInputError where that part is not among the objects.
 */
export function withPartHeaders(
  objects: readonly SourceObject[],
  { format, header }: Pick<SourceInput, 'format' | 'header'>,
  field: string,
): readonly SourceObject[] {
  if (format !== 'csv' || !header) return objects;
  const parts = objects.map((object) => ({ object, part: partOf(object.key) }));
  const placeOf = ({ bucket }: SourceObject, directory: string): string => uriOf({ bucket, key: directory });
  const firsts = new Map<string, SourceObject>();
  for (const { object, part } of parts.toReversed())
    if (part?.number === 0) firsts.set(placeOf(object, part.directory), object);
  return parts.map(({ object, part }) => {
    if (part === undefined) return object;
    const place = placeOf(object, part.directory);
    // An empty one too: those behind it are not those of the directory before.
    if (part.number === 0) firsts.set(place, object);
    const first = firsts.get(place);
    if (part.number === 0 || object.sizeBytes === 0 || first?.sizeBytes === 0) return object;
    if (first === undefined)
      throw new InvalidInputError(`${field}: ${withoutFirstPart(uriOf(object))}`, { field });
    return { ...object, headerIn: first };
  });
}
