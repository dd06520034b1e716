import { mkdir, open, readFile } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { ExternalSort } from '../worker/external-sort.ts';
import type { TaskContext } from '../worker/operator.ts';
import type { RecordCursor } from '../worker/record-cursor.ts';
import { RunWriter } from '../worker/run-file.ts';
import { recordsOfRun } from '../worker/stage-records.ts';
import { Engine, firstLineOf, hasDuckDb } from './duckdb/engine.ts';
import { mergeGroupFile } from './duckdb/merged-groups.ts';
import type { GroupFile } from './duckdb/group-file.ts';
import type { Partial } from './aggregates.ts';
import { groupForm, groupOfLine, groupsOf } from './group-lines.ts';
import type { Group, GroupForm } from './group-lines.ts';
import { combinePartials, decodePartials, mergeAll } from './group-partials.ts';
import type { Aggregate } from './groupby-options.ts';
import { isPieceKey, readPieceKey } from './packed-rows.ts';

/** Groups of fewer lines are merged here: the engine would have to be loaded for them, which takes 135 ms. */
const leastEngineRows = 20_000;
/** Where their keys are long they would take too much memory, being texts there, and objects. */
const mostHereBytes = 16 * 1024 * 1024;
/** Memory to sort groups in that came in pieces and are merged one by one after all. */
const sortBytes = 24 * 1024 * 1024;

/** What is merged, and under which name it lies in scratch space. */
interface Grouping {
  readonly name: string;
  readonly aggregates: readonly Aggregate[];
}

/** Pieces of lines in a file. */
interface ReceivedLines extends GroupFile {
  readonly rows: number;
  readonly sizeBytes: number;
}

/**
 * The groups of the pieces at which the cursor stands, one for each key, in byte order of their keys. The cursor moves to the
 * first record that is none, before any group is given.
 */
export async function readPieces(
  context: TaskContext,
  cursor: RecordCursor,
  grouping: Grouping,
): Promise<AsyncIterable<readonly Group[]> | readonly (readonly Group[])[]> {
  if (cursor.current === undefined || !isPieceKey(cursor.current.key)) return [];
  const form = groupForm(grouping.aggregates);
  const lines = await layPieces(context, cursor, join(context.scratchDir, `${grouping.name}.lines`));
  if (lines.rows < leastEngineRows && lines.sizeBytes <= mostHereBytes)
    return [await mergedHere(lines, form, grouping)];
  const merged = await mergedByEngine(context, lines, form, `${lines.path}.merged`);
  return merged === undefined ? sortedGroups(context, lines, form, grouping) : groupsOf([merged], form);
}

async function layPieces({ tally }: TaskContext, cursor: RecordCursor, path: string): Promise<ReceivedLines> {
  const handle: FileHandle = await open(path, 'w');
  let rows = 0;
  let sizeBytes = 0;
  let longestBytes = 0;
  try {
    while (cursor.current !== undefined && isPieceKey(cursor.current.key)) {
      const { key, value } = cursor.current;
      const piece = readPieceKey(key);
      await handle.appendFile(value);
      rows += piece.rows;
      sizeBytes += value.length;
      tally?.({ in: piece.rows - 1 });
      // A piece of several rows is short.
      longestBytes = Math.max(longestBytes, value.length);
      await cursor.advance();
    }
  } finally {
    await handle.close();
  }
  return { path, rows, sizeBytes, longestBytes };
}

/** All in memory. */
async function mergedHere(
  { path }: ReceivedLines,
  form: GroupForm,
  { aggregates }: Grouping,
): Promise<readonly Group[]> {
  const groups = new Map<string, Group>();
  for (const line of (await readFile(path, 'utf8')).split('\n')) {
    if (line === '') continue;
    const group = groupOfLine(line, form);
    const known = groups.get(group.key);
    if (known === undefined) groups.set(group.key, group);
    else mergeAll(known.partials, group.partials, aggregates);
  }
  const keyed = [...groups.values()].map((group) => ({ group, bytes: Buffer.from(group.key) }));
  return keyed.sort((left, right) => left.bytes.compare(right.bytes)).map(({ group }) => group);
}

/** Answers the path of the merged lines; undefined where there is no DuckDB, or it cannot. */
async function mergedByEngine(
  { scratchDir, engine: size, signal, note }: TaskContext,
  lines: ReceivedLines,
  form: GroupForm,
  path: string,
): Promise<string | undefined> {
  if (!hasDuckDb(size)) {
    note?.('DuckDB is not installed here: groups are merged one by one, which takes longer');
    return undefined;
  }
  try {
    const engine = await Engine.open({ scratchDir, size, signal });
    try {
      await mergeGroupFile(engine, lines, form, path);
    } finally {
      engine.close();
    }
    return path;
  } catch (error) {
    signal.throwIfAborted();
    // No room for what it holds, most likely, or a sum beyond 128 bits: one by one that needs little.
    note?.(`DuckDB could not merge the groups, which are merged one by one: ${firstLineOf(error)}`);
    return undefined;
  }
}

/** One by one: sorted in scratch space. */
async function* sortedGroups(
  { scratchDir, signal }: TaskContext,
  { path }: ReceivedLines,
  form: GroupForm,
  { name, aggregates }: Grouping,
): AsyncGenerator<readonly Group[]> {
  const dir = join(scratchDir, `${name}-sort`);
  await mkdir(dir);
  const combine = combinePartials(aggregates);
  const sort = new ExternalSort({ partitions: 1, memoryBytes: sortBytes, combine, scratchDir: dir, signal });
  for await (const groups of groupsOf([path], form)) {
    for (const { key, partials } of groups) {
      const wait = sort.add(Buffer.from(key), Buffer.from(JSON.stringify(partials)));
      if (wait !== undefined) await wait;
    }
  }
  const writer = await RunWriter.create(join(dir, 'sorted'), 1);
  await sort.finish(writer);
  for await (const batch of recordsOfRun(await writer.finish(), sortBytes))
    yield batch.map(({ key, value }) => ({
      key: key.toString(),
      partials: decodePartials(value, aggregates),
    }));
}

/** Groups of records that are in order of key. */
export class GroupedRecords {
  readonly #records: RecordCursor;
  readonly #aggregates: readonly Aggregate[];

  constructor(records: RecordCursor, aggregates: readonly Aggregate[]) {
    this.#records = records;
    this.#aggregates = aggregates;
  }

  get isDone(): boolean {
    return this.#records.current === undefined;
  }

  /** Whether the next group comes before (negative), with (0) or behind the key, as it does at the end. */
  compareTo(key: Buffer): number {
    return this.#records.current?.key.compare(key) ?? 1;
  }

  merge(into: readonly Partial[], from: readonly Partial[]): void {
    mergeAll(into, from, this.#aggregates);
  }

  async next(): Promise<Group | undefined> {
    const first = this.#records.current;
    if (first === undefined) return undefined;
    const key = Buffer.from(first.key);
    const partials = decodePartials(first.value, this.#aggregates);
    for (;;) {
      const wait = this.#records.advance();
      if (wait !== undefined) await wait;
      const { current } = this.#records;
      if (current?.key.equals(key) !== true) return { key: key.toString(), partials };
      this.merge(partials, decodePartials(current.value, this.#aggregates));
    }
  }
}
