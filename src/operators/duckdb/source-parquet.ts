import { open } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { forEachBounded } from '../../lib/bounded.ts';
import { BadInputError } from '../../worker/operator.ts';
import type { SourceFile, TaskContext } from '../../worker/operator.ts';
import { orBadInput, sqlText } from './engine.ts';
import type { Engine } from './engine.ts';

const magic = 'PAR1';
/** Behind the footer: its length, and the magic. */
const tailBytes = 8;
/** Most footers fit into what is read first. */
const firstBytes = 64 * 1024;

/**
 * The rows of a task's pieces of Parquet files, as a query. A row group is of the piece in which it begins. Files are laid into
 * scratch space with holes: the footer and the task's row groups at their places, so that nothing else is fetched.
 */
export async function parquetRows(
  engine: Engine,
  files: readonly SourceFile[],
  { name, dir, tally }: { readonly name: string; readonly dir: string; readonly tally: TaskContext['tally'] },
): Promise<string> {
  const queries: string[] = [];
  for (const [index, file] of files.entries()) {
    const path = join(dir, `${name}-${String(index)}.parquet`);
    const { from, until } = await layRowGroups(engine, file, path);
    tally?.({ in: until - from });
    const rows = `SELECT * EXCLUDE (file_row_number) FROM read_parquet(${sqlText(path)}, file_row_number = true, hive_partitioning = false)`;
    // Row groups whose rows are all of other numbers are not looked at.
    queries.push(
      until > from
        ? `${rows} WHERE file_row_number >= ${String(from)} AND file_row_number < ${String(until)}`
        : `${rows} WHERE false`,
    );
  }
  return queries.join(' UNION ALL BY NAME ');
}

/** Makes a file of which nothing can be told but its columns; answers what reads it, without rows. */
export async function parquetHead(engine: Engine, file: SourceFile, path: string): Promise<string> {
  const handle = await open(path, 'w');
  try {
    await layFooter(file, handle);
  } finally {
    await handle.close();
  }
  const query = `SELECT * FROM read_parquet(${sqlText(path)}, hive_partitioning = false) LIMIT 0`;
  await orBadInput(`${file.uri} is not a Parquet file that can be read`, () =>
    engine.run(`DESCRIBE ${query}`),
  );
  return query;
}

/** Gaps with filters that are fetched at once: each is small, and a file may have thousands. */
const gapsAtOnce = 16;

/** Answers the numbers of the rows that are the task's: [from, until). */
async function layRowGroups(
  engine: Engine,
  file: SourceFile,
  path: string,
): Promise<{ readonly from: number; readonly until: number }> {
  const handle = await open(path, 'w');
  try {
    const footer = await layFooter(file, handle);
    const groups = await rowGroupsOf(engine, file, path);
    const own = groups.filter(({ start }) => start >= file.start && start < file.end);
    // A row group may be larger than pieces: then one task has all of it, and others have nothing.
    file.expect(own.reduce((sum, { start, end }) => sum + end - start, 0));
    for (const { start, end } of own) await lay(file, handle, start, end, true);
    // Filters of all row groups are looked at, whosoever they are: where they lie between these, and where behind all of them.
    const others = groups.slice(0, -1).filter(({ start }) => start < file.start || start >= file.end);
    await forEachBounded(
      others.filter(({ hasFilters }) => hasFilters),
      gapsAtOnce,
      async ({ dataEnd, end }) => {
        await lay(file, handle, dataEnd, end);
      },
    );
    await lay(file, handle, groups.at(-1)?.end ?? footer, footer);
    const before = groups.filter(({ start }) => start < file.start);
    const rowsOf = (some: typeof groups): number => some.reduce((sum, { rows }) => sum + rows, 0);
    return { from: rowsOf(before), until: rowsOf(before) + rowsOf(own) };
  } finally {
    await handle.close();
  }
}

const notParquet = ({ uri }: SourceFile, why: string): BadInputError =>
  new BadInputError(`${uri} is not a Parquet file that can be read: ${why}`);

/** Answers where the footer begins. */
async function layFooter(file: SourceFile, handle: FileHandle): Promise<number> {
  const { sizeBytes } = file;
  if (file.isPacked) throw notParquet(file, 'its name says that it is compressed as a whole');
  if (sizeBytes < magic.length + tailBytes) throw notParquet(file, 'it is too short');
  await lay(file, handle, 0, magic.length);
  const first = Math.max(0, sizeBytes - firstBytes);
  const tail = await lay(file, handle, first, sizeBytes);
  const end = tail.subarray(-tailBytes);
  if (end.toString('latin1', 4) !== magic) throw notParquet(file, `it does not end with ${magic}`);
  const start = sizeBytes - tailBytes - end.readUInt32LE(0);
  if (start < magic.length) throw notParquet(file, 'its footer is longer than the file');
  if (start < first) await lay(file, handle, start, first);
  return start;
}

/** Fetches bytes [start, end) of the file into their place; answers the last of them, as many as came last. */
async function lay(
  file: SourceFile,
  handle: FileHandle,
  start: number,
  end: number,
  isExpected = false,
): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let held = 0;
  let at = start;
  for await (const chunk of file.read(start, end, isExpected)) {
    for (let done = 0; done < chunk.length;)
      done += (await handle.write(chunk, done, chunk.length - done, at + done)).bytesWritten;
    at += chunk.length;
    chunks.push(Buffer.from(chunk));
    held += chunk.length;
    // Row groups are large: what is asked for is the end alone.
    for (let first = chunks[0]; first !== undefined && held - first.length >= firstBytes; first = chunks[0]) {
      held -= first.length;
      chunks.shift();
    }
  }
  return Buffer.concat(chunks);
}

/** A row group, and the bytes of its file from its begin to that of the next, or to the end of its own data. */
interface RowGroup {
  readonly rows: number;
  readonly start: number;
  readonly dataEnd: number;
  readonly end: number;
  /** Whether filters of it, or of the next one, lie between their data. */
  readonly hasFilters: boolean;
}

/** The row groups of a file, in order of rows. */
async function rowGroupsOf(engine: Engine, file: SourceFile, path: string): Promise<readonly RowGroup[]> {
  const first = 'min(least(data_page_offset, coalesce(nullif(dictionary_page_offset, 0), data_page_offset)))';
  const groups: { rows: number; start: number; dataEnd: number; filters: readonly number[] }[] = [];
  await orBadInput(`${file.uri} is not a Parquet file that can be read`, async () => {
    const query = `SELECT any_value(row_group_num_rows)::DOUBLE, ${first}::DOUBLE, sum(total_compressed_size)::DOUBLE, min(bloom_filter_offset)::DOUBLE, max(bloom_filter_offset)::DOUBLE FROM parquet_metadata(${sqlText(path)}) GROUP BY row_group_id ORDER BY row_group_id`;
    for await (const rows of engine.rows(query))
      for (const [count, start, bytes, ...places] of rows) {
        const filters = places.filter((place) => place !== null).map(Number);
        const dataEnd = Number(start) + Number(bytes);
        groups.push({ rows: Number(count), start: Number(start), dataEnd, filters });
      }
  });
  const isInOrder = groups.every(({ dataEnd }, at) => dataEnd <= (groups[at + 1]?.start ?? file.sizeBytes));
  if (!isInOrder) throw notParquet(file, 'its row groups lie across one another');
  return groups.map(({ filters, ...group }, at) => {
    const next = groups[at + 1];
    const end = next?.start ?? group.dataEnd;
    const places = [...filters, ...(next?.filters ?? [])];
    return { ...group, end, hasFilters: places.some((place) => place >= group.dataEnd && place < end) };
  });
}
