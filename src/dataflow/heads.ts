import { isUtf8 } from 'node:buffer';
import { invalidUtf8Lines } from '../contracts/own-counters.ts';
import { BadInputError } from '../worker/operator.ts';
import type { TaskInput } from '../worker/operator.ts';
import type { Head } from './compile.ts';
import { folding } from './folding.ts';
import type { JoinNode, SourceNode, TopNode } from './graph.ts';
import { decodeKey } from './key-codec.ts';
import { eachOfKey, RecordCursor } from '../worker/record-cursor.ts';
import { TopRecords } from './tails.ts';
import type { TaskView } from './task-view.ts';
import { decodeValue, keptValue, ownOf } from './value-codec.ts';

/** Takes one record; a promise where the next one must wait. */
export type Take = (record: unknown) => Promise<void> | undefined;

const newline = 0x0a;
const carriageReturn = 0x0d;

/** Hands all records of a stage's head to `take`, one after the other. */
export function readHead(
  head: Head,
  inputs: readonly TaskInput[],
  view: TaskView,
  take: Take,
): Promise<void> {
  const [first, second] = inputs;
  if (first === undefined) throw new BadInputError('a stage of a job has an input');
  switch (head.kind) {
    case 'source':
      return head.node.format === 'text'
        ? readLines(first, view, take)
        : readRows(head.node, first, view, take);
    case 'records':
      return readRecords(first, view, take);
    case 'fold':
      return readFolded(head, first, view, take);
    case 'group':
      return readGroups(first, view, take);
    case 'join':
      if (second === undefined) throw new BadInputError('a join has two inputs');
      return readJoined(head.node, [first, second], view, take);
    case 'topped':
      return readTopped(head.node, first, view, take);
  }
}

async function readLines(input: TaskInput, view: TaskView, take: Take): Promise<void> {
  for await (const { bytes, file, offset } of input.blocks()) {
    view.inFile(0, file, offset);
    const isText = isUtf8(bytes);
    // A byte order mark is not the first line's.
    let start = offset === 0 && bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0;
    while (start < bytes.length) {
      const found = bytes.indexOf(newline, start);
      const end = found < 0 ? bytes.length : found;
      // Lines of Windows end by "\r\n", as they do in CSV and NDJSON.
      const hasReturn = found > start && bytes[found - 1] === carriageReturn;
      view.at(offset + start);
      if (!isText && !isUtf8(bytes.subarray(start, end))) view.count(invalidUtf8Lines);
      const wait = take(bytes.toString('utf8', start, hasReturn ? end - 1 : end));
      if (wait !== undefined) await wait;
      start = end + 1;
    }
  }
}

async function readRows(node: SourceNode, input: TaskInput, view: TaskView, take: Take): Promise<void> {
  if (input.located === undefined) throw new BadInputError('rows come from files');
  let checkedFile: string | undefined;
  for await (const { rows, file, offsets } of input.located()) {
    view.inFile(0, file, offsets[0] ?? 0);
    const [row] = rows;
    if (file !== checkedFile && row !== undefined && node.format === 'csv') checkColumns(node, file, row);
    checkedFile = file;
    for (let index = 0; index < rows.length; index++) {
      view.at(offsets[index] ?? 0);
      const wait = take(rows[index]);
      if (wait !== undefined) await wait;
    }
  }
}

/** Columns that a job names are there, or it would read `undefined` without a word. */
function checkColumns({ columns }: SourceNode, file: string, row: object): void {
  const missing = columns.find((column) => !Object.hasOwn(row, column));
  if (missing === undefined) return;
  const has = Object.keys(row).join(', ');
  throw new BadInputError(`${file} has no column ${JSON.stringify(missing)}: its columns are ${has}`);
}

async function readRecords(input: TaskInput, view: TaskView, take: Take): Promise<void> {
  for await (const batch of input.records()) {
    for (const { value } of batch) {
      view.ofStage(0, undefined);
      const wait = take(decodeValue(value));
      if (wait !== undefined) await wait;
    }
  }
}

/** Calls `begin` and `add` for the records of each key, which come one after the other, and `end` after its last. */
async function eachGroup<Group>(
  input: TaskInput,
  view: TaskView,
  on: {
    begin(value: unknown): Group;
    add(group: Group, value: unknown): Group;
    end(key: Buffer, group: Group): Promise<void> | undefined;
  },
): Promise<void> {
  let open: { readonly key: Buffer; group: Group } | undefined;
  for await (const batch of input.records()) {
    for (const { key, value } of batch) {
      if (open !== undefined && open.key.equals(key)) {
        open.group = on.add(open.group, decodeValue(value));
        continue;
      }
      if (open !== undefined) {
        const wait = on.end(open.key, open.group);
        if (wait !== undefined) await wait;
      }
      // The batch's memory is used again.
      const own = Buffer.from(key);
      view.ofStage(0, own);
      open = { key: own, group: on.begin(decodeValue(value)) };
    }
  }
  if (open !== undefined) await on.end(open.key, open.group);
}

function readFolded(
  { node }: Extract<Head, { kind: 'fold' }>,
  input: TaskInput,
  view: TaskView,
  take: Take,
): Promise<void> {
  const { begin, add, merge } = folding(node, view);
  const end = (key: Buffer, sum: unknown): Promise<void> | undefined => take([decodeKey(key), sum]);
  // What comes are sums already where they can be put together, else values.
  return eachGroup<unknown>(
    input,
    view,
    merge === undefined ? { begin, add, end } : { begin: (sum) => sum, add: merge, end },
  );
}

const readGroups = (input: TaskInput, view: TaskView, take: Take): Promise<void> =>
  eachGroup<unknown[]>(input, view, {
    begin: (value) => [value],
    add: (group, value) => {
      group.push(value);
      return group;
    },
    end: (key, group) => take([decodeKey(key), group]),
  });

async function readJoined(
  { how }: JoinNode,
  [leftInput, rightInput]: readonly [TaskInput, TaskInput],
  view: TaskView,
  take: Take,
): Promise<void> {
  const left = await RecordCursor.open(leftInput.records());
  const right = await RecordCursor.open(rightInput.records());
  try {
    while (left.current !== undefined) {
      const key = Buffer.from(left.current.key);
      view.ofStage(0, key);
      while (right.current !== undefined && right.current.key.compare(key) < 0) await right.advance();
      const partners: unknown[] = [];
      await eachOfKey(right, key, ({ value }) => {
        partners.push(keptValue(value));
        return undefined;
      });
      if (partners.length === 0 && how === 'left') partners.push(undefined);
      await eachOfKey(left, key, ({ value }) => pairs([decodeKey(key), keptValue(value)], partners, take));
    }
  } finally {
    await left.close();
    await right.close();
  }
}

/** Each pair has values of its own: functions may change what they are given. Partners are wanted again, for the next record. */
function pairs(
  [key, left]: readonly [key: unknown, left: unknown],
  partners: readonly unknown[],
  take: Take,
  from = 0,
): Promise<void> | undefined {
  for (let at = from; at < partners.length; at++) {
    const isLast = at === partners.length - 1;
    const wait = take([ownOf(key, isLast), [ownOf(left, isLast), ownOf(partners[at])]]);
    if (wait !== undefined) return wait.then(() => pairs([key, left], partners, take, at + 1));
  }
  return undefined;
}

async function readTopped(node: TopNode, input: TaskInput, view: TaskView, take: Take): Promise<void> {
  const top = new TopRecords(node, view);
  for await (const batch of input.records()) for (const { value } of batch) top.add(decodeValue(value));
  for (const record of top.take()) {
    const wait = take(record);
    if (wait !== undefined) await wait;
  }
}
