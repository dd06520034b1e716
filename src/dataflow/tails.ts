import { halfCharacterRecords } from '../contracts/own-counters.ts';
import type { TaskOutput } from '../worker/operator.ts';
import { UserCodeError } from '../worker/operator.ts';
import { Heap } from '../lib/heap.ts';
import type { Tail } from './compile.ts';
import type { Context, Key } from './context.ts';
import type { KeyedNode, SinkNode, SortNode, TopNode } from './graph.ts';
import { CombiningTail } from './combining-tail.ts';
import { KeyEncoder, nameOf } from './key-codec.ts';
import { copyOfLent } from './lent-records.ts';
import { ValueEncoder } from './value-codec.ts';

/** Where the records of a stage go. */
export interface TailWriter {
  /** True where `drain` has to be awaited before the next record. What is lent may change as soon as it was pushed. */
  push(record: unknown, isLent?: boolean): boolean;
  /** Makes room; throws what writing throws. */
  drain(): Promise<void>;
  /** Gives away what is held, after the last record. */
  finish(): Promise<void>;
}

const noBytes = Buffer.alloc(0);

/** `goesOn`: behind what another attempt of the task has given. */
export function tailWriter(tail: Tail, output: TaskOutput, context: Context, goesOn: boolean): TailWriter {
  switch (tail.kind) {
    case 'sink':
      return new TextTail(tail.node, output, { context, goesOn });
    case 'records':
      return new RecordTail(() => noBytes, output);
    case 'keyed':
      return new RecordTail(keyOf(tail.node, context), output);
    case 'combined':
      return new CombiningTail(tail.node, output, context);
    case 'sortable':
      return new RecordTail(sortKeyOf(tail.node, context), output);
    case 'top':
      return new TopTail(tail.node, output, context);
  }
}

function keyOf(node: KeyedNode, context: Context): (record: unknown) => Buffer {
  const encoder = new KeyEncoder();
  return (record) => encoder.encode(node.key(record, context), 'keyBy');
}

export function sortKeyOf({ by, descending }: SortNode, context: Context): (record: unknown) => Buffer {
  const encoder = new KeyEncoder();
  if (descending) return (record) => encoder.encodeDescending(by(record, context), 'sortBy');
  return (record) => encoder.encode(by(record, context), 'sortBy');
}

/** Emits records, each under a key. */
class RecordTail implements TailWriter {
  readonly #keyOf: (record: unknown) => Buffer;
  readonly #output: TaskOutput;
  readonly #encoder = new ValueEncoder();
  #wait: Promise<void> | undefined;

  constructor(keyOf: (record: unknown) => Buffer, output: TaskOutput) {
    this.#keyOf = keyOf;
    this.#output = output;
  }

  push(record: unknown): boolean {
    this.#wait = this.#output.emit(this.#keyOf(record), this.#encoder.encode(record));
    return this.#wait !== undefined;
  }

  async drain(): Promise<void> {
    await this.#wait;
    this.#wait = undefined;
  }

  finish(): Promise<void> {
    return this.drain();
  }
}

/** Text is gathered to pieces of about so many characters. */
const pieceChars = 64 * 1024;

/** Writes lines. */
class TextTail implements TailWriter {
  readonly #format: (record: unknown) => string;
  readonly #output: TaskOutput;
  readonly #count: Context['count'];
  #text: string;
  #records = 0;

  constructor(
    node: SinkNode,
    output: TaskOutput,
    { context, goesOn }: { context: Context; goesOn: boolean },
  ) {
    this.#format = formatOf(node, context);
    this.#output = output;
    this.#count = context.count;
    this.#text = goesOn ? '' : headerOf(node, context);
  }

  push(record: unknown): boolean {
    const text = this.#format(record);
    if (!text.isWellFormed()) this.#count(halfCharacterRecords);
    this.#text += `${text}\n`;
    this.#records++;
    return this.#text.length >= pieceChars;
  }

  async drain(): Promise<void> {
    const [text, records] = [this.#text, this.#records];
    [this.#text, this.#records] = ['', 0];
    if (text !== '') await this.#output.write(Buffer.from(text), records);
  }

  finish(): Promise<void> {
    return this.drain();
  }
}

/** The first part has the header, so that all parts laid end to end have it once. */
const headerOf = (node: SinkNode, { task }: Context): string =>
  node.kind === 'csv' && node.header && task === 0 ? `${node.columns.map(csvCell).join(',')}\n` : '';

function formatOf(node: SinkNode, context: Context): (record: unknown) => string {
  switch (node.kind) {
    case 'text': {
      const { format } = node;
      return (record) => {
        const text = format === undefined ? record : format(record, context);
        if (typeof text === 'string') return text;
        throw new UserCodeError(
          `write.text got ${nameOf(text)} where it needs a text: give it a function that makes one`,
        );
      };
    }
    case 'ndjson':
      return (record) => {
        // `undefined` where the record has no JSON at all.
        const text = JSON.stringify(record) as string | undefined;
        // All that JSON has for a promise.
        if (text?.includes('{}') === true) refusePromises(record);
        if (text !== undefined) return text;
        throw new UserCodeError(`write.ndjson got ${nameOf(record)}, which JSON has no form for`);
      };
    case 'csv':
      return (record) => csvLine(node.columns, record);
  }
}

/** Throws `UserCodeError` where JSON writes a promise of a record, as `{}`. */
function refusePromises(record: unknown): void {
  JSON.stringify(record, (_, value: unknown) => {
    if (!(value instanceof Promise)) return value;
    value.catch(() => undefined);
    throw new UserCodeError(
      'write.ndjson got a record that holds a promise: functions of a job must not be async',
    );
  });
}

function csvLine(columns: readonly string[], record: unknown): string {
  if (typeof record !== 'object' || record === null)
    throw new UserCodeError(`write.csv got ${nameOf(record)} where it needs an object with columns`);
  let line = '';
  for (let at = 0; at < columns.length; at++) {
    const column = columns[at] ?? '';
    const value = (record as Readonly<Record<string, unknown>>)[column];
    const cell = cellText(value);
    if (cell === undefined)
      throw new UserCodeError(`write.csv: column ${column} holds ${nameOf(value)}, which is no cell`);
    line += at === 0 ? csvCell(cell) : `,${csvCell(cell)}`;
  }
  // One empty field alone would be an empty line, which readers pass over.
  return line === '' ? '""' : line;
}

function cellText(value: unknown): string | undefined {
  switch (typeof value) {
    case 'string':
      return value;
    case 'number':
    case 'boolean':
    case 'bigint':
      return String(value);
    case 'undefined':
      return '';
    default:
      if (value === null) return '';
      return value instanceof Date ? value.toISOString() : undefined;
  }
}

const csvCell = (text: string): string => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

/** A record of `top`, and the place that it has among equal ones. */
interface Ranked {
  readonly key: Buffer;
  readonly order: number;
  readonly record: unknown;
}

/** The greatest records so far. Of equal ones those that came first are kept. */
export class TopRecords {
  readonly #size: number;
  readonly #by: (record: unknown) => Key;
  readonly #encoder = new KeyEncoder();
  /** The least of those that are kept comes out first. */
  readonly #heap = new Heap<Ranked>((a, b) => compareRanked(a, b) > 0);
  #seen = 0;

  constructor({ size, by }: TopNode, context: Context) {
    this.#size = size;
    this.#by = (record) => by(record, context);
  }

  add(record: unknown, isLent = false): void {
    const key = this.#encoder.encode(this.#by(record), 'top');
    const order = this.#seen++;
    if (this.#heap.size >= this.#size) {
      const least = this.#heap.peek();
      if (least !== undefined && least.key.compare(key) >= 0) return;
      this.#heap.pop();
    }
    this.#heap.push({ key: Buffer.from(key), order, record: isLent ? copyOfLent(record) : record });
  }

  /** The greatest first; nothing is left. */
  take(): readonly unknown[] {
    const ranked: Ranked[] = [];
    for (let least = this.#heap.pop(); least !== undefined; least = this.#heap.pop()) ranked.push(least);
    return ranked.reverse().map(({ record }) => record);
  }
}

/** Negative where `a` comes before `b` in the result. */
const compareRanked = (a: Ranked, b: Ranked): number => b.key.compare(a.key) || a.order - b.order;

/** Keeps the greatest records of a task and emits them at its end. */
class TopTail implements TailWriter {
  readonly #top: TopRecords;
  readonly #output: TaskOutput;

  constructor(node: TopNode, output: TaskOutput, context: Context) {
    this.#top = new TopRecords(node, context);
    this.#output = output;
  }

  push(record: unknown, isLent?: boolean): boolean {
    this.#top.add(record, isLent);
    return false;
  }

  drain(): Promise<void> {
    return Promise.resolve();
  }

  async finish(): Promise<void> {
    const encoder = new ValueEncoder();
    for (const record of this.#top.take()) await this.#output.emit(noBytes, encoder.encode(record));
  }
}
