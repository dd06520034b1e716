import type { Backward, Forward, Line } from './ere-automaton.ts';
import { edge } from './ere-program.ts';
import type { Work } from './ere-work.ts';

/** Places whose states of the backward automaton are held at once. */
const chunkPlaces = 4_000;
/** Answers that are kept. */
const maxPairs = 200_000;

/** A state of the backward automaton that outlives its being forgotten. */
interface Checkpoint {
  readonly kernel: Uint16Array;
  readonly side: number;
}

/**
 * Tells at each place of a line whether what follows completes a match, so that the longest match is found without
 * reading beyond its end: all matches of a line take time linear in it. The line is read once from its end, keeping
 * a state every few thousand bytes; from those the states between are made again when they are needed.
 */
export class Lookahead {
  private readonly forward: Forward;
  private readonly backward: Backward;
  private readonly work: Work;
  private line: Line = { bytes: Buffer.alloc(0), start: 0, end: 0 };
  private readonly states = new Int32Array(chunkPlaces);
  /** The chunk whose states are held; −1 for none. */
  private chunk = -1;
  private checkpoints: Checkpoint[] = [];
  private readonly pairs = new Map<number, boolean>();
  private pairsOf = '';
  private at = 0;
  private state = 0;

  /** Takes both automata of one program for itself; the forward one is anchored. */
  constructor(forward: Forward, backward: Backward, work: Work) {
    this.forward = forward;
    this.backward = backward;
    this.work = work;
  }

  open(line: Line): void {
    this.line = line;
    this.chunk = -1;
    this.checkpoints = [];
    this.at = line.end;
    this.backward.keepNone();
    this.state = this.backward.begin();
  }

  /** Whether the line was read down to `from`; if not, others should have their turn before this is called again. */
  scan(from: number): boolean {
    const { backward, work, line } = this;
    for (; this.at > from; this.at--) {
      if ((line.end - this.at) % chunkPlaces === 0) this.save();
      if (work.wantsRest()) return false;
      work.steps++;
      const symbol = line.bytes[this.at - 1] ?? edge;
      const step = backward.table[this.state + symbol] ?? -1;
      this.state = (step < 0 ? backward.makeStep(this.state, symbol) : step) >> 1;
    }
    this.save();
    return true;
  }

  /** End of the longest match that begins at `from`, where one does. */
  longest(from: number): number {
    const { forward, line, work } = this;
    let at = from;
    for (let state = forward.begin(line, from); at < line.end; at++) {
      const symbol = line.bytes[at] ?? edge;
      const step = forward.table[state + symbol] ?? -1;
      state = (step < 0 ? forward.makeStep(state, symbol) : step) >> 1;
      work.steps++;
      if (!this.isCompleted(state, at + 1)) break;
    }
    return at;
  }

  /** Whether the rest of the line from `at` on completes a match of which the state of `forward` has read the begin. */
  private isCompleted(state: number, at: number): boolean {
    if (state === 0) return false;
    const { forward, backward } = this;
    const rest = this.stateAt(at);
    const generations = `${String(forward.generation)} ${String(backward.generation)}`;
    if (this.pairsOf !== generations || this.pairs.size >= maxPairs) this.pairs.clear();
    this.pairsOf = generations;
    const pair = state * 2 ** 26 + rest;
    const known = this.pairs.get(pair);
    if (known !== undefined) return known;
    const reached = forward.closure(state, backward.sideOf(rest));
    const kernel = backward.kernelOf(rest);
    this.work.steps += kernel.length;
    const isCompleted = kernel.some((node) => reached.has(node));
    this.pairs.set(pair, isCompleted);
    return isCompleted;
  }

  private stateAt(at: number): number {
    const fromEnd = this.line.end - at;
    const chunk = Math.floor(fromEnd / chunkPlaces);
    if (chunk !== this.chunk) this.load(chunk);
    return this.states[fromEnd - chunk * chunkPlaces] ?? 0;
  }

  /** Makes the states of a chunk again; those must not be forgotten while they are in use. */
  private load(chunk: number): void {
    const { backward, line, states } = this;
    this.chunk = chunk;
    backward.keep(chunkPlaces);
    const { kernel, side } = this.checkpoints[chunk] ?? { kernel: [], side: 0 };
    let state = backward.stateOf(kernel, side);
    const last = line.end - chunk * chunkPlaces;
    for (let place = 0; place < chunkPlaces; place++) {
      states[place] = state;
      const at = last - place;
      if (at <= line.start) break;
      const symbol = line.bytes[at - 1] ?? edge;
      const step = backward.table[state + symbol] ?? -1;
      state = (step < 0 ? backward.makeStep(state, symbol) : step) >> 1;
      this.work.steps++;
    }
  }

  private save(): void {
    const { backward, state, line, at } = this;
    if ((line.end - at) % chunkPlaces !== 0) return;
    this.checkpoints[(line.end - at) / chunkPlaces] = {
      kernel: backward.kernelOf(state),
      side: backward.sideOf(state),
    };
  }
}
