import { open } from 'node:fs/promises';
import { basename } from 'node:path';
import { constants, gunzipSync } from 'node:zlib';
import type { SourceFormat } from '../contracts/job-spec.ts';
import { nearMiss } from '../contracts/known-fields.ts';
import { partOf, withoutFirstPart } from '../core/model/part-headers.ts';
import { codecOfKey, unpackedKey } from '../core/model/splits.ts';
import type { ByteRange } from '../ports/object-store.ts';
import { CsvRecordParser } from '../worker/csv-record.ts';
import { badInput, systemCode, systemReason } from './failures.ts';
import type { LocalFile } from './local-inputs.ts';

/** Bytes of a file that are looked at, and files of an input: what is wrong is most often wrong in all of them. */
const headBytes = 256 * 1024;
const mostFiles = 100;

const parquetMagic = 'PAR1';

/** Formats that no built-in job reads, by how their files begin. */
const foreign: readonly (readonly [magic: Buffer, name: string, help: string])[] = [
  [
    Buffer.from(parquetMagic),
    'a Parquet file',
    `convert it first, with DuckDB for one: COPY (FROM 'in.parquet') TO 'out.csv'; or have a stage of the operator sql read it`,
  ],
  [Buffer.from('Obj\u0001', 'latin1'), 'an Avro file', 'convert it to NDJSON or CSV first'],
  [Buffer.from('ORC'), 'an ORC file', 'convert it to NDJSON or CSV first'],
  [Buffer.from('PK\u0003\u0004', 'latin1'), 'a ZIP archive', 'unpack it first'],
];
const gzipMagic = Buffer.from([0x1f, 0x8b]);

/** A file of an input, wherever it is. */
export interface InputFile extends LocalFile {
  /** Bytes of it, where it is not on this machine; undefined where they cannot be had. */
  readonly read?: (range: ByteRange) => Promise<Buffer | undefined>;
}

/** How an input is to be read, and how the user says so. */
export interface WantedFormat {
  readonly format: SourceFormat;
  readonly header: boolean;
  /** How messages name the input, such as `--input`, and its format, such as `--format`. */
  readonly option: string;
  readonly formatOption: string;
  /** Columns that the job needs, each with how the user named it. */
  readonly columns: readonly { readonly name: string; readonly option: string }[];
}

/** The format that the names of files tell, or their first bytes where those do not; undefined where neither does. */
export async function formatOf(
  option: string,
  files: readonly InputFile[],
): Promise<'csv' | 'ndjson' | undefined> {
  const [first] = files;
  if (first === undefined) return undefined;
  const named = files.slice(0, mostFiles).map(({ path }) => formatOfName(path));
  const [one] = named;
  const other = named.findIndex((each) => each !== one);
  if (other >= 0)
    throw badInput(
      `${option} holds files of more than one kind, such as ${basename(first.path)} and ${basename(files[other]?.path ?? '')}: give one kind at a time, or say --format`,
    );
  if (one !== undefined) return one;
  return (await headOf(option, first, true)).text.trimStart().startsWith('{') ? 'ndjson' : undefined;
}

function formatOfName(path: string): 'csv' | 'ndjson' | undefined {
  const name = unpackedKey(path).toLowerCase();
  if (/\.(ndjson|jsonl|jsonlines)$/.test(name)) return 'ndjson';
  return name.endsWith('.csv') ? 'csv' : undefined;
}

/**
 * Looks at the beginnings of files, before anything is uploaded.
 *
 * @throws InvalidInputError where one is of another format than it is to be read as, with how to read it, or lacks a
 * column that the job needs.
 */
export async function checkFormats(files: readonly InputFile[], wanted: WantedFormat): Promise<void> {
  for (const file of files.slice(0, mostFiles)) {
    const head = await headOf(wanted.option, file, wanted.format !== 'text');
    checkFormat(file, head, wanted);
    const isNamedElsewhere = wanted.header && (partOf(file.path)?.number ?? 0) > 0;
    if (wanted.format === 'csv' && head.isReadable && head.text.trim() !== '' && !isNamedElsewhere)
      checkColumns(file, head, wanted);
  }
  if (wanted.format === 'csv' && wanted.header) checkParts(files, wanted);
}

/** Of files of this machine: once they are staged, it is not seen any more which of them lay in one directory. */
function checkParts(files: readonly InputFile[], { option }: WantedFormat): void {
  const parts = files.flatMap((file) => {
    const part = file.read === undefined ? partOf(file.path) : undefined;
    return part === undefined ? [] : [{ file, part }];
  });
  const begun = new Set(parts.filter(({ part }) => part.number === 0).map(({ part }) => part.directory));
  const alone = parts.find(({ file, part }) => file.sizeBytes > 0 && !begun.has(part.directory));
  if (alone !== undefined) throw badInput(`${option}: ${withoutFirstPart(alone.file.path)}`);
}

interface Head {
  readonly text: string;
  /** Whether the whole beginning could be unpacked here. */
  readonly isReadable: boolean;
}

const unread: Head = { text: '', isReadable: false };

/** Bytes of a file, wherever it is, as far as it has them; undefined where they cannot be had. */
export async function bytesIn(
  option: string,
  { path, read }: InputFile,
  { start, end }: ByteRange,
): Promise<Buffer | undefined> {
  if (read !== undefined) return read({ start, end });
  try {
    const handle = await open(path);
    try {
      const buffer = Buffer.alloc(end - start);
      const { bytesRead } = await handle.read(buffer, 0, end - start, start);
      return buffer.subarray(0, bytesRead);
    } finally {
      await handle.close();
    }
  } catch (error) {
    if (systemCode(error) === undefined) throw error;
    throw badInput(`${option} ${path} cannot be read: ${systemReason(error)}`, error);
  }
}

async function headOf(option: string, file: InputFile, isOfRows: boolean): Promise<Head> {
  const { path } = file;
  const bytes = await bytesIn(option, file, { start: 0, end: headBytes });
  if (bytes === undefined) return unread;

  const isGzip = bytes.subarray(0, gzipMagic.length).equals(gzipMagic);
  const codec = codecOfKey(path);
  const isNamed = codec === 'gzip';
  if (isGzip && !isNamed)
    throw badInput(
      `${option}: ${path} is packed with gzip: name it ${basename(path)}.gz, so that it is unpacked`,
    );
  if (isNamed && !isGzip && isOfRows && bytes.length > 0)
    throw badInput(`${option}: ${path} is not packed with gzip, though its name says so: name it otherwise`);
  if (codec !== undefined && !isNamed) return unread;
  return { text: textOf(isGzip ? unpacked(bytes) : bytes), isReadable: true };
}

/** As far as the bytes that were read go. */
function unpacked(bytes: Buffer): Buffer {
  try {
    return gunzipSync(bytes, { finishFlush: constants.Z_SYNC_FLUSH, maxOutputLength: 16 * headBytes });
  } catch {
    return Buffer.alloc(0); // The worker says what is wrong with it.
  }
}

const textOf = (bytes: Buffer): string => bytes.toString('utf8').replace(/^\uFEFF/, '');

function checkFormat({ path }: LocalFile, { text }: Head, wanted: WantedFormat): void {
  const { option, formatOption, format } = wanted;
  if (format === 'text') return;
  if (format === 'parquet') {
    if (text === '' || text.startsWith(parquetMagic)) return;
    throw badInput(`${option}: ${path} is not a Parquet file, though its format says so`);
  }
  const found = foreign.find(([magic]) => text.startsWith(magic.toString('latin1')));
  if (found !== undefined) {
    const [, name, help] = found;
    throw badInput(`${option}: ${path} is ${name}, which is not read: ${help}`);
  }
  const start = text.trimStart();
  if (format === 'csv' && start.startsWith('{'))
    throw badInput(`${option}: ${path} looks like NDJSON and not like CSV: give ${formatOption} ndjson`);
  if (format === 'ndjson' && start.startsWith('['))
    throw badInput(
      `${option}: ${path} is one JSON list and not NDJSON, which has an object a line: convert it first, as with jq -c '.[]'`,
    );
  if (format === 'ndjson' && start !== '' && !start.startsWith('{'))
    throw badInput(
      `${option}: ${path} does not look like NDJSON, whose lines begin with "{": give ${formatOption} csv where it is CSV`,
    );
}

function checkColumns({ path }: LocalFile, { text }: Head, wanted: WantedFormat): void {
  const fields = firstRecord(text);
  if (fields === undefined) return;
  const columns = wanted.header ? fields : fields.map((_, index) => `c${String(index)}`);
  for (const { name, option } of wanted.columns) {
    if (columns.includes(name)) continue;
    const meant = nearMiss(name, columns);
    const hint = meant === undefined ? '' : `; did you mean "${meant}"?`;
    const isTabbed = columns.length === 1 && /[\t;|]/.test(columns[0] ?? '');
    const separator = isTabbed ? '; fields must be between commas' : '';
    throw badInput(
      `${option}: ${path} has no column "${name}"; its columns are ${shown(columns)}${hint}${separator}`,
    );
  }
}

const shownColumns = 30;
const shown = (columns: readonly string[]): string =>
  columns.length <= shownColumns
    ? columns.join(', ')
    : `${columns.slice(0, shownColumns).join(', ')} and ${String(columns.length - shownColumns)} more`;

/** Fields of the first record; undefined where it is not whole in what was read, or bad. */
function firstRecord(text: string): readonly string[] | undefined {
  const parser = new CsvRecordParser();
  const lines = text.split('\n');
  const isWhole = Buffer.byteLength(text) < headBytes;
  for (const [index, line] of lines.entries()) {
    if (!parser.isOpen && (line === '' || line === '\r')) continue;
    if (index === lines.length - 1 && !isWhole) return undefined;
    const outcome = parser.push(line);
    if (outcome.kind === 'record') return outcome.fields;
    if (outcome.kind === 'bad') return undefined;
  }
  return undefined;
}
