import { InvalidInputError } from '../contracts/errors.ts';
import { BadInputError, BadRecordError } from '../worker/operator.ts';
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
import { JoinedRows, decodeRow, joinKeyOf, keptOf, schemaKey } from './join-rows.ts';
import { onlyOptions } from './options.ts';
import { RecordCursor } from './record-cursor.ts';

/**
 * One side of a join: emits (JSON of the key, JSON of the row). Rows whose key is null are left out, since they
 * match nothing. Each partition also gets the columns, where they are known, so that CSV can be written.
 */
export const joinMap: Operator = {
  check(options) {
    onlyOptions(options, joinSideNames);
    joinSideOptions(options);
  },
  async run({ inputs, output, options, partitions }) {
    const side = joinSideOptions(options);
    const announce = async (columns: readonly string[]): Promise<void> => {
      const value = Buffer.from(JSON.stringify(columns));
      for (let partition = 0; partition < partitions; partition++)
        await output.emit(schemaKey, value, partition);
    };
    let isAnnounced = side.columns !== undefined;
    if (side.columns !== undefined) await announce(side.columns);
    for (const input of inputs) {
      const emit = (row: Row): Promise<void> | undefined => {
        const key = joinKeyOf(row, side, input.format);
        if (key === undefined) return undefined;
        const value = JSON.stringify(keptOf(row, side, input.format));
        return output.emit(Buffer.from(key), Buffer.from(value));
      };
      await forEachRow(input, (row) => {
        if (isAnnounced || input.format !== 'csv') return emit(row);
        isAnnounced = true;
        return announce(Object.keys(row)).then(() => emit(row));
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
      await joined.begin({ left: await schemaOf(left), right: await schemaOf(right) }, task === 0);
      while (left.current !== undefined && right.current !== undefined) {
        const order = left.current.key.compare(right.current.key);
        if (order < 0) await left.advance();
        else if (order > 0) await right.advance();
        else await joinGroup({ left, right, joined, scratchDir, maxBytes });
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
  joined: JoinedRows;
  scratchDir: string;
  maxBytes: number;
}): Promise<void> {
  const { left, right, joined, scratchDir, maxBytes } = at;
  const key = Buffer.from(left.current?.key ?? schemaKey);
  const group = new RightGroup({ scratchDir, maxBytes });
  const pair = (one: Row, other: Row): Promise<void> | undefined => joined.pair(one, other);
  try {
    await eachOfKey(right, key, ({ value }) => group.add(value));
    let lefts: Row[] = [];
    let leftBytes = 0;
    await eachOfKey(left, key, ({ value }) => {
      lefts.push(decodeRow(value));
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

/** The columns that a side announced, undefined where it did not; moves past the announcements. */
async function schemaOf(cursor: RecordCursor): Promise<readonly string[] | undefined> {
  let columns: readonly string[] | undefined;
  await eachOfKey(cursor, schemaKey, ({ value }) => {
    columns ??= decodeColumns(value);
    return undefined;
  });
  return columns;
}

function decodeColumns(value: Buffer): string[] {
  const columns: unknown = JSON.parse(value.toString());
  if (!Array.isArray(columns)) throw new BadRecordError('a join reads the output of join-map');
  return columns.map(String);
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
    const { rows: table, columns: right } = await readTable(rightInput, tableBytesOption(options));
    let isBegun = side.columns !== undefined;
    if (isBegun) await joined.begin({ left: side.columns, right }, task === 0);
    const pairAll = async (row: Row, matches: readonly Buffer[]): Promise<void> => {
      const left = keptOf(row, side, leftInput.format);
      for (const match of matches) {
        const wait = joined.pair(left, decodeRow(match));
        if (wait !== undefined) await wait;
      }
    };
    const probe = (row: Row): Promise<void> | undefined => {
      const key = joinKeyOf(row, side, leftInput.format);
      const matches = key === undefined ? undefined : table.get(key);
      return matches === undefined ? undefined : pairAll(row, matches);
    };
    await forEachRow(leftInput, (row) => {
      if (isBegun) return probe(row);
      isBegun = true;
      const left = leftInput.format === 'csv' ? Object.keys(row) : undefined;
      return joined.begin({ left, right }, task === 0).then(() => probe(row));
    });
  },
};

/** The rows by key, as JSON: parsed they would need several times the memory. */
async function readTable(
  input: TaskInput,
  maxBytes: number,
): Promise<{ rows: Map<string, Buffer[]>; columns: readonly string[] | undefined }> {
  const rows = new Map<string, Buffer[]>();
  let columns: readonly string[] | undefined;
  let bytes = 0;
  for await (const batch of input.records()) {
    for (const { key, value } of batch) {
      if (key.length === 0) {
        columns ??= decodeColumns(value);
        continue;
      }
      bytes += key.length + value.length;
      if (bytes > maxBytes) {
        throw new BadInputError(
          `the right-hand side is larger than ${String(maxBytes)} bytes: too large to broadcast; use the shuffle form`,
        );
      }
      const name = key.toString();
      const known = rows.get(name);
      if (known === undefined) rows.set(name, [Buffer.from(value)]);
      else known.push(Buffer.from(value));
    }
  }
  return { rows, columns };
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
