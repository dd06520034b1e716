import { edge, holds } from './ere-program.ts';
import type { Program } from './ere-program.ts';
import { LazyStates, NodeSet } from './ere-states.ts';
import type { Reached } from './ere-states.ts';
import type { Work } from './ere-work.ts';

/** A line without its newline: bytes [start, end). */
export interface Line {
  readonly bytes: Buffer;
  readonly start: number;
  readonly end: number;
}

/**
 * Reads lines from their begin. Time is linear in the line, whatever the pattern. A scan that should let others have
 * their turn says so, and goes on where it was when it is called again.
 */
export class Forward extends LazyStates {
  /** End of the longest match that `scanLongest` has seen so far; −1 while there is none. */
  longest = -1;
  /** Where the scan is. */
  at = 0;
  private state = 0;
  private readonly isAnchored: boolean;
  private readonly reached: NodeSet;
  /** The states in which reading begins, by side, as of a generation. */
  private readonly begun = [-1, -1, -1];
  private begunIn = 0;

  /** Anchored: matches begin where reading does; else anywhere. */
  constructor(program: Program, { isAnchored, work }: { isAnchored: boolean; work: Work }) {
    super(program, work);
    this.isAnchored = isAnchored;
    this.reached = new NodeSet(program);
  }

  /** The state in which reading begins at `from` of a line. */
  begin({ bytes, start }: Line, from: number): number {
    const side = this.program.sides[from === start ? edge : (bytes[from - 1] ?? edge)] ?? 0;
    if (this.begunIn !== this.generation) this.begun.fill(-1);
    this.begunIn = this.generation;
    const known = this.begun[side] ?? -1;
    if (known >= 0) return known;
    const made = this.stateOf([this.program.first], side);
    // Making it may have made others be forgotten.
    if (this.begunIn === this.generation) this.begun[side] = made;
    return made;
  }

  /** Makes ready for a scan that begins at `from`. */
  open(line: Line, from: number): void {
    this.at = from;
    this.longest = -1;
    this.state = this.begin(line, from);
  }

  /** Whether anything in the line matches; undefined where others should have their turn. */
  scan({ bytes, end }: Line): boolean | undefined {
    const { work } = this;
    let { table, state, at } = this;
    const from = at;
    for (; at < end; at++) {
      const symbol = bytes[at] ?? edge;
      let step = table[state + symbol] ?? -1;
      if (step < 0) {
        if (work.wantsRest()) {
          this.pause(at, state, from);
          return undefined;
        }
        step = this.makeStep(state, symbol);
        table = this.table;
      }
      if ((step & 1) === 1) {
        work.steps += at - from;
        return true;
      }
      state = step >> 1;
    }
    work.steps += at - from + 1;
    const last = table[state + edge] ?? -1;
    return ((last < 0 ? this.makeStep(state, edge) : last) & 1) === 1;
  }

  /** Whether `longest` is known: the end of the longest match that begins where the scan began. Anchored only. */
  scanLongest({ bytes, end }: Line): boolean {
    const { work } = this;
    let { table, state, at } = this;
    const from = at;
    // State 0 has no nodes: nothing can match any more.
    for (; at <= end && state !== 0; at++) {
      const symbol = at < end ? (bytes[at] ?? edge) : edge;
      let step = table[state + symbol] ?? -1;
      if (step < 0) {
        if (work.wantsRest()) {
          this.pause(at, state, from);
          return false;
        }
        step = this.makeStep(state, symbol);
        table = this.table;
      }
      if ((step & 1) === 1) this.longest = at;
      state = step >> 1;
    }
    work.steps += at - from;
    this.at = at;
    return true;
  }

  /** The nodes that are reached from a state without reading, before a symbol of side `after`. */
  closure(state: number, after: number): NodeSet {
    return this.spread(this.kernelOf(state), this.sideOf(state), after);
  }

  protected follow(kernel: Uint16Array, before: number, symbol: number): Reached {
    const { nodes, first, sides } = this.program;
    const reached = this.spread(kernel, before, sides[symbol] ?? 0);
    if (!this.isAnchored) this.gather(first);
    for (let place = 0; place < reached.size; place++) {
      const node = nodes[reached.at(place)];
      if (node?.kind === 'byte' && node.set[symbol] === 1) this.gather(node.next);
    }
    return { isFound: reached.has(0) };
  }

  private spread(kernel: Uint16Array, before: number, after: number): NodeSet {
    const { reached, program } = this;
    reached.clear();
    for (const node of kernel) reached.add(node);
    for (let place = 0; place < reached.size; place++) {
      const node = program.nodes[reached.at(place)];
      if (node?.kind === 'split') {
        reached.add(node.next);
        reached.add(node.other);
      } else if (node?.kind === 'assert' && holds(node.what, before, after)) reached.add(node.next);
    }
    this.work.steps += reached.size;
    return reached;
  }

  private pause(at: number, state: number, from: number): void {
    this.work.steps += at - from;
    this.at = at;
    this.state = state;
  }
}

/**
 * Reads lines from their end: its state at a place are the nodes from which what follows leads to a match, by way of
 * the byte that comes next. What it looks for is where matches begin.
 */
export class Backward extends LazyStates {
  private readonly reached: NodeSet;
  /** What leads to each node without reading, and what does by reading a byte. */
  private readonly before: readonly (readonly number[])[];
  private readonly bytesBefore: readonly (readonly number[])[];

  constructor(program: Program, work: Work) {
    super(program, work);
    this.reached = new NodeSet(program);
    const before: number[][] = program.nodes.map(() => []);
    const bytesBefore: number[][] = program.nodes.map(() => []);
    for (const [at, node] of program.nodes.entries()) {
      if (node.kind === 'match') continue;
      (node.kind === 'byte' ? bytesBefore : before)[node.next]?.push(at);
      if (node.kind === 'split' && node.other !== node.next) before[node.other]?.push(at);
    }
    this.before = before;
    this.bytesBefore = bytesBefore;
  }

  /** The state at the end of a line. */
  begin(): number {
    return this.stateOf([0], this.program.sides[edge] ?? 0);
  }

  protected follow(kernel: Uint16Array, after: number, symbol: number): Reached {
    const { reached, program, work } = this;
    const sideBefore = program.sides[symbol] ?? 0;
    reached.clear();
    for (const node of kernel) reached.add(node);
    this.gather(0);
    for (let place = 0; place < reached.size; place++) {
      const at = reached.at(place);
      for (const from of this.before[at] ?? []) {
        const node = program.nodes[from];
        if (node?.kind !== 'assert' || holds(node.what, sideBefore, after)) reached.add(from);
      }
      const readers = this.bytesBefore[at] ?? [];
      work.steps += 1 + readers.length;
      for (const from of readers) {
        const node = program.nodes[from];
        if (node?.kind === 'byte' && node.set[symbol] === 1) this.gather(from);
      }
    }
    return { isFound: reached.has(program.first) };
  }
}
