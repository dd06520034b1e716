import { readFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { parseDocument } from '../contracts/json-text.ts';
import { limits } from '../contracts/limits.ts';
import { builtinJobNames } from '../operators/builtin-jobs.ts';
import { badInput, systemCode, systemReason } from './failures.ts';

/** A source input of a spec file: its addresses, and its local paths relative to the file's directory. */
export interface SpecInput {
  /** Path of the field, such as `stages[0].inputs[0].s3`. */
  readonly where: string;
  readonly uris: readonly string[];
  readonly paths: readonly string[];
}

/** A job spec as the user wrote it. Entries of "s3" that do not begin with "s3://" are local. */
export interface SpecFile {
  readonly directory: string;
  readonly inputs: readonly SpecInput[];
  /** The document with `uris[i]` in place of the local paths of the i-th input that has any. */
  withUris(uris: readonly string[]): unknown;
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
        `unknown job "${path}": it must be one of ${builtinJobNames.join(', ')}, or a spec file`,
        error,
      );
    }
    throw badInput(`job spec ${path} cannot be read: ${systemReason(error)}`, error);
  }
  if (Buffer.byteLength(text) > limits.specBytes) {
    throw badInput(`job spec ${path} is longer than ${String(limits.specBytes)} bytes`);
  }
  const document = parseDocument(text, `job spec ${path}`);
  return readInputs(document, dirname(file));
}

interface Source {
  readonly where: string;
  readonly input: Readonly<Record<string, unknown>>;
  readonly entries: readonly string[];
}

function readInputs(document: unknown, directory: string): SpecFile {
  const inputs = sourcesOf(document).map(({ where, entries }) => ({
    where,
    uris: entries.filter((entry) => isAddress(entry)),
    paths: entries.filter((entry) => !isAddress(entry)),
  }));
  return {
    directory,
    inputs,
    withUris: (uris) => {
      // Two calls must not see each other's addresses, so each changes a copy of its own.
      const copy = structuredClone(document);
      let next = 0;
      for (const { input, entries } of sourcesOf(copy)) {
        const addresses = entries.filter((entry) => isAddress(entry));
        if (addresses.length === entries.length) continue;
        const uri = uris[next++];
        Reflect.set(input, 's3', uri === undefined ? addresses : [...addresses, uri]);
      }
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

function listAt(value: unknown, field: string): readonly unknown[] {
  const list = isRecord(value) ? value[field] : undefined;
  return Array.isArray(list) ? list : [];
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
