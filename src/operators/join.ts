import { InvalidInputError } from '../contracts/errors.ts';
import { BadInputError } from '../worker/operator.ts';
import type { KeyValue, Operator, Row, TaskInput } from '../worker/operator.ts';
import { forEachRow } from '../worker/row-places.ts';
import { RightGroup } from './join-group.ts';
import {
  groupBytesOption,
  joinOutputNames,
  joinOutputOptions,
  joinSideNames,
  joinSideOptions,
  tableBytesOption,
} from './join-options.ts';
import { JoinedRows, joinKeyOf, keptOf, schemaKey } from './join-rows.ts';
import { onlyOptions } from './options.ts';
import { RowPacker, RowUnpacker } from './packed-rows.ts';
import { RecordCursor } from './record-cursor.ts';

/**
 * One side of a join: emits (JSON of the key, the row as `RowPacker` packs it). Rows whose key is null are left out,
 * since they match nothing. Each partition also gets the columns of the rows, before them by their empty key; where
 * they are those of the whole side, CSV can be written.
 */
export const joinMap: Operator = {
  check(options) {
    onlyOptions(options, joinSideNames);
    joinSideOptions(options);
  },
  async run({ inputs, output, options, partitions, task }) {
    const side = joinSideOptions(options);
    const packer = new RowPacker({ task, ...side });
    const announce = async (said: Buffer): Promise<void> => {
      for (let partition = 0; partition < partitions; partition++)
        await output.emit(schemaKey, said, partition);
    };
    let isKnown = false;
    const announced = (columns: readonly string[], isWhole: boolean): Promise<void> | undefined => {
      const said = packer.announce(columns, isWhole && !isKnown);
      isKnown ||= isWhole;
      return said === undefined ? undefined : announce(said);
    };
    if (side.columns !== undefined) await announced(side.columns, true);
    for (const input of inputs) {
      await forEachRow(input, (row) => {
        const isWhole = side.columns === undefined && input.format === 'csv';
        // Also of a row that is left out: the columns of a side are known by its first one.
        const first = isWhole && !isKnown ? announced(Object.keys(row), true) : undefined;
        const key = joinKeyOf(row, side, input.format);
        if (key === undefined) return first;
        const kept = keptOf(row, side, input.format);
        const said = first ?? announced(Object.keys(kept), false);
        const emit = (): Promise<void> | undefined => output.emit(Buffer.from(key), packer.pack(kept));
        return said === undefined ? emit() : said.then(emit);
      });
    }
  },
};

/** Joins two inputs that come in order of key: the left-hand side first, then the right-hand side. */
export const joinReduce: Operator = {
  check(options) {
    onlyOptions(options, [...joinOutputNames, 'maxGroupBytes']);
    joinOutputOptions(options);
    groupBytesOption(options);
  },
  async run({ inputs, output, options, scratchDir, task }) {
    const [leftInput, rightInput] = twoInputs('join-reduce', inputs);
    const maxBytes = groupBytesOption(options);
    const joined = new JoinedRows(output, joinOutputOptions(options));
    const left = await RecordCursor.open(leftInput.records());
    const right = await RecordCursor.open(rightInput.records());
    try {
      const rows = { left: await schemasOf(left), right: await schemasOf(right) };
      await joined.begin({ left: rows.left.columns, right: rows.right.columns }, task === 0);
      while (left.current !== undefined && right.current !== undefined) {
        const order = left.current.key.compare(right.current.key);
        if (order < 0) await left.advance();
        else if (order > 0) await right.advance();
        else await joinGroup({ left, right, rows, joined, scratchDir, maxBytes });
      }
    } finally {
      await left.close();
      await right.close();
    }
  },
};

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

async function eachOfKey(
  cursor: RecordCursor,
  key: Buffer,
  visit: (record: KeyValue) => Promise<void> | undefined,
): Promise<void> {
  while (cursor.current?.key.equals(key) === true) {
    const wait = visit(cursor.current);
    if (wait !== undefined) await wait;
    const move = cursor.advance();
    if (move !== undefined) await move;
  }
}

/** What the tasks of a side say of their columns; moves past it. */
async function schemasOf(cursor: RecordCursor): Promise<RowUnpacker> {
  const rows = new RowUnpacker();
  await eachOfKey(cursor, schemaKey, ({ value }) => {
    rows.learn(value);
    return undefined;
  });
  return rows;
}

/**
 * Joins the rows of its first input with the right-hand side that its second input brings whole, by broadcast.
 * The right-hand side is held in memory: up to `maxTableBytes` bytes of keys and rows.
 */
export const joinProbe: Operator = {
  check(options) {
    onlyOptions(options, [...joinSideNames, ...joinOutputNames, 'maxTableBytes']);
    joinSideOptions(options);
    joinOutputOptions(options);
    tableBytesOption(options);
  },
  async run({ inputs, output, options, task }) {
    const [leftInput, rightInput] = twoInputs('join-probe', inputs);
    const side = joinSideOptions(options);
    const joined = new JoinedRows(output, joinOutputOptions(options));
    const { rows, table } = await readTable(rightInput, tableBytesOption(options));
    const right = rows.columns;
    let isBegun = side.columns !== undefined;
    if (isBegun) await joined.begin({ left: side.columns, right }, task === 0);
    const pairAll = async (row: Row, key: string, matches: readonly Buffer[]): Promise<void> => {
      const left = keptOf(row, side, leftInput.format);
      const keyBytes = Buffer.from(key);
      for (const match of matches) {
        const wait = joined.pair(left, rows.unpack(match, keyBytes));
        if (wait !== undefined) await wait;
      }
    };
    const probe = (row: Row): Promise<void> | undefined => {
      const key = joinKeyOf(row, side, leftInput.format);
      if (key === undefined) return undefined;
      const matches = table.get(key);
      return matches === undefined ? undefined : pairAll(row, key, matches);
    };
    await forEachRow(leftInput, (row) => {
      if (isBegun) return probe(row);
      isBegun = true;
      const left = leftInput.format === 'csv' ? Object.keys(row) : undefined;
      return joined.begin({ left, right }, task === 0).then(() => probe(row));
    });
  },
};

/** The rows by key, packed: as objects they would need several times the memory. */
async function readTable(
  input: TaskInput,
  maxBytes: number,
): Promise<{ rows: RowUnpacker; table: Map<string, Buffer[]> }> {
  const rows = new RowUnpacker();
  const table = new Map<string, Buffer[]>();
  let bytes = 0;
  for await (const batch of input.records()) {
    for (const { key, value } of batch) {
      if (key.length === 0) {
        rows.learn(value);
        continue;
      }
      bytes += key.length + value.length;
      if (bytes > maxBytes) {
        throw new BadInputError(
          `the right-hand side is larger than ${String(maxBytes)} bytes: too large to broadcast; use the shuffle form`,
        );
      }
      const name = key.toString();
      const known = table.get(name);
      if (known === undefined) table.set(name, [Buffer.from(value)]);
      else known.push(Buffer.from(value));
    }
  }
  return { rows, table };
}

function twoInputs(name: string, inputs: readonly TaskInput[]): [left: TaskInput, right: TaskInput] {
  const [left, right] = inputs;
  if (left === undefined || right === undefined || inputs.length !== 2) {
    throw new InvalidInputError(`${name} needs two inputs: the left-hand side, then the right-hand side`, {
      field: 'inputs',
    });
  }
  return [left, right];
}
