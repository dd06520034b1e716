import type { EngineSize } from '../worker/operator.ts';
import { rowOutputNames, rowOutputOptions } from './groupby-options.ts';
import type { RowOutputOptions } from './groupby-options.ts';
import { flagOption, textOption, textsOption, wholeOption } from './options.ts';
import type { Options } from './options.ts';

/** How one side of a join is read. */
export interface JoinSideOptions {
  readonly key: string;
  /** Compare keys by their text: 1 equals "1". Needed where one side is CSV and the other NDJSON. */
  readonly keysAsText: boolean;
  /** Columns to keep; all where undefined. */
  readonly columns: readonly string[] | undefined;
}

/** How the joined rows are written. */
export interface JoinOutputOptions extends RowOutputOptions {
  readonly leftKey: string;
  readonly rightKey: string;
}

export const joinSideNames = ['key', 'keysAsText', 'columns'] as const;
export const joinOutputNames = ['leftKey', 'rightKey', ...rowOutputNames] as const;

/** Reads `key`, `keysAsText` and `columns`; throws InvalidInputError where they are wrong. */
export const joinSideOptions = (options: Options): JoinSideOptions => ({
  key: textOption(options, 'key', 'the name of a column'),
  keysAsText: flagOption(options, 'keysAsText'),
  columns: textsOption(options, 'columns'),
});

/** Reads `leftKey`, `rightKey`, `output` and `header`; throws InvalidInputError where they are wrong. */
export const joinOutputOptions = (options: Options): JoinOutputOptions => ({
  leftKey: textOption(options, 'leftKey', 'the name of a column of the left-hand side'),
  rightKey: textOption(options, 'rightKey', 'the name of a column of the right-hand side'),
  ...rowOutputOptions(options),
});

const defaultTableBytes = 128 * 1024 * 1024;
const maxTableBytes = 4 * 1024 * 1024 * 1024;

/** Bytes of keys and rows of the right-hand side that a task of the broadcast form holds. */
export const tableBytesOption = (options: Options): number =>
  wholeOption(options, 'maxTableBytes', { min: 1, max: maxTableBytes, fallback: defaultTableBytes });

/** Bytes of one key's right-hand rows that are held in memory; more go to disk. */
export const groupBytesOption = (options: Options): number =>
  wholeOption(options, 'maxGroupBytes', { min: 1, max: maxTableBytes, fallback: 16 * 1024 * 1024 });

/**
 * Bytes of right-hand rows that a task joins by a table of its own, instead of by DuckDB: as many as that might hold. None
 * where there is to be no DuckDB, and rows are joined one by one.
 */
export function heldBytesOption(options: Options, engine: EngineSize | undefined): number {
  const fallback = Math.min(maxTableBytes, engine?.memoryBytes ?? defaultEngineBytes);
  const bytes = wholeOption(options, 'maxHeldBytes', { min: 0, max: maxTableBytes, fallback });
  return engine?.memoryBytes === 0 ? 0 : bytes;
}

const defaultEngineBytes = 160 * 1024 * 1024;
