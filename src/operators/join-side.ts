import { createReadStream } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { ExternalSort } from '../worker/external-sort.ts';
import { BadRecordError } from '../worker/operator.ts';
import type { KeyValue, TaskContext, TaskInput } from '../worker/operator.ts';
import { RecordCursor } from '../worker/record-cursor.ts';
import { RunWriter } from '../worker/run-file.ts';
import { recordsOfRun } from '../worker/stage-records.ts';
import { Engine, firstLineOf, hasDuckDb } from './duckdb/engine.ts';
import { joinFiles, SideFiles } from './duckdb/joined-files.ts';
import type { TableFile } from './duckdb/joined-files.ts';
import { putOut } from './duckdb/written-file.ts';
import type { JoinOutputOptions } from './join-options.ts';
import { rowsOfLines } from './join-pieces.ts';
import { isPieceKey, readPieceKey, RowPacker, RowUnpacker } from './packed-rows.ts';

/** What one side has sent to a task: pieces, which lie in files now, and rows that travelled one by one. */
export interface Side {
  readonly name: string;
  /** Knows the columns of all. */
  readonly rows: RowUnpacker;
  readonly files: readonly TableFile[];
  /** Stands at the first packed row, which is after all pieces. */
  readonly rest: RecordCursor;
}

/** Memory to sort rows in that came in pieces and are joined one by one after all. */
const sortBytes = 24 * 1024 * 1024;
const readBytes = 256 * 1024;
/** Beyond the numbers of tasks: rows that are packed here. */
const ownTask = 0xffff_ffff;

/** Reads what a side tells of its columns, and its pieces; `rest.close` gives the rest back. */
export async function readSide(context: TaskContext, input: TaskInput, name: string): Promise<Side> {
  const rows = new RowUnpacker();
  const files = new SideFiles(context.scratchDir, name);
  if (input.head !== undefined) await learnColumns(rows, input.head());
  const rest = await RecordCursor.open(input.records());
  try {
    for (; rest.current !== undefined; await rest.advance()) {
      if (rest.current.key.length === 0) rows.learn(rest.current.value);
      else if (isPieceKey(rest.current.key)) await addPiece(context, files, rows, rest.current);
      else break;
    }
  } catch (error) {
    await rest.close();
    throw error;
  } finally {
    await files.finish();
  }
  return { name, rows, files: files.all, rest };
}

/** Learns of what columns the whole side is from the pieces before, which other tasks join: from the first that has records. */
async function learnColumns(rows: RowUnpacker, head: AsyncIterable<readonly KeyValue[]>): Promise<void> {
  for await (const batch of head) {
    for (const { key, value } of batch) {
      if (key.length > 0) return;
      rows.learn(value);
      if (rows.knowsColumns) return;
    }
  }
}

/** Writes a piece that came as a record to its file. */
export async function addPiece(
  { tally }: TaskContext,
  files: SideFiles,
  columns: RowUnpacker,
  { key, value }: KeyValue,
): Promise<void> {
  const piece = readPieceKey(key);
  const { rows, isPlain } = piece;
  await files.add({ table: columns.tableOf(piece), bytes: value, rows, isPlain });
  tally?.({ in: rows - 1 });
}

/**
 * Joins files by DuckDB and writes the joined rows. False, with nothing written, where there is no DuckDB, or it cannot: then
 * the rows must be joined one by one. Throws `BadRecordError` where rows that match cannot be written.
 */
export async function joinByEngine(
  { scratchDir, engine: size, signal, output, note }: TaskContext,
  sides: { readonly left: FileSide; readonly right: FileSide; readonly keepsLeftOrder: boolean },
  options: JoinOutputOptions,
): Promise<boolean> {
  const { left, right, keepsLeftOrder } = sides;
  if (left.files.length === 0 || right.files.length === 0) return true;
  if (!hasDuckDb(size)) {
    note?.('DuckDB is not installed here: rows are joined one by one, which takes longer');
    return false;
  }
  const path = join(scratchDir, 'joined');
  let rows: number | undefined;
  try {
    const engine = await Engine.open({ scratchDir, size, signal, keepsOrder: keepsLeftOrder });
    try {
      const known = { left: left.columns, right: right.columns };
      const files = { left: left.files, right: right.files, known };
      rows = await joinFiles(engine, files, options, path);
    } finally {
      engine.close();
    }
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof BadRecordError) throw error;
    // No room for what it holds, most likely: one by one a join needs little.
    note?.(`DuckDB could not join the rows, which are joined one by one: ${firstLineOf(error)}`);
    return false;
  }
  if (rows === undefined) return false;
  await putOut(path, rows, output);
  return true;
}

/** The rows of files, packed with their keys; `rows` learns their columns. */
export async function* packedRows(
  files: readonly TableFile[],
  rows: RowUnpacker,
): AsyncGenerator<readonly KeyValue[]> {
  const packer = new RowPacker({ task: ownTask });
  for (const { path, start, ...table } of files) {
    const chunks = createReadStream(path, { start, highWaterMark: readBytes }) as AsyncIterable<Buffer>;
    for await (const batch of rowsOfLines(chunks, table)) {
      yield batch.map(({ row, key }) => {
        const said = packer.announce(table.columns, false);
        if (said !== undefined) rows.learn(said);
        return { key: Buffer.from(key), value: packer.pack(row) };
      });
    }
  }
}

/** All rows of a side one by one, in order of key. `rest` is read or closed by it. */
export async function sortedRows(
  { scratchDir, signal }: TaskContext,
  { name, rows, files, rest }: Side,
): Promise<RecordCursor> {
  if (files.length === 0) return rest;
  const dir = join(scratchDir, `${name}-sort`);
  await mkdir(dir);
  const sort = new ExternalSort({
    partitions: 1,
    memoryBytes: sortBytes,
    combine: undefined,
    scratchDir: dir,
    signal,
  });
  try {
    for await (const batch of packedRows(files, rows)) {
      for (const { key, value } of batch) {
        const wait = sort.add(key, value);
        if (wait !== undefined) await wait;
      }
    }
    for (; rest.current !== undefined; await rest.advance())
      await sort.add(rest.current.key, rest.current.value);
  } finally {
    await rest.close();
  }
  const writer = await RunWriter.create(join(dir, 'sorted'), 1);
  await sort.finish(writer);
  return RecordCursor.open(recordsOfRun(await writer.finish(), sortBytes));
}

/** A side whose rows all lie in files. */
export interface FileSide {
  readonly files: readonly TableFile[];
  /** The columns of the whole side, where they are known. */
  readonly columns: readonly string[] | undefined;
}
