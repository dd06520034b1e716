import { InvalidInputError } from '../contracts/errors.ts';
import type { SourceFormat } from '../contracts/job-spec.ts';
import { Dataset } from './dataset.ts';
import { mainInput } from './graph.ts';

/** What every source may be told. */
export interface ReadOptions {
  /** Another input than that of `--input`: `--input customers=customers.csv` gives the one of the name `customers`. */
  readonly input?: string;
  /** Bytes that one task reads. */
  readonly splitBytes?: number;
  /**
   * What a record does that cannot be read, or for which a function throws before the first shuffle: `fail` ends the job and
   * names it, `skip` leaves it out, whole, and counts it (`skippedRecords`).
   */
  readonly onBadRecord?: 'fail' | 'skip';
}

/** What readers of rows may be told. */
export type ReadRowsOptions = ReadOptions;

export interface ReadCsvOptions<Column extends string> extends ReadOptions {
  /**
   * Whether the first line of each file names the columns, as it does unless this is false; else they are c0, c1, … Of a job's
   * output `part-00000` names them for all parts.
   */
  readonly header?: boolean;
  /** Whether quoted fields hold line ends: then each file is read whole by one task. */
  readonly multiline?: boolean;
  /** Columns that the job uses: their names are checked when a file is read, and give records their type. */
  readonly columns?: readonly Column[];
}

/** A row of CSV: column → text. */
export type CsvRow<Column extends string = string> = Readonly<Record<Column, string>>;

type Paths = string | readonly string[];

/**
 * Where records come from. Without paths it is what `--input` names on the command line; paths are files, directories or
 * patterns relative to the job file, or `s3://` addresses.
 */
export const read = {
  /** Lines of text, without their ends ("\n" or "\r\n"). Bytes that are no UTF-8 become U+FFFD; the job counts such lines (`invalidUtf8Lines`). */
  text: (
    ...given: readonly [paths: Paths, options?: ReadOptions] | readonly [options?: ReadOptions]
  ): Dataset<string> => source('text', given),
  /** Lines of JSON objects. Their type is what the job says; it is not checked. */
  ndjson: <T extends object = Record<string, unknown>>(
    ...given: readonly [paths: Paths, options?: ReadOptions] | readonly [options?: ReadOptions]
  ): Dataset<T> => source('ndjson', given),
  /** Rows of CSV, as objects of texts. */
  csv: <const Column extends string = string>(
    ...given:
      readonly [paths: Paths, options?: ReadCsvOptions<Column>] | readonly [options?: ReadCsvOptions<Column>]
  ): Dataset<CsvRow<Column>> => source('csv', given),
};

function source<T>(
  format: SourceFormat,
  [first, second]: readonly [(Paths | ReadCsvOptions<string>)?, ReadCsvOptions<string>?],
): Dataset<T> {
  const isPaths = typeof first === 'string' || Array.isArray(first);
  const paths = typeof first === 'string' ? [first] : Array.isArray(first) ? (first as string[]) : [];
  const options = (isPaths ? second : (first as ReadCsvOptions<string> | undefined)) ?? {};
  const { input = mainInput, splitBytes, header = true, multiline = false } = options;
  const { onBadRecord = 'fail', columns = [] } = options;
  const what = `read.${format}`;
  if (isPaths && (paths.length === 0 || paths.some((path) => typeof path !== 'string' || path === ''))) {
    throw new InvalidInputError(`${what} must be given paths that are no empty texts, or none at all`);
  }
  if (isPaths && options.input !== undefined)
    throw new InvalidInputError(`${what} must be given paths or the name of an input, not both`);
  if (!/^[a-z][a-z0-9-]{0,31}$/.test(input)) {
    throw new InvalidInputError(
      `${what}: input must be 1 to 32 of a-z, 0-9 and "-", and begin with a letter, not ${JSON.stringify(input)}`,
    );
  }
  return new Dataset<T>({
    kind: 'source',
    format,
    paths: [...paths],
    input,
    header,
    multiline,
    onBadRecord,
    columns: [...columns],
    ...(splitBytes === undefined ? {} : { splitBytes }),
  });
}
