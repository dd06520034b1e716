import { readFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { namedTwice, parseDocument } from '../contracts/json-text.ts';
import type { SourceFormat } from '../contracts/job-spec.ts';
import type { TaskFile } from '../contracts/task-files.ts';
import { nearMiss } from '../contracts/known-fields.ts';
import { limits } from '../contracts/limits.ts';
import { builtinJobNames } from '../operators/builtin-jobs.ts';
import { badInput, systemCode, systemReason } from './failures.ts';

/** A source input of a spec file: its addresses, and its local paths relative to the file's directory. */
export interface SpecInput {
  /** Path of the field, such as `stages[0].inputs[0].s3`. */
  readonly where: string;
  readonly uris: readonly string[];
  readonly paths: readonly string[];
  /** As the user wrote them, where that can be read. */
  readonly format: SourceFormat;
  readonly header: boolean;
}

/** A job spec as the user wrote it. Entries of "s3" that do not begin with "s3://" are local. */
export interface SpecFile {
  readonly directory: string;
  readonly inputs: readonly SpecInput[];
  /** The stages of `exec` that name local files to come with them. */
  readonly files: readonly SpecFiles[];
  /**
   * The document with `uris[i]` in place of the local paths of the i-th input that has any, and `files[i]` in place of
   * the local files of the i-th stage that names some.
   */
  withUris(uris: readonly string[], files: readonly (readonly TaskFile[])[]): unknown;
}

/** Local files of a stage, relative to the spec's directory. */
export interface SpecFiles {
  /** Path of the field, such as `stages[0].options.files`. */
  readonly where: string;
  readonly paths: readonly string[];
}

/** What may have been meant by the name of a job that there is not. */
function hintOf(name: string): string {
  const meant = nearMiss(name, builtinJobNames);
  return meant === undefined
    ? '; a job file is named with its ending, such as ./job.ts'
    : `; did you mean "${meant}"?`;
}

/**
 * Reads a spec file; its fields are not checked yet.
 *
 * @throws InvalidInputError where the file is missing, too large, or not JSON.
 */
export async function loadSpecFile(path: string, cwd: string): Promise<SpecFile> {
  const file = resolve(cwd, path);
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    if (systemCode(error) === 'ENOENT' && !/[./]/.test(path)) {
      throw badInput(
        `unknown job "${path}": it must be one of ${builtinJobNames.join(', ')}, or a spec file${hintOf(path)}`,
        error,
      );
    }
    throw badInput(`job spec ${path} cannot be read: ${systemReason(error)}`, error);
  }
  if (Buffer.byteLength(text) > limits.specBytes) {
    throw badInput(`job spec ${path} is longer than ${String(limits.specBytes)} bytes`);
  }
  // Some editors write a byte order mark, which nobody sees.
  const json = text.replace(/^\uFEFF/, '');
  const document = parseDocument(json, `job spec ${path}`);
  const twice = namedTwice(json);
  if (twice !== undefined) throw badInput(`job spec ${path} says "${twice}" twice: which one is meant?`);
  if (typeof document !== 'object' || document === null || Array.isArray(document))
    throw badInput(`job spec ${path} must hold one object, such as {"name": …, "stages": […]}`);
  return readInputs(document, dirname(file));
}

const formatIn = ({ format }: Readonly<Record<string, unknown>>): SourceFormat =>
  format === 'csv' || format === 'ndjson' || format === 'parquet' ? format : 'text';

interface Source {
  readonly where: string;
  readonly input: Readonly<Record<string, unknown>>;
  readonly entries: readonly string[];
}

/** A spec whose local inputs and files are relative to `directory`. */
export function readInputs(document: unknown, directory: string): SpecFile {
  const inputs = sourcesOf(document).map(({ where, entries, input }) => ({
    where,
    format: formatIn(input),
    header: input['header'] !== false,
    uris: entries.filter((entry) => isAddress(entry)),
    paths: entries.filter((entry) => !isAddress(entry)),
  }));
  return {
    directory,
    inputs,
    files: filesOf(document).map(({ where, entries }) => ({ where, paths: entries })),
    withUris: (uris, files) => {
      // Two calls must not see each other's addresses, so each changes a copy of its own.
      const copy = structuredClone(document);
      let next = 0;
      for (const { input, entries } of sourcesOf(copy)) {
        const addresses = entries.filter((entry) => isAddress(entry));
        if (addresses.length === entries.length) continue;
        const uri = uris[next++];
        Reflect.set(input, 's3', uri === undefined ? addresses : [...addresses, uri]);
      }
      for (const [index, { options }] of filesOf(copy).entries())
        Reflect.set(options, 'files', files[index] ?? []);
      return copy;
    },
  };
}

const isAddress = (entry: string): boolean => entry.startsWith('s3://');

/** Source inputs that are shaped as one; what is not is left to the schema, which says what is wrong. */
function sourcesOf(document: unknown): readonly Source[] {
  return listAt(document, 'stages').flatMap((stage, stageIndex) =>
    listAt(stage, 'inputs').flatMap((input, index) => {
      const entries = listAt(input, 's3');
      if (!isRecord(input) || entries.length === 0 || !entries.every((entry) => typeof entry === 'string'))
        return [];
      return [{ where: `stages[${String(stageIndex)}].inputs[${String(index)}].s3`, input, entries }];
    }),
  );
}

/** Options of `exec` whose files are named by local paths; what is shaped otherwise is left to the operator's check. */
function filesOf(document: unknown): readonly {
  readonly where: string;
  readonly options: Readonly<Record<string, unknown>>;
  readonly entries: readonly string[];
}[] {
  return listAt(document, 'stages').flatMap((stage, index) => {
    const options = isRecord(stage) && stage['operator'] === 'exec' ? stage['options'] : undefined;
    const entries = listAt(options, 'files');
    if (!isRecord(options) || entries.length === 0) return [];
    if (!entries.every((entry) => typeof entry === 'string')) return [];
    return [{ where: `stages[${String(index)}].options.files`, options, entries }];
  });
}

function listAt(value: unknown, field: string): readonly unknown[] {
  const list = isRecord(value) ? value[field] : undefined;
  return Array.isArray(list) ? list : [];
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
