import type { BuiltinJobName, BuiltinJobOptions } from '../operators/builtin-jobs.ts';
import { parseAggregates } from './aggregates.ts';
import { badInput } from './failures.ts';
import { checkFormats, formatOf, type InputFile } from './input-formats.ts';
import type { JobOptions } from './job-options.ts';

/** Files of the inputs of a built-in job that can be looked into. */
export interface InputSides {
  readonly left: readonly InputFile[];
  readonly right: readonly InputFile[];
}

type Formats = Pick<BuiltinJobOptions, 'format' | 'rightFormat'>;

const readsRows = (name: BuiltinJobName, { format }: JobOptions): boolean =>
  (name === 'groupby' || name === 'join') && format !== 'text';

/** Formats of what is read as rows: as the user says, or as files show. */
export async function formatsOf(
  name: BuiltinJobName,
  options: JobOptions,
  { left, right }: InputSides,
): Promise<Formats> {
  if (!readsRows(name, options)) return {};
  const format = options.format ?? (await formatOf('--input', left));
  const found = options.rightFormat ?? (await formatOf('--right', right));
  const rightFormat = found !== undefined && found !== (format ?? 'csv') ? found : options.rightFormat;
  return {
    ...(format === undefined ? {} : { format }),
    ...(rightFormat === undefined ? {} : { rightFormat }),
  };
}

/**
 * Refuses what a job takes and this form of it does not read: whoever gave it would get something else than was asked for, and
 * not be told. Throws `InvalidInputError` that names both options.
 */
export function refuseUnread(name: BuiltinJobName, options: JobOptions, formats: Formats): void {
  const { partitions, count, broadcast, header, multiline } = options;
  if (partitions !== undefined && name === 'grep' && count !== true)
    throw badInput('--partitions goes with --count: without it grep shuffles nothing');
  if (partitions !== undefined && name === 'join' && broadcast === true)
    throw badInput('--partitions cannot go with --broadcast, which shuffles nothing');
  if (!readsRows(name, options)) return;
  const { format = 'csv', rightFormat = format } = formats;
  if (format === 'csv' || (name === 'join' && rightFormat === 'csv')) return;
  const what = options.format === undefined ? '--input is' : '--format is';
  if (multiline === true) throw badInput(`--multiline is for CSV, and ${what} ${format}`);
  if (!header && options.rows !== 'csv')
    throw badInput(`--no-header is for CSV, and ${what} ${format}, as are the rows without --rows csv`);
}

/** Looks into files, whether they are what they are to be read as and have the columns that are needed. */
export async function checkSides(
  name: BuiltinJobName,
  options: JobOptions,
  { left, right }: InputSides,
  formats: Formats,
): Promise<void> {
  const { header } = options;
  const side = { option: '--input', formatOption: '--format', header };
  if (!readsRows(name, options)) {
    await checkFormats([...left, ...right], { ...side, format: 'text', columns: [] });
    return;
  }
  const { format = 'csv', rightFormat = format } = formats;
  await checkFormats(left, { ...side, format, columns: neededColumns(name, options) });
  const rightKey = options.rightKey ?? options.leftKey;
  const columns = rightKey === undefined ? [] : [{ name: rightKey, option: '--right-key' }];
  await checkFormats(right, {
    option: '--right',
    formatOption: '--right-format',
    header,
    format: rightFormat,
    columns,
  });
}

/** Columns of the (left-hand) input that a job names, with the options that name them. */
function neededColumns(
  name: BuiltinJobName,
  { key = [], agg = [], leftKey }: JobOptions,
): readonly { readonly name: string; readonly option: string }[] {
  if (name === 'join') return leftKey === undefined ? [] : [{ name: leftKey, option: '--left-key' }];
  const aggregated = agg.flatMap((list) => parseAggregates(list)).flatMap(({ column }) => column ?? []);
  return [
    ...key.map((column) => ({ name: column, option: '--key' })),
    ...aggregated.map((column) => ({ name: column, option: '--agg' })),
  ];
}
