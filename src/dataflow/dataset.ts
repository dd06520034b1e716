import { InvalidInputError } from '../contracts/errors.ts';
import type { Context, Key } from './context.ts';
import type { DatasetNode, KeyedNode, SinkNode } from './graph.ts';

/**
 * Functions of a job are called for one record after the other, without a promise for each. One whose result is, or may be, a
 * promise is refused by a type that says so in the compiler's message. A result of any type may be one and is let through, to be
 * looked at when the job runs.
 */
type NotAsync<Fn, Result> = Fn &
  (0 extends 1 & Result
    ? unknown
    : [Extract<Result, PromiseLike<unknown>>] extends [never]
      ? unknown
      : 'functions of a job must not be async');

/** How a join is made. */
export interface JoinOptions {
  /** `inner` (where nothing is said): pairs alone. `left`: also left-hand records without a partner. */
  readonly how?: 'inner' | 'left';
  /** Holds all of the right-hand side in the memory of every task, and shuffles nothing: for a small right-hand side. */
  readonly broadcast?: boolean;
}

export interface SortOptions {
  /** The greatest first. */
  readonly descending?: boolean;
  /** Parts of the result; 1 spares looking for bounds between parts. */
  readonly parts?: number;
}

/** How values of one key become one. */
export interface Aggregation<T, Sum> {
  /** The sum of no values; called for each key. */
  readonly zero: () => Sum;
  /** Adds a value to a sum. May change and return it. */
  readonly add: (sum: Sum, value: T, context: Context) => Sum;
  /**
   * Puts two sums of one key together; must be associative. Where it is left out, all values are shuffled and added where
   * they meet.
   */
  readonly merge?: (left: Sum, right: Sum) => Sum;
}

/** What a job writes; made by `write`. */
export class Output<T> {
  readonly node: SinkNode;
  /** Only there for types: the records that are written. */
  declare readonly records: T;

  constructor(node: SinkNode) {
    this.node = node;
  }
}

/** How records are written. The parts of the output laid end to end are one text. */
export interface Writers<T> {
  /** A line for each record, without its end: texts as they are, or what `format` makes of other records. */
  readonly text: T extends string
    ? (format?: (record: T, context: Context) => string) => Output<T>
    : (format: (record: T, context: Context) => string) => Output<T>;
  /** A line of JSON for each record. */
  readonly ndjson: () => Output<T>;
  /** These columns of records that are objects, under a header unless that is refused. */
  readonly csv: (
    columns: readonly (keyof T & string)[],
    options?: { readonly header?: boolean },
  ) => Output<T>;
}

/** Records of one type, in no promised order but where they were sorted. Nothing is read before the job runs. */
export class Dataset<T> {
  readonly node: DatasetNode;

  constructor(node: DatasetNode) {
    this.node = node;
  }

  /** What `fn` makes of each record. */
  map<U>(fn: NotAsync<(record: T, context: Context) => U, U>): Dataset<U> {
    return new Dataset<U>({ kind: 'map', parent: this.node, fn: checked('map', fn) });
  }

  /** All that `fn` makes of each record: any number of others, as a list or from a generator. */
  flatMap<U>(fn: NotAsync<(record: T, context: Context) => Iterable<U> & object, U>): Dataset<U> {
    return new Dataset<U>({ kind: 'flatMap', parent: this.node, fn: checked('flatMap', fn) });
  }

  /** The records for which `fn` answers true. */
  filter<U extends T>(fn: (record: T, context: Context) => record is U): Dataset<U>;
  filter(fn: (record: T, context: Context) => boolean): Dataset<T>;
  filter(fn: (record: T, context: Context) => boolean): Dataset<T> {
    return new Dataset<T>({ kind: 'filter', parent: this.node, fn: checked('filter', fn) });
  }

  /** The records with a key each, to be reduced or joined by it. */
  keyBy<const K extends Key>(fn: (record: T, context: Context) => K): Keyed<K, T> {
    return new Keyed<K, T>({ parent: this.node, key: checked('keyBy', fn) });
  }

  /** For each key the list of its records, which must fit into memory; `reduce` and `aggregate` of `keyBy` need less. */
  groupBy<const K extends Key>(fn: (record: T, context: Context) => K): Dataset<[key: K, records: T[]]> {
    return new Dataset({ kind: 'group', keyed: { parent: this.node, key: checked('groupBy', fn) } });
  }

  /**
   * All records in order of what `fn` answers: null before false before true before numbers before texts (by code point)
   * before lists. Records of one key stay in the order in which they were.
   */
  sortBy(
    fn: (record: T, context: Context) => Key,
    { descending = false, parts }: SortOptions = {},
  ): Dataset<T> {
    if (parts !== undefined) checkWhole('parts of sortBy', parts, 1_000);
    return new Dataset<T>({
      kind: 'sort',
      parent: this.node,
      by: checked('sortBy', fn),
      descending,
      ...(parts === undefined ? {} : { parts }),
    });
  }

  /** The `size` records for which `fn` answers the greatest, the greatest first. They are held in memory. */
  top(size: number, fn: (record: T, context: Context) => Key): Dataset<T> {
    checkWhole('the size of top', size, 1_000_000);
    return new Dataset<T>({ kind: 'top', parent: this.node, size, by: checked('top', fn) });
  }

  /** Ends the graph: how its records are written. */
  get write(): Writers<T> {
    const parent = this.node;
    const text = (format?: (record: T, context: Context) => string): Output<T> =>
      new Output<T>({
        kind: 'text',
        parent,
        ...(format === undefined ? {} : { format: checked('write.text', format) }),
      });
    return {
      text: text as Writers<T>['text'],
      ndjson: () => new Output<T>({ kind: 'ndjson', parent }),
      csv: (columns, { header = true } = {}) => {
        if (columns.length === 0 || new Set(columns).size !== columns.length) {
          throw new InvalidInputError('write.csv must be given a list of distinct columns, at least one');
        }
        return new Output<T>({ kind: 'csv', parent, columns: [...columns], header });
      },
    };
  }
}

/** Records with a key each. */
export class Keyed<K extends Key, T> {
  readonly node: KeyedNode;
  /** Only there for types. */
  declare readonly key: K;
  declare readonly value: T;

  constructor(node: KeyedNode) {
    this.node = node;
  }

  /** For each key one record, made of its records two at a time; `fn` must be associative. */
  reduce(fn: (left: T, right: T) => T): Dataset<[key: K, value: T]> {
    return new Dataset({ kind: 'reduce', keyed: this.node, fn: checked('reduce', fn) });
  }

  /** For each key the sum of its records, of another type perhaps. */
  aggregate<Sum>(aggregation: Aggregation<T, Sum>): Dataset<[key: K, value: Sum]> {
    const { zero, add, merge } = aggregation;
    return new Dataset({
      kind: 'aggregate',
      keyed: this.node,
      zero: checked('zero of aggregate', zero),
      add: checked('add of aggregate', add),
      ...(merge === undefined ? {} : { merge: checked('merge of aggregate', merge) }),
    });
  }

  /** The pairs of records of one key. All right-hand records of a key are held in memory, so the right is the smaller side. */
  join<U>(
    right: Keyed<K, U>,
    options: JoinOptions & { readonly how: 'left' },
  ): Dataset<[key: K, pair: [left: T, right: U | undefined]]>;
  join<U>(
    right: Keyed<K, U>,
    options?: JoinOptions & { readonly how?: 'inner' },
  ): Dataset<[key: K, pair: [left: T, right: U]]>;
  join<U>(
    right: Keyed<K, U>,
    { how = 'inner', broadcast = false }: JoinOptions = {},
  ): Dataset<[key: K, pair: [left: T, right: U | undefined]]> {
    if (!(right instanceof Keyed)) {
      throw new InvalidInputError(
        'join must be given records with keys: call keyBy on the right-hand side first',
      );
    }
    return new Dataset({ kind: 'join', left: this.node, right: right.node, how, broadcast });
  }
}

/** A function as the graph holds it, without its types; programs that have none may have given anything. */
function checked<Result>(what: string, fn: (...given: never[]) => Result): (...given: unknown[]) => Result {
  if (typeof fn !== 'function') throw new InvalidInputError(`${what} must be given a function`);
  return fn as (...given: unknown[]) => Result;
}

/** Throws `InvalidInputError` where a number is none from 1 on. */
export function checkWhole(what: string, value: number, most: number): void {
  if (Number.isInteger(value) && value >= 1 && value <= most) return;
  throw new InvalidInputError(`${what} must be a whole number from 1 to ${String(most)}`);
}
