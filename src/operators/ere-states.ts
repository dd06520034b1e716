import { edge } from './ere-program.ts';
import type { Program } from './ere-program.ts';
import type { Work } from './ere-work.ts';

const symbols = edge + 1;
/** States that are kept, and nodes in all of them; beyond, all are forgotten and made anew: memory is bounded. */
const maxStates = 6_000;
const maxHeld = 1_000_000;

/** What a step from a state reaches. */
export interface Reached {
  /** Whether what the automaton looks for is there before the symbol. */
  readonly isFound: boolean;
}

/**
 * A deterministic automaton over the nodes of a program whose states are made as a text needs them. A state is a set
 * of nodes and the side of the symbol last read. Its number is its row's place in `table`, where each symbol has
 * twice the next state, plus 1 if what is looked for is there before the symbol; −1 where that is not known yet.
 */
export abstract class LazyStates {
  /** State 0 is the one without nodes. */
  table = new Int32Array(symbols);
  /** Grows whenever states were forgotten: numbers from before mean nothing. */
  generation = 0;
  protected readonly program: Program;
  protected readonly work: Work;
  private readonly stamps: Int32Array;
  private stamp = 0;
  private readonly members: Uint16Array;
  private memberCount = 0;
  private kernels: Uint16Array[] = [];
  private kernelSides: number[] = [];
  private byHash = new Map<number, number[]>();
  private held = 0;
  private isKeeping = false;

  constructor(program: Program, work: Work) {
    this.program = program;
    this.work = work;
    this.stamps = new Int32Array(program.nodes.length);
    this.members = new Uint16Array(program.nodes.length);
    this.forget();
  }

  /** Visits what is reached from a state's nodes before `symbol` and gathers the next state's nodes by `gather`. */
  protected abstract follow(kernel: Uint16Array, sideBefore: number, symbol: number): Reached;

  kernelOf(state: number): Uint16Array {
    return this.kernels[state / symbols] ?? new Uint16Array();
  }

  sideOf(state: number): number {
    return this.kernelSides[state / symbols] ?? 0;
  }

  /** From now on `count` states can be made without any being forgotten, until this is called again. */
  keep(count: number): void {
    if (this.kernels.length + count > maxStates || this.held >= maxHeld) this.forget();
    this.isKeeping = true;
  }

  /** From now on states are forgotten when there are too many. */
  keepNone(): void {
    this.isKeeping = false;
  }

  /** What `table` does not know yet of a state and a symbol. Afterwards other states may have other numbers. */
  makeStep(state: number, symbol: number): number {
    const { generation } = this;
    this.gatherNone();
    const { isFound } = this.follow(this.kernelOf(state), this.sideOf(state), symbol);
    const next = this.gathered(this.program.sides[symbol] ?? 0);
    const step = next * 2 + (isFound ? 1 : 0);
    if (generation === this.generation) this.table[state + symbol] = step;
    return step;
  }

  /** The state of these nodes. */
  stateOf(nodes: Iterable<number>, side: number): number {
    this.gatherNone();
    for (const node of nodes) this.gather(node);
    return this.gathered(side);
  }

  private gatherNone(): void {
    this.stamp++;
    this.memberCount = 0;
  }

  protected gather(node: number): void {
    if (this.stamps[node] === this.stamp) return;
    this.stamps[node] = this.stamp;
    this.members[this.memberCount++] = node;
  }

  private gathered(side: number): number {
    const count = this.memberCount;
    this.work.steps += count;
    if (count === 0) return 0;
    let hash = side;
    for (let at = 0; at < count; at++) hash = (hash + Math.imul((this.members[at] ?? 0) + 1, 0x9e3779b1)) | 0;
    const known = this.byHash.get(hash)?.find((state) => this.isGathered(state, side));
    return known ?? this.make(hash, side);
  }

  private isGathered(state: number, side: number): boolean {
    const kernel = this.kernelOf(state);
    if (kernel.length !== this.memberCount || this.sideOf(state) !== side) return false;
    for (const node of kernel) if (this.stamps[node] !== this.stamp) return false;
    return true;
  }

  private make(hash: number, side: number): number {
    if (!this.isKeeping && (this.kernels.length >= maxStates || this.held >= maxHeld)) this.forget();
    const place = this.kernels.length;
    const state = place * symbols;
    if (state >= this.table.length) {
      const table = new Int32Array(this.table.length * 2);
      table.set(this.table);
      this.table = table;
    }
    this.table.fill(-1, state, state + symbols);
    this.kernels.push(this.members.slice(0, this.memberCount));
    this.kernelSides.push(side);
    this.held += this.memberCount;
    const same = this.byHash.get(hash);
    if (same === undefined) this.byHash.set(hash, [state]);
    else same.push(state);
    return state;
  }

  private forget(): void {
    this.generation++;
    this.kernels = [new Uint16Array()];
    this.kernelSides = [0];
    this.byHash = new Map();
    this.held = 0;
    this.table = new Int32Array(symbols * 8);
    this.table.fill(-1, 0, symbols);
  }
}

/** A set of nodes that is emptied at no cost, to walk over nodes once each. */
export class NodeSet {
  readonly #stamps: Int32Array;
  readonly #open: Uint16Array;
  #stamp = 1;
  #size = 0;

  constructor(program: Program) {
    this.#stamps = new Int32Array(program.nodes.length);
    this.#open = new Uint16Array(program.nodes.length);
  }

  clear(): void {
    this.#stamp++;
    this.#size = 0;
  }

  add(node: number): void {
    if (this.#stamps[node] === this.#stamp) return;
    this.#stamps[node] = this.#stamp;
    this.#open[this.#size++] = node;
  }

  has(node: number): boolean {
    return this.#stamps[node] === this.#stamp;
  }

  get size(): number {
    return this.#size;
  }

  /** The node that was added as number `place`. */
  at(place: number): number {
    return this.#open[place] ?? 0;
  }
}
