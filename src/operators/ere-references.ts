import { limits } from '../contracts/limits.ts';
import type { Line } from './ere-automaton.ts';
import { edge, holds } from './ere-program.ts';
import type { Node, Program } from './ere-program.ts';
import { NodeSet } from './ere-states.ts';
import { foldByte } from './ere-syntax.ts';
import type { Work } from './ere-work.ts';

/** Places and captures that are remembered at once. */
const maxRemembered = 1_500_000;
/** What the captures of a path weigh beside one place. */
const captureWeight = 8;
/** Steps of a search before it remembers where it was: most end sooner, and remembering costs more than going on. */
const stepsUnremembered = 400;
/** Steps between two looks at the clock of `Work`. */
const stepsBetweenLooks = 1_024;

/** A search that a pattern with back references makes too long. The message completes "the pattern …". */
export class TooManyStepsError extends Error {
  override readonly name = 'TooManySteps';
}

/** The texts that a path has in its groups: two numbers for each, begin and end; the end is −1 while it is open. */
interface Captures {
  readonly bounds: readonly number[];
  /** What was visited with these captures: place × nodes + node. */
  seen?: Set<number>;
}

/**
 * Follows all paths of a program with groups through a line, each place once with the same captures. The steps of a
 * line are limited: what cannot be told within them throws `TooManyStepsError`.
 */
export class ReferenceSearch {
  /** End of the longest match from where the search began; −1 while there is none. */
  longest = -1;
  readonly #program: Program;
  readonly #slots: ReadonlyMap<number, number>;
  readonly #ignoreCase: boolean;
  readonly #work: Work;
  /** Nodes that several others lead to: only there can paths meet. */
  readonly #isMeeting: Uint8Array;
  #line: Line = { bytes: Buffer.alloc(0), start: 0, end: 0 };
  #steps = 0;
  #maxSteps = 0;
  /** From this step on, what was visited is remembered. */
  #rememberFrom = 0;
  #remembered = 0;
  /** The symbols that can come next, of nodes where that was asked. */
  readonly #nextSymbols = new Map<number, Uint8Array>();
  #known = new Map<string, Captures>();
  #none: Captures = { bounds: [] };
  #isAnyEnough = false;
  /** Paths that are still to be followed. */
  readonly #open: { node: number; at: number; captures: Captures }[] = [];

  constructor(
    program: Program,
    { groups, ignoreCase, work }: { groups: ReadonlySet<number>; ignoreCase: boolean; work: Work },
  ) {
    this.#program = program;
    this.#slots = new Map([...groups].map((group, index) => [group, index * 2]));
    this.#ignoreCase = ignoreCase;
    this.#work = work;
    this.#isMeeting = meetings(program);
  }

  /** Makes ready for a line. */
  open(line: Line): void {
    this.#line = line;
    this.#steps = 0;
    this.#maxSteps = limits.matchSteps + limits.matchStepsPerByte * (line.end - line.start);
    this.#forget();
  }

  /** Begins a search at a place: for the longest match there, or for any. */
  begin(at: number, want: 'longest' | 'any'): void {
    // Paths that led nowhere from an earlier place lead nowhere from here; those that led to a match may do so again.
    if (this.longest >= 0) this.#forget();
    this.longest = -1;
    this.#isAnyEnough = want === 'any';
    this.#rememberFrom = this.#steps + stepsUnremembered;
    this.#open.length = 0;
    this.#open.push({ node: this.#program.first, at, captures: this.#none });
  }

  /** Whether the search has ended; if not, others should have their turn before this is called again. */
  run(): boolean {
    let nextLook = this.#steps + stepsBetweenLooks;
    for (let path = this.#open.pop(); path !== undefined; path = this.#open.pop()) {
      const before = this.#steps;
      this.#follow(path.node, path.at, path.captures);
      this.#work.steps += this.#steps - before;
      if (this.#steps < nextLook) continue;
      nextLook = this.#steps + stepsBetweenLooks;
      if (this.#work.wantsRest()) return this.#open.length === 0;
    }
    return true;
  }

  /** Follows a path to its end, and leaves others that branch off for later. */
  #follow(node: number, at: number, captures: Captures): void {
    for (let next = node, place = at, held = captures; ;) {
      this.#spend(1);
      if (
        this.#isMeeting[next] === 1 &&
        this.#steps > this.#rememberFrom &&
        !this.#isNew(next, place, held)
      ) {
        return;
      }
      const here = this.#program.nodes[next];
      switch (here?.kind) {
        case undefined:
          return;
        case 'match':
          this.#found(place);
          return;
        case 'byte':
          if (place >= this.#line.end || here.set[this.#line.bytes[place] ?? edge] !== 1) return;
          place++;
          break;
        case 'split':
          this.#open.push({ node: here.other, at: place, captures: held });
          break;
        case 'assert':
          if (!holds(here.what, this.#sideAt(place - 1), this.#sideAt(place))) return;
          break;
        case 'open':
        case 'close':
          if (!this.#mayGoOn(here.next, place)) return;
          held = this.#captured(held, here, place);
          break;
        case 'same': {
          const length = this.#repeatedAt(place, held, here.group);
          if (length < 0) return;
          place += length;
        }
      }
      next = here.next;
    }
  }

  #found(at: number): void {
    this.longest = Math.max(this.longest, at);
    // Nothing can be longer, or nothing longer is wanted.
    if (this.#isAnyEnough || at === this.#line.end) this.#open.length = 0;
  }

  #isNew(node: number, at: number, captures: Captures): boolean {
    const seen = (captures.seen ??= new Set());
    const { size } = seen;
    seen.add((at - this.#line.start) * this.#program.nodes.length + node);
    if (seen.size === size) return false;
    this.#remember(1);
    return true;
  }

  #captured(
    before: Captures,
    node: Extract<Node, { kind: 'open' | 'close' | 'same' }>,
    at: number,
  ): Captures {
    const slot = this.#slots.get(node.group) ?? 0;
    const bounds = [...before.bounds];
    if (node.kind === 'open') bounds[slot] = at;
    bounds[slot + 1] = node.kind === 'open' ? -1 : at;
    if (this.#steps <= this.#rememberFrom) return { bounds };
    const name = bounds.join(' ');
    const known = this.#known.get(name);
    if (known !== undefined) return known;
    const made = { bounds };
    this.#known.set(name, made);
    this.#spend(captureWeight);
    this.#remember(captureWeight);
    return made;
  }

  /** Whether the byte that comes next is one that can be read from a node on. */
  #mayGoOn(node: number, at: number): boolean {
    const { bytes, end } = this.#line;
    return (
      (this.#nextSymbols.get(node) ?? this.#symbolsAfter(node))[at < end ? (bytes[at] ?? edge) : edge] === 1
    );
  }

  #symbolsAfter(first: number): Uint8Array {
    const symbols = new Uint8Array(edge + 1);
    const reached = new NodeSet(this.#program);
    reached.add(first);
    for (let place = 0; place < reached.size; place++) {
      const node = this.#program.nodes[reached.at(place)];
      if (node === undefined) continue;
      if (node.kind === 'match' || node.kind === 'same') symbols.fill(1);
      else if (node.kind === 'byte')
        for (let byte = 0; byte < edge; byte++) symbols[byte] ||= node.set[byte] ?? 0;
      else reached.add(node.next);
      if (node.kind === 'split') reached.add(node.other);
    }
    this.#spend(reached.size);
    this.#nextSymbols.set(first, symbols);
    return symbols;
  }

  /** Length of the group's text if it comes at `at` once more; −1 where it does not, or the group took no part. */
  #repeatedAt(at: number, { bounds }: Captures, group: number): number {
    const slot = this.#slots.get(group) ?? 0;
    const begin = bounds[slot] ?? -1;
    const end = bounds[slot + 1] ?? -1;
    if (begin < 0 || end < 0) return -1;
    const length = end - begin;
    const { bytes, end: lineEnd } = this.#line;
    if (at + length > lineEnd) return -1;
    this.#spend(length >> 3);
    if (!this.#ignoreCase) return bytes.compare(bytes, begin, end, at, at + length) === 0 ? length : -1;
    for (let index = 0; index < length; index++) {
      if (foldByte(bytes[begin + index] ?? edge) !== foldByte(bytes[at + index] ?? edge)) return -1;
    }
    return length;
  }

  #sideAt(at: number): number {
    const { bytes, start, end } = this.#line;
    return this.#program.sides[at < start || at >= end ? edge : (bytes[at] ?? edge)] ?? 0;
  }

  #spend(steps: number): void {
    this.#steps += steps;
    if (this.#steps > this.#maxSteps) throw this.#tooMany(`takes more than ${String(this.#maxSteps)} steps`);
  }

  #remember(weight: number): void {
    this.#remembered += weight;
    if (this.#remembered > maxRemembered) throw this.#tooMany('has too many ways to match');
  }

  #tooMany(what: string): TooManyStepsError {
    // The line will not be searched any further, and what was remembered is large.
    this.#forget();
    this.#open.length = 0;
    return new TooManyStepsError(
      `${what}, which its back references allow; write it with fewer repeats that can match the same text`,
    );
  }

  #forget(): void {
    this.longest = -1;
    if (this.#remembered === 0) return;
    this.#remembered = 0;
    this.#known = new Map();
    this.#none = { bounds: this.#none.bounds };
  }
}

function meetings({ nodes, first }: Program): Uint8Array {
  const arrivals = new Uint32Array(nodes.length);
  const arrive = (node: number): void => {
    arrivals[node] = (arrivals[node] ?? 0) + 1;
  };
  arrive(first);
  for (const node of nodes) {
    if (node.kind === 'match') continue;
    arrive(node.next);
    if (node.kind === 'split') arrive(node.other);
  }
  return Uint8Array.from(arrivals, (count) => (count > 1 ? 1 : 0));
}
