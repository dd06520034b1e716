import { stat } from 'node:fs/promises';
import { recordsInKeyOrder } from '../worker/merged-inputs.ts';
import { BadRecordError } from '../worker/operator.ts';
import type { Operator, Row, TaskContext, TaskOutput } from '../worker/operator.ts';
import { partitionOf } from '../worker/partition-of.ts';
import { RecordCursor } from '../worker/record-cursor.ts';
import { forEachRow } from '../worker/row-places.ts';
import { addValue, checkValue, noValues } from './aggregates.ts';
import type { Partial } from './aggregates.ts';
import { aggregateByEngine } from './duckdb/aggregate.ts';
import { firstLineOf, hasDuckDb } from './duckdb/engine.ts';
import { groupForm, groupOfLine, groupsOf, wholeLines } from './group-lines.ts';
import type { Group, GroupForm } from './group-lines.ts';
import { combinePartials } from './group-partials.ts';
import { GroupCutter } from './group-pieces.ts';
import { GroupWriter } from './group-writer.ts';
import {
  groupbyMapNames,
  groupbyOptions,
  heldGroupsOption,
  rowOutputNames,
  rowOutputOptions,
} from './groupby-options.ts';
import type { Aggregate, GroupbyOptions } from './groupby-options.ts';
import { keptNumbers } from './kept-state.ts';
import { GroupsHere } from './groups-here.ts';
import { pieceKey } from './packed-rows.ts';
import { GroupedRecords, readPieces } from './received-groups.ts';
import { cellOf } from './rows.ts';

/** Groups that a task holds before it emits them; what comes later is a group anew, and combined downstream. */
const maxGroups = 50_000;
const maxKeyBytes = 16 * 1024 * 1024;
/**
 * Where a task reads less, the engine is not loaded for it: that takes 135 ms of CPU, more than it saves. Row by row a core groups
 * 17 MB/s of CSV and 31 of NDJSON, by the engine some 67 of either.
 */
const leastEngineInput = 3 * 1024 * 1024;
const leastEngineJson = 8 * 1024 * 1024;
/** Groups of up to so many bytes, some thousands, travel one by one: whoever merges them needs no engine then. */
const fewGroupsBytes = 256 * 1024;

/**
 * Groups rows by the columns of `key` and emits (JSON list of the key's values, JSON of the partial aggregates); of many groups
 * it emits pieces of lines instead. Equal are keys of equal JSON: null is a group of its own, and 1 is not "1".
 */
export const groupbyMap: Operator = {
  resumes: true,
  check(options) {
    groupbyOptions(options, groupbyMapNames);
    heldGroupsOption(options);
  },
  combiner(options) {
    return combinePartials(groupbyOptions(options, groupbyMapNames).aggregates);
  },
  async run(context) {
    const options = groupbyOptions(context.options, groupbyMapNames);
    const here = fewGroups(context, options);
    const isEngine = hasDuckDb(context.engine) && isEnough(context);
    const files = isEngine
      ? await groupByEngine(context, options, here)
      : here !== undefined && (await areAllTaken(context, here))
        ? []
        : undefined;
    if (files === undefined) {
      await groupRows(context, options);
      return;
    }
    try {
      for (const group of here?.groups() ?? []) await emitGroup(context.output, context.partitions, group);
      await sendGroups(context, files, groupForm(options.aggregates));
    } catch (error) {
      context.signal.throwIfAborted();
      // Row by row a bad value is found with its place.
      if (error instanceof BadRecordError) await groupRows(context, options);
      throw error;
    }
  },
};

/** What groups CSV as long as groups are few; undefined where rows must be grouped one by one, or there is other than CSV. */
function fewGroups(
  { inputs, engine, options: given }: TaskContext,
  options: GroupbyOptions,
): GroupsHere | undefined {
  const isOther = inputs.some((input) => input.csv === undefined || input.onBadValue !== undefined);
  const most = engine?.memoryBytes === 0 ? 0 : heldGroupsOption(given);
  return isOther || most === 0 ? undefined : new GroupsHere(options, most);
}

/** False where groups are many, or some cannot be grouped so. */
async function areAllTaken({ inputs, signal }: TaskContext, here: GroupsHere): Promise<boolean> {
  try {
    for (const input of inputs)
      for await (const block of input.csv?.() ?? []) {
        signal.throwIfAborted();
        if (here.take(block) < block.records.count) return false;
      }
    return true;
  } catch (error) {
    signal.throwIfAborted();
    // It is found again, with its place.
    if (error instanceof BadRecordError) return false;
    throw error;
  }
}

/** Files of groups as lines; undefined where rows must be grouped one by one, of which nothing was emitted. */
async function groupByEngine(
  context: TaskContext,
  options: GroupbyOptions,
  here: GroupsHere | undefined,
): Promise<readonly string[] | undefined> {
  const { inputs, signal, note } = context;
  // Rows with bad values are left out one by one, and counted once.
  const isSkipping = inputs.some(({ onBadValue }) => onBadValue !== undefined);
  if (isSkipping) return undefined;
  try {
    return await aggregateByEngine(context, options, here);
  } catch (error) {
    signal.throwIfAborted();
    // A bad record is found again, and anything else is what DuckDB cannot hold or sum.
    if (!(error instanceof BadRecordError)) {
      note?.(`DuckDB could not group the rows, which are grouped one by one: ${firstLineOf(error)}`);
    }
    return undefined;
  }
}

/** Whether the input is worth an engine; where its size is not known it is. */
function isEnough({ inputs }: TaskContext): boolean {
  const least = inputs.every(({ format }) => format === 'ndjson') ? leastEngineJson : leastEngineInput;
  let bytes = 0;
  for (const { objects } of inputs) {
    if (objects === undefined) return true;
    for (const { start, end, isPacked } of objects) bytes += (isPacked ? unpacksTo : 1) * (end - start);
  }
  return bytes >= least;
}

/** About how many times as large text is as when it is compressed. */
const unpacksTo = 5;

async function sendGroups(
  { output, partitions, task, tally, kept, keep }: TaskContext,
  files: readonly string[],
  form: GroupForm,
): Promise<void> {
  // No two pieces of a task have one key, or they would be taken for partials of one group.
  let pieces = piecesBefore(kept);
  let sizeBytes = 0;
  for (const path of files) sizeBytes += (await stat(path)).size;
  const emit = (group: Group): Promise<void> | undefined => emitGroup(output, partitions, group);
  if (sizeBytes <= fewGroupsBytes) {
    for await (const groups of groupsOf(files, form)) for (const group of groups) await emit(group);
    keep?.({ pieces });
    return;
  }
  const cutter = new GroupCutter(partitions, form, {
    piece: (partition, lines, rows) => {
      tally?.({ out: rows - 1 });
      const key = pieceKey({ task, schema: 0, number: pieces++, rows, isPlain: true });
      return output.emit(key, lines, partition);
    },
    odd: (line) => emit(groupOfLine(line.toString('utf8', 0, line.length - 1), form)),
  });
  for await (const lines of wholeLines(files)) await cutter.add(lines);
  await cutter.flush();
  keep?.({ pieces });
}

/** With its partition, which is that of the lines of its key in pieces. */
function emitGroup(
  output: TaskOutput,
  partitions: number,
  { key, partials }: Group,
): Promise<void> | undefined {
  const bytes = Buffer.from(key);
  return output.emit(bytes, Buffer.from(JSON.stringify(partials)), partitionOf(bytes, partitions));
}

/** Row by row: of little input, and of what needs a closer look. */
async function groupRows(
  { inputs, output, partitions, kept, keep }: TaskContext,
  { key, aggregates }: GroupbyOptions,
): Promise<void> {
  const groups = new Map<string, Partial[]>();
  let keyBytes = 0;
  const flush = async (): Promise<void> => {
    for (const [group, partials] of groups) {
      const wait = emitGroup(output, partitions, { key: group, partials });
      if (wait !== undefined) await wait;
    }
    groups.clear();
    keyBytes = 0;
  };
  for (const input of inputs) {
    await forEachRow(input, (row) => {
      // A row that is left out must not be counted in half.
      if (input.onBadValue !== undefined) checkRow(aggregates, row, input.format);
      const group = JSON.stringify(key.map((column) => cellOf(row, column, input.format) ?? null));
      let partials = groups.get(group);
      if (partials === undefined) {
        partials = aggregates.map(noValues);
        groups.set(group, partials);
        keyBytes += 2 * group.length;
      }
      addRow(partials, aggregates, row, input.format);
      return groups.size >= maxGroups || keyBytes > maxKeyBytes ? flush() : undefined;
    });
  }
  await flush();
  keep?.({ pieces: piecesBefore(kept) });
}

/** Pieces that an attempt has sent whose work this one takes up. */
const piecesBefore = (kept: unknown): number => keptNumbers(kept, 'pieces')[0] ?? 0;

function checkRow(aggregates: readonly Aggregate[], row: Row, format: string): void {
  for (const { op, column } of aggregates)
    if (column !== undefined) checkValue(op, cellOf(row, column, format), column);
}

function addRow(
  partials: readonly Partial[],
  aggregates: readonly Aggregate[],
  row: Row,
  format: string,
): void {
  aggregates.forEach(({ op, column }, at) => {
    const partial = partials[at];
    if (partial === undefined) return;
    if (column === undefined) {
      partial.count++;
      return;
    }
    const cell = cellOf(row, column, format);
    // CSV cannot say NULL but by an empty field.
    addValue(partial, op, format === 'csv' && cell === '' ? null : cell, column);
  });
}

/**
 * Merges the partial aggregates of each key, over all inputs, and writes a row for each: the key's columns, then the aggregates.
 * Rows are in byte order of the key's JSON. CSV has a header in the first part only, so that the parts laid end
 * to end are one CSV file.
 */
export const groupbyReduce: Operator = {
  check(options) {
    groupbyOptions(options, rowOutputNames);
    rowOutputOptions(options);
  },
  async run(context) {
    const { output, options, task } = context;
    const grouping = groupbyOptions(options, rowOutputNames);
    const form = rowOutputOptions(options);
    const writer = new GroupWriter(output, grouping, form);
    if (form.output === 'csv' && form.header && task === 0) await writer.header();
    await mergeInputs(context, writer);
    await writer.flush();
  },
};

/** Groups come in pieces, one by one, or both: pieces before all others, of whichever input. */
async function mergeInputs(context: TaskContext, writer: GroupWriter): Promise<void> {
  const { aggregates } = groupbyOptions(context.options, rowOutputNames);
  const rest = await RecordCursor.open(recordsInKeyOrder(context.inputs));
  try {
    const pieces = await readPieces(context, rest, { name: 'groups', aggregates });
    const others = new GroupedRecords(rest, aggregates);
    for await (const groups of pieces) {
      for (const group of groups) {
        const wait = others.isDone ? undefined : writeBefore(others, group, writer);
        if (wait !== undefined) await wait;
        const written = writer.write(group);
        if (written !== undefined) await written;
      }
    }
    for (let group = await others.next(); group !== undefined; group = await others.next())
      await writer.write(group);
  } finally {
    await rest.close();
  }
}

/** Writes the groups of records that come before a group, which takes in those of its own key. */
async function writeBefore(others: GroupedRecords, group: Group, writer: GroupWriter): Promise<void> {
  const key = Buffer.from(group.key);
  for (let order = others.compareTo(key); order <= 0; order = others.compareTo(key)) {
    const other = await others.next();
    if (other === undefined) return;
    if (order === 0) others.merge(group.partials, other.partials);
    else await writer.write(other);
  }
}
