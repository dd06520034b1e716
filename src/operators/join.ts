import { InvalidInputError } from '../contracts/errors.ts';
import type { Operator, Row, TaskContext, TaskInput } from '../worker/operator.ts';
import { eachOfKey } from '../worker/record-cursor.ts';
import type { RecordCursor } from '../worker/record-cursor.ts';
import { RightGroup } from './join-group.ts';
import { groupBytesOption, heldBytesOption, joinOutputNames, joinOutputOptions } from './join-options.ts';
import type { JoinOutputOptions } from './join-options.ts';
import { JoinedRows, schemaKey } from './join-rows.ts';
import { joinByEngine, readSide, sortedRows } from './join-side.ts';
import { isCsvOf, JoinHere, planJoinHere } from './join-here.ts';
import type { FileSide, Side } from './join-side.ts';
import { onlyOptions } from './options.ts';
import type { RowUnpacker } from './packed-rows.ts';

/**
 * Joins the rows of two sides with equal keys: the left-hand side comes first, then the right-hand side. Their order means
 * nothing.
 */
export const joinReduce: Operator = {
  check(options) {
    onlyOptions(options, [...joinOutputNames, 'maxGroupBytes', 'maxHeldBytes']);
    joinOutputOptions(options);
    groupBytesOption(options);
    heldBytesOption(options, undefined);
  },
  async run(context) {
    const { inputs, output, options, task } = context;
    const [leftInput, rightInput] = twoInputs('join-reduce', inputs);
    const form = joinOutputOptions(options);
    const joined = new JoinedRows(output, form);
    const left = await readSide(context, leftInput, 'left');
    let right: Side | undefined;
    try {
      right = await readSide(context, rightInput, 'right');
      const columns = { left: left.rows.columns, right: right.rows.columns };
      await joined.begin(columns, task === 0);
      const areFiles = left.rest.current === undefined && right.rest.current === undefined;
      const sides = {
        left: { files: left.files, columns: columns.left },
        right: { files: right.files, columns: columns.right },
        keepsLeftOrder: false,
      };
      if (areFiles && (await joinHere(context, sides, form))) return;
      if (areFiles && (await joinByEngine(context, sides, form))) return;
      await joinSorted(context, { left, right, joined });
    } finally {
      await left.rest.close();
      await right?.rest.close();
    }
  },
};

/** Joins files by a table in memory; false, with nothing written, where that cannot be. */
async function joinHere(
  context: TaskContext,
  { left, right }: { readonly left: FileSide; readonly right: FileSide },
  options: JoinOutputOptions,
): Promise<boolean> {
  const plan = planJoinHere(context, options, right);
  const known = left.columns;
  if (plan === undefined || known === undefined || !left.files.every((file) => isCsvOf(file, known)))
    return false;
  const here = await JoinHere.open(context, options, known, plan);
  for (const file of left.files) await here.joinFile(file);
  await here.flush();
  return true;
}

/** Joins side by side, row by row. */
async function joinSorted(
  context: TaskContext,
  { left, right, joined }: { left: Side; right: Side; joined: JoinedRows },
): Promise<void> {
  const maxBytes = groupBytesOption(context.options);
  const { scratchDir } = context;
  const lefts = await sortedRows(context, left);
  let rights: RecordCursor | undefined;
  try {
    rights = await sortedRows(context, right);
    const rows = { left: left.rows, right: right.rows };
    while (lefts.current !== undefined && rights.current !== undefined) {
      const order = lefts.current.key.compare(rights.current.key);
      if (order < 0) await lefts.advance();
      else if (order > 0) await rights.advance();
      else await joinGroup({ left: lefts, right: rights, rows, joined, scratchDir, maxBytes });
    }
  } finally {
    await lefts.close();
    await rights?.close();
  }
}

/** Joins the rows of the key at which both cursors stand, and moves both past it. */
async function joinGroup(at: {
  left: RecordCursor;
  right: RecordCursor;
  rows: { left: RowUnpacker; right: RowUnpacker };
  joined: JoinedRows;
  scratchDir: string;
  maxBytes: number;
}): Promise<void> {
  const { left, right, rows, joined, scratchDir, maxBytes } = at;
  const key = Buffer.from(left.current?.key ?? schemaKey);
  const group = new RightGroup({ scratchDir, maxBytes, unpack: (bytes) => rows.right.unpack(bytes, key) });
  const pair = (one: Row, other: Row): Promise<void> | undefined => joined.pair(one, other);
  try {
    await eachOfKey(right, key, ({ value }) => group.add(value));
    let lefts: Row[] = [];
    let leftBytes = 0;
    await eachOfKey(left, key, ({ value }) => {
      lefts.push(rows.left.unpack(value, key));
      leftBytes += value.length;
      if (leftBytes < maxBytes) return undefined;
      const full = lefts;
      lefts = [];
      leftBytes = 0;
      return group.pairWith(full, pair);
    });
    await group.pairWith(lefts, pair);
  } finally {
    await group.close();
  }
}

/** The two inputs of a join. */
export function twoInputs(name: string, inputs: readonly TaskInput[]): [left: TaskInput, right: TaskInput] {
  const [left, right] = inputs;
  if (left === undefined || right === undefined || inputs.length !== 2) {
    throw new InvalidInputError(`${name} needs two inputs: the left-hand side, then the right-hand side`, {
      field: 'inputs',
    });
  }
  return [left, right];
}
