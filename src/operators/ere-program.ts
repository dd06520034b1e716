import { limits } from '../contracts/limits.ts';
import { PatternError } from './ere-brackets.ts';
import { isWordByte } from './ere-syntax.ts';
import type { Assertion, Ere } from './ere-syntax.ts';

/** The end of a line, or its begin when it is read backwards, among the symbols that a state reads. */
export const edge = 256;

/** What lies on one side of a place in a line; told apart only as far as a pattern asks. */
const sideOfEdge = 0;
const sideOfWord = 1;
const sideOfOther = 2;

/** A state of the pattern's automaton. The first one, number 0, is where a match is complete. */
export type Node =
  | { readonly kind: 'match' }
  | { readonly kind: 'byte'; readonly set: Uint8Array; readonly next: number }
  | { readonly kind: 'split'; readonly next: number; readonly other: number }
  | { readonly kind: 'assert'; readonly what: Assertion; readonly next: number }
  /** Begin and end of a group that is referred back to. */
  | { readonly kind: 'open' | 'close' | 'same'; readonly group: number; readonly next: number };

export interface Program {
  readonly nodes: readonly Node[];
  /** Where matches begin. */
  readonly first: number;
  /** The side that each symbol is. */
  readonly sides: Uint8Array;
}

/**
 * The automaton of an expression, by Thompson's construction. With `groups`, those are told and back references are
 * nodes of their own. Without, a back reference stands for any text of the bytes that its group can hold: then all
 * that the pattern matches is matched, and perhaps more. Throws PatternError where it becomes too large.
 */
export function programOf(ere: Ere, groups?: ReadonlySet<number>): Program {
  const builder = new Builder(groups);
  const first = builder.add(ere, 0);
  return { nodes: builder.nodes, first, sides: sidesFor(builder.nodes) };
}

type Draft = {
  -readonly [Key in keyof Extract<Node, { kind: 'split' }>]: Extract<Node, { kind: 'split' }>[Key];
};

class Builder {
  readonly nodes: Node[] = [{ kind: 'match' }];
  private readonly groups: ReadonlySet<number> | undefined;

  constructor(groups: ReadonlySet<number> | undefined) {
    this.groups = groups;
  }

  /** From the end to the front: answers the node where an expression begins that goes on at `next`. */
  add(ere: Ere, next: number): number {
    switch (ere.kind) {
      case 'empty':
        return next;
      case 'byte':
        return this.push({ kind: 'byte', set: ere.set, next });
      case 'assert':
        return this.push({ kind: 'assert', what: ere.what, next });
      case 'group':
        return this.group(ere, next);
      case 'cat':
        return ere.items.reduceRight((after, item) => this.add(item, after), next);
      case 'alt':
        return ere.items
          .map((item) => this.add(item, next))
          .reduce((other, begin) => this.push({ kind: 'split', next: begin, other }));
      case 'repeat':
        return this.repeat(ere, next);
      case 'backreference':
        if (this.groups !== undefined) return this.push({ kind: 'same', group: ere.group, next });
        return this.loop({ kind: 'byte', set: ere.bytes }, next);
    }
  }

  private group({ item, index }: Extract<Ere, { kind: 'group' }>, next: number): number {
    if (this.groups?.has(index) !== true) return this.add(item, next);
    const close = this.push({ kind: 'close', group: index, next });
    return this.push({ kind: 'open', group: index, next: this.add(item, close) });
  }

  private repeat({ item, min, max }: Extract<Ere, { kind: 'repeat' }>, next: number): number {
    let begin = next;
    if (max === Infinity) {
      begin = this.loop(item, next);
    } else {
      for (let more = min; more < max; more++) {
        begin = this.push({ kind: 'split', next: this.add(item, begin), other: next });
      }
    }
    for (let least = 0; least < min; least++) begin = this.add(item, begin);
    return begin;
  }

  private loop(item: Ere, next: number): number {
    const loop: Draft = { kind: 'split', next, other: next };
    const begin = this.push(loop);
    loop.other = this.add(item, begin);
    return begin;
  }

  private push(node: Node): number {
    if (this.nodes.length > limits.patternStates * 2)
      throw new PatternError('is too large; repeat fewer times');
    return this.nodes.push(node) - 1;
  }
}

function sidesFor(nodes: readonly Node[]): Uint8Array {
  const asserts = nodes.flatMap((node) => (node.kind === 'assert' ? [node.what] : []));
  const sides = new Uint8Array(edge + 1).fill(sideOfEdge);
  if (asserts.length === 0) return sides;
  sides.fill(sideOfOther, 0, edge);
  if (asserts.every((what) => what === 'line-start' || what === 'line-end')) return sides;
  for (let byte = 0; byte < edge; byte++) if (isWordByte(byte)) sides[byte] = sideOfWord;
  return sides;
}

/** Whether an assertion holds between two sides. */
export function holds(what: Assertion, left: number, right: number): boolean {
  switch (what) {
    case 'line-start':
      return left === sideOfEdge;
    case 'line-end':
      return right === sideOfEdge;
    case 'word-start':
      return left !== sideOfWord && right === sideOfWord;
    case 'word-end':
      return left === sideOfWord && right !== sideOfWord;
    case 'word-edge':
      return (left === sideOfWord) !== (right === sideOfWord);
    case 'no-word-edge':
      return (left === sideOfWord) === (right === sideOfWord);
  }
}
