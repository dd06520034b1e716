import { PatternError } from './ere-brackets.ts';
import { isWordByte } from './ere-syntax.ts';
import type { Assertion, Ere } from './ere-syntax.ts';

/** The end of a line, or its begin when it is read backwards, among the symbols that a state reads. */
const edge = 256;
const symbols = 257;
const maxNodes = 20_000;
/** States that are kept; when there are more, all are forgotten and made anew, so that memory stays bounded. */
const maxStates = 1_000;

type Node =
  | { readonly kind: 'byte'; readonly set: Uint8Array; next: number }
  | { readonly kind: 'split'; next: number; other: number }
  | { readonly kind: 'assert'; readonly what: Assertion; next: number }
  | { readonly kind: 'match' };

/** What lies on one side of a place in a line. */
type Side = 'edge' | 'word' | 'other';

/** Thompson's construction, from the end to the front: `add` answers the node where an expression begins. */
class Nodes {
  readonly list: Node[] = [{ kind: 'match' }];

  add(ere: Ere, next: number): number {
    switch (ere.kind) {
      case 'empty':
        return next;
      case 'byte':
        return this.push({ kind: 'byte', set: ere.set, next });
      case 'assert':
        return this.push({ kind: 'assert', what: ere.what, next });
      case 'group':
        return this.add(ere.item, next);
      case 'cat':
        return ere.items.reduceRight((after, item) => this.add(item, after), next);
      case 'alt':
        return ere.items
          .map((item) => this.add(item, next))
          .reduce((other, begin) => this.push({ kind: 'split', next: begin, other }));
      case 'repeat':
        return this.repeat(ere, next);
      case 'backreference':
        throw new PatternError('has a back reference, which no automaton can match');
    }
  }

  private repeat({ item, min, max }: { item: Ere; min: number; max: number }, next: number): number {
    let begin = next;
    if (max === Infinity) {
      const loop: Node = { kind: 'split', next, other: next };
      begin = this.push(loop);
      loop.other = this.add(item, begin);
    } else {
      for (let more = min; more < max; more++) {
        begin = this.push({ kind: 'split', next: this.add(item, begin), other: next });
      }
    }
    for (let least = 0; least < min; least++) begin = this.add(item, begin);
    return begin;
  }

  private push(node: Node): number {
    if (this.list.length >= maxNodes) throw new PatternError('is too large; repeat fewer times');
    return this.list.push(node) - 1;
  }
}

/**
 * A deterministic automaton that makes its states as a text needs them. Time is linear in the text, whatever the
 * pattern. A step reads a byte (or the edge) and tells the next state and whether a match ended before it.
 */
export class Automaton {
  private readonly nodes: readonly Node[];
  private readonly first: number;
  private readonly isAnchored: boolean;
  private readonly isBackward: boolean;
  private rows: Int32Array[] = [];
  private kernels: { nodes: readonly number[]; before: Side }[] = [];
  private ids = new Map<string, number>();

  /** Anchored: matches begin where reading does; else anywhere. Backward: the text is read from its end. */
  constructor(ere: Ere, { isAnchored, isBackward }: { isAnchored: boolean; isBackward: boolean }) {
    const nodes = new Nodes();
    this.first = nodes.add(isBackward ? reversed(ere) : ere, 0);
    this.nodes = nodes.list;
    this.isAnchored = isAnchored;
    this.isBackward = isBackward;
  }

  /** Whether anything in bytes [start, end), a line without its newline, matches. */
  matches(bytes: Uint8Array, start: number, end: number): boolean {
    let state = this.state([this.first], 'edge');
    for (let at = start; at < end; at++) {
      const step = this.step(state, bytes[at] ?? edge);
      if ((step & 1) === 1) return true;
      state = step >> 1;
    }
    return (this.step(state, edge) & 1) === 1;
  }

  /** End of the longest match that begins at `from` of line [start, end); −1 where none does. Anchored only. */
  longest(bytes: Uint8Array, line: { start: number; end: number }, from: number): number {
    let state = this.state([this.first], from === line.start ? 'edge' : sideOf(bytes[from - 1] ?? edge));
    let longest = -1;
    for (let at = from; at <= line.end; at++) {
      const step = this.step(state, at < line.end ? (bytes[at] ?? edge) : edge);
      if ((step & 1) === 1) longest = at;
      state = step >> 1;
      if (this.kernels[state]?.nodes.length === 0) break;
    }
    return longest;
  }

  /** Sets `marks[i]` to 1 where a match begins at byte start + i, else to 0. Backward and not anchored only. */
  markStarts(bytes: Uint8Array, line: { start: number; end: number }, marks: Uint8Array): void {
    let state = this.state([this.first], 'edge');
    for (let at = line.end; at >= line.start; at--) {
      const step = this.step(state, at > line.start ? (bytes[at - 1] ?? edge) : edge);
      marks[at - line.start] = step & 1;
      state = step >> 1;
    }
  }

  /** Twice the next state, plus 1 if a match ends before the symbol. */
  private step(state: number, symbol: number): number {
    const known = this.rows[state]?.[symbol] ?? -1;
    return known >= 0 ? known : this.makeStep(state, symbol);
  }

  private makeStep(state: number, symbol: number): number {
    const { nodes, before } = this.kernels[state] ?? { nodes: [], before: 'edge' };
    const after = sideOf(symbol);
    const reached = this.closure(nodes, this.isBackward ? [after, before] : [before, after]);
    const next: number[] = this.isAnchored ? [] : [this.first];
    let isMatch = 0;
    for (const at of reached) {
      const node = this.nodes[at];
      if (node?.kind === 'match') isMatch = 1;
      if (node?.kind === 'byte' && node.set[symbol] === 1) next.push(node.next);
    }
    const row = this.rows[state];
    const step = this.state(next, after) * 2 + isMatch;
    // Of no use if all states have just been forgotten; then the row is garbage and its loss is right.
    if (row !== undefined) row[symbol] = step;
    return step;
  }

  /** The nodes that are reached without reading, at a place with these sides. */
  private closure(from: readonly number[], [left, right]: readonly [Side, Side]): Set<number> {
    const reached = new Set<number>();
    const open = [...from];
    for (let at = open.pop(); at !== undefined; at = open.pop()) {
      if (reached.has(at)) continue;
      reached.add(at);
      const node = this.nodes[at];
      if (node?.kind === 'split') open.push(node.other, node.next);
      if (node?.kind === 'assert' && holds(node.what, left, right)) open.push(node.next);
    }
    return reached;
  }

  private state(nodes: readonly number[], before: Side): number {
    const kernel = [...new Set(nodes)].sort((a, b) => a - b);
    const name = `${before} ${kernel.join(' ')}`;
    const known = this.ids.get(name);
    if (known !== undefined) return known;
    if (this.rows.length >= maxStates) {
      this.rows = [];
      this.kernels = [];
      this.ids = new Map();
    }
    this.rows.push(new Int32Array(symbols).fill(-1));
    this.kernels.push({ nodes: kernel, before });
    this.ids.set(name, this.rows.length - 1);
    return this.rows.length - 1;
  }
}

const sideOf = (symbol: number): Side => (symbol === edge ? 'edge' : isWordByte(symbol) ? 'word' : 'other');

function holds(what: Assertion, left: Side, right: Side): boolean {
  switch (what) {
    case 'line-start':
      return left === 'edge';
    case 'line-end':
      return right === 'edge';
    case 'word-start':
      return left !== 'word' && right === 'word';
    case 'word-end':
      return left === 'word' && right !== 'word';
    case 'word-edge':
      return (left === 'word') !== (right === 'word');
    case 'no-word-edge':
      return (left === 'word') === (right === 'word');
  }
}

/** The expression that matches the same texts read backwards. */
function reversed(ere: Ere): Ere {
  switch (ere.kind) {
    case 'cat':
      return { kind: 'cat', items: ere.items.map(reversed).reverse() };
    case 'alt':
      return { kind: 'alt', items: ere.items.map(reversed) };
    case 'repeat':
      return { ...ere, item: reversed(ere.item) };
    case 'group':
      return reversed(ere.item);
    default:
      return ere;
  }
}
