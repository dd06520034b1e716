import { BadInputError } from '../worker/operator.ts';
import type { Operator, Row, TaskContext, TaskInput } from '../worker/operator.ts';
import { forEachRow } from '../worker/row-places.ts';
import { hasDuckDb } from './duckdb/engine.ts';
import { SideFiles } from './duckdb/joined-files.ts';
import { JoinHere, planJoinHere } from './join-here.ts';
import type { RecordForm } from './join-here.ts';
import {
  heldBytesOption,
  joinOutputNames,
  joinOutputOptions,
  joinSideNames,
  joinSideOptions,
  tableBytesOption,
} from './join-options.ts';
import type { JoinSideOptions } from './join-options.ts';
import { PieceCutter, rowOrder } from './join-pieces.ts';
import type { PieceTable } from './join-pieces.ts';
import { JoinedRows, joinKeyOf, keptOf } from './join-rows.ts';
import { addPiece, joinByEngine, packedRows } from './join-side.ts';
import type { FileSide } from './join-side.ts';
import { twoInputs } from './join.ts';
import { onlyOptions } from './options.ts';
import { isPieceKey, RowUnpacker } from './packed-rows.ts';

/**
 * Joins the rows of its first input with the right-hand side that its second input brings whole, by broadcast: up to
 * `maxTableBytes` bytes of keys and rows.
 */
export const joinProbe: Operator = {
  check(options) {
    onlyOptions(options, [...joinSideNames, ...joinOutputNames, 'maxTableBytes', 'maxHeldBytes']);
    joinSideOptions(options);
    joinOutputOptions(options);
    tableBytesOption(options);
    heldBytesOption(options, undefined);
  },
  async run(context) {
    const [leftInput, rightInput] = twoInputs('join-probe', context.inputs);
    const side = joinSideOptions(context.options);
    const table = await readTable(context, rightInput);
    const joined = new JoinedRows(context.output, joinOutputOptions(context.options));
    const columns = await leftColumns(context, leftInput, side);
    const probing = { leftInput, side, columns, table, joined };
    if (await probeHere(context, probing)) return;
    const { isDone, isBegun } = await probeByEngine(context, probing);
    if (isDone) return;
    await fillTable(table);
    await probeRows(context, probing, isBegun);
  },
};

/**
 * The columns of the whole left-hand side, of which each task has a share: those that are kept, else those of the first file
 * of all. Written by the order of its own files, each part would have another. Undefined where nobody can tell, or it does
 * not matter.
 */
async function leftColumns(
  { options }: TaskContext,
  input: TaskInput,
  side: JoinSideOptions,
): Promise<readonly string[] | undefined> {
  if (side.columns !== undefined || joinOutputOptions(options).output !== 'csv') return side.columns;
  const columns = await input.firstColumns?.();
  return columns && rowOrder(columns);
}

/** The right-hand side: rows by key, packed, since as objects they would need several times the memory; and files. */
interface RightTable {
  readonly rows: RowUnpacker;
  readonly byKey: Map<string, Buffer[]>;
  readonly files: SideFiles;
}

async function readTable(context: TaskContext, input: TaskInput): Promise<RightTable> {
  const maxBytes = tableBytesOption(context.options);
  const table: RightTable = {
    rows: new RowUnpacker(),
    byKey: new Map(),
    files: new SideFiles(context.scratchDir, 'right'),
  };
  let bytes = 0;
  try {
    for await (const batch of input.records()) {
      for (const record of batch) {
        const { key, value } = record;
        if (key.length === 0) {
          table.rows.learn(value);
          continue;
        }
        bytes += key.length + value.length;
        if (bytes > maxBytes) {
          throw new BadInputError(
            `the right-hand side is larger than ${String(maxBytes)} bytes: too large to broadcast; shuffle both sides instead ("join-map" and "join-reduce"; on the command line --partitions N without --broadcast)`,
          );
        }
        if (isPieceKey(key)) await addPiece(context, table.files, table.rows, record);
        else addRow(table, key, value);
      }
    }
  } finally {
    await table.files.finish();
  }
  return table;
}

function addRow({ byKey }: RightTable, key: Buffer, value: Buffer): void {
  const name = key.toString();
  const known = byKey.get(name);
  if (known === undefined) byKey.set(name, [Buffer.from(value)]);
  else known.push(Buffer.from(value));
}

/** Takes what lies in files into memory. */
async function fillTable(table: RightTable): Promise<void> {
  for await (const batch of packedRows(table.files.all, table.rows))
    for (const { key, value } of batch) addRow(table, key, value);
}

/** What a task of the broadcast form works on. */
interface Probing {
  readonly leftInput: TaskInput;
  readonly side: JoinSideOptions;
  readonly columns: readonly string[] | undefined;
  readonly table: RightTable;
  readonly joined: JoinedRows;
}

/** Joins CSV by a table in memory, as it is read; false, with nothing read or written, where that cannot be. */
async function probeHere(
  context: TaskContext,
  { leftInput, side, columns: whole, table, joined }: Probing,
): Promise<boolean> {
  const options = joinOutputOptions(context.options);
  const right = table.rows.columns;
  const plan = planJoinHere(context, options, { files: table.files.all, columns: right });
  if (leftInput.csv === undefined || table.byKey.size > 0 || plan === undefined) return false;
  let last: readonly string[] | undefined;
  let here: JoinHere | undefined;
  let form: RecordForm | undefined;
  const begin = async (left: readonly string[]): Promise<JoinHere> => {
    await joined.begin({ left, right }, context.task === 0);
    return JoinHere.open(context, options, left, plan);
  };
  for await (const { bytes, records, columns } of leftInput.csv(side.key, side.columns)) {
    if (records.count === 0) continue;
    here ??= await begin(whole ?? rowOrder(columns));
    if (form === undefined || last !== columns) form = here.formOf(columns, side);
    last = columns;
    await here.join(bytes, records, form);
  }
  if (here === undefined) await joined.begin({ left: whole, right }, context.task === 0);
  else await here.flush();
  return true;
}

/** Whether the rows were joined, and where not, whether the columns of both sides were told. */
async function probeByEngine(
  context: TaskContext,
  probing: Probing,
): Promise<{ readonly isDone: boolean; readonly isBegun: boolean }> {
  const { table, joined } = probing;
  if (table.byKey.size > 0 || !hasDuckDb(context.engine)) return { isDone: false, isBegun: false };
  const left = await leftFiles(context, probing);
  if (left === undefined) return { isDone: false, isBegun: false };
  const right = { files: table.files.all, columns: table.rows.columns };
  await joined.begin({ left: left.columns, right: right.columns }, context.task === 0);
  const sides = { left, right, keepsLeftOrder: true };
  return { isDone: await joinByEngine(context, sides, joinOutputOptions(context.options)), isBegun: true };
}

/** The left-hand side in files; undefined where a row cannot lie in one. */
async function leftFiles(
  { scratchDir }: TaskContext,
  { leftInput: input, side, columns }: Probing,
): Promise<FileSide | undefined> {
  const files = new SideFiles(scratchDir, 'left');
  let first: PieceTable | undefined;
  const cutter = new PieceCutter({
    partitions: 1,
    side,
    begin: (table) => (first ??= table),
    take: (piece) => files.add(piece),
  });
  let areAllCut = true;
  try {
    if (input.csv === undefined) areAllCut = await cutRows(cutter, input, side);
    else for await (const block of input.csv(side.key, side.columns)) await cutter.csv(block);
    await cutter.flush();
  } finally {
    await files.finish();
  }
  const own = input.format === 'csv' ? first?.columns : undefined;
  return areAllCut ? { files: files.all, columns: columns ?? own } : undefined;
}

/** False where one of the rows could not be cut. */
async function cutRows(cutter: PieceCutter, input: TaskInput, side: JoinSideOptions): Promise<boolean> {
  let refused = 0;
  await forEachRow(input, (row) => {
    const key = joinKeyOf(row, side, input.format);
    if (key === undefined || refused > 0) return undefined;
    const wait = cutter.row(keptOf(row, side, input.format), key);
    if (wait !== 'refused') return wait;
    refused++;
    return undefined;
  });
  return refused === 0;
}

async function probeRows(
  { task }: TaskContext,
  { leftInput, side, columns, table, joined }: Probing,
  wasBegun: boolean,
): Promise<void> {
  const { rows, byKey } = table;
  const right = rows.columns;
  let isBegun = wasBegun;
  if (!isBegun && columns !== undefined) {
    isBegun = true;
    await joined.begin({ left: columns, right }, task === 0);
  }
  const pairAll = async (left: Row, key: string, matches: readonly Buffer[]): Promise<void> => {
    const keyBytes = Buffer.from(key);
    for (const match of matches) {
      const wait = joined.pair(left, rows.unpack(match, keyBytes));
      if (wait !== undefined) await wait;
    }
  };
  const probe = (row: Row): Promise<void> | undefined => {
    const key = joinKeyOf(row, side, leftInput.format);
    if (key === undefined) return undefined;
    // Also of a row that matches nothing: whether a column is missing must not hang on what else there is.
    const kept = keptOf(row, side, leftInput.format);
    const matches = byKey.get(key);
    return matches === undefined ? undefined : pairAll(kept, key, matches);
  };
  await forEachRow(leftInput, (row) => {
    if (isBegun) return probe(row);
    isBegun = true;
    const left = leftInput.format === 'csv' ? Object.keys(row) : undefined;
    return joined.begin({ left, right }, task === 0).then(() => probe(row));
  });
}
