import { UserCodeError } from '../worker/operator.ts';
import type { Context, Key } from './context.ts';
import type { Step } from './compile.ts';
import type { JoinNode, RecordFunction } from './graph.ts';
import { KeyEncoder, nameOf } from './key-codec.ts';
import { refuseAsync } from './not-async.ts';
import { copyOf, ownOf } from './value-codec.ts';

/**
 * Takes a record. True means that no more can be taken now: whoever pushed stops, waits until there is room, and goes on
 * with what was begun (`Chain.resume`).
 */
export type Push = (record: unknown) => boolean;

/** The same at the end of a chain. A record that is lent may change as soon as it was taken: who keeps it keeps `copyOfLent`. */
export type PushLast = (record: unknown, isLent: boolean) => boolean;

/** The right-hand side of a broadcast join: its records (`keptValue`) by the bytes of their keys, as latin1. */
export type SideTable = ReadonlyMap<string, readonly unknown[]>;

/** Fused record-wise steps as one function, with no promise for a record. */
export class Chain {
  readonly push: Push;
  /** Steps that give many records for one, the last of the chain first. */
  readonly #expanding: Expansion[] = [];

  constructor(
    steps: readonly Step[],
    context: Context,
    last: PushLast,
    sides: ReadonlyMap<number, SideTable> = new Map(),
  ) {
    const end: Push = (record) => last(record, typeof record === 'object' && this.#isLending());
    this.push = steps.reduceRight<Push>((next, step) => {
      switch (step.kind) {
        case 'map':
          return mapped(step.fn, context, next);
        case 'filter':
          return filtered(step.fn, context, next);
        case 'flatMap': {
          const expansion = new Expansion(next);
          this.#expanding.push(expansion);
          const { fn } = step;
          return (record) => expansion.begin(listOf(fn(record, context)));
        }
        case 'probe': {
          const expansion = new Expansion(next);
          this.#expanding.push(expansion);
          const partners = probed(step.node, context, sides.get(step.input) ?? new Map<string, never[]>());
          return (record) => expansion.begin(partners(record));
        }
      }
    }, end);
  }

  /** Whether records come from a generator just now, which may use one object for all of them. */
  #isLending(): boolean {
    return this.#expanding.some(({ isLending }) => isLending);
  }

  /** Goes on with what a full tail has interrupted; true where it is full again. */
  resume(): boolean {
    return this.#expanding.some((expansion) => expansion.resume());
  }
}

const mapped =
  (fn: RecordFunction<unknown>, context: Context, next: Push): Push =>
  (record) => {
    const result = fn(record, context);
    if (typeof result === 'object') refuseAsync('map', result);
    return next(result);
  };

const filtered =
  (fn: RecordFunction<unknown>, context: Context, next: Push): Push =>
  (record) => {
    const isKept = fn(record, context);
    if (typeof isKept === 'object') refuseAsync('filter', isKept);
    return isKept === true || (isKept !== false && Boolean(isKept)) ? next(record) : false;
  };

function listOf(result: unknown): Iterable<unknown> {
  if (Array.isArray(result)) return result as readonly unknown[];
  if (typeof result === 'object' && result !== null) {
    if (Symbol.iterator in result) return result as Iterable<unknown>;
    refuseAsync('flatMap', result);
  }
  throw new UserCodeError(
    `the function of flatMap gave ${nameOf(result)} where it must give a list or another iterable`,
  );
}

function probed(
  { left, how }: JoinNode,
  context: Context,
  table: SideTable,
): (record: unknown) => readonly unknown[] {
  const encoder = new KeyEncoder();
  return (record) => {
    const key: Key = left.key(record, context);
    const partners = table.get(encoder.encode(key, 'keyBy').toString('latin1'));
    // Each pair has values of its own. All are made before a function sees one.
    if (partners !== undefined)
      return partners.map((partner, at) =>
        at === 0 ? [key, [record, ownOf(partner)]] : [ownOf(key), [copyOf(record), ownOf(partner)]],
      );
    return how === 'left' ? [[key, [record, undefined]]] : [];
  };
}

/** A step that gives many records for one, and can stop between them. */
class Expansion {
  /** Whether what it gives is not of a list, and there may be more. */
  isLending = false;
  readonly #next: Push;
  #open: Iterator<unknown> | undefined;

  constructor(next: Push) {
    this.#next = next;
  }

  begin(records: Iterable<unknown>): boolean {
    this.isLending = !Array.isArray(records);
    if (Array.isArray(records)) {
      const list = records as readonly unknown[];
      for (let at = 0; at < list.length; at++) {
        if (!this.#next(list[at])) continue;
        if (at + 1 < list.length) this.#open = list.slice(at + 1)[Symbol.iterator]();
        return true;
      }
      return false;
    }
    return this.#run(records[Symbol.iterator]());
  }

  resume(): boolean {
    return this.#open !== undefined && this.#run(this.#open);
  }

  #run(records: Iterator<unknown>): boolean {
    this.#open = undefined;
    for (let next = records.next(); next.done !== true; next = records.next()) {
      if (!this.#next(next.value)) continue;
      this.#open = records;
      return true;
    }
    this.isLending = false;
    return false;
  }
}
