import { join } from 'node:path';
import { frameBytes, frameOf } from './framing.ts';
import { CombiningSink } from './frame-sink.ts';
import type { FrameSink } from './frame-sink.ts';
import { HashCombiner } from './hash-combiner.ts';
import { mergeRuns } from './merge-runs.ts';
import type { Combine, KeyBatch } from './operator.ts';
import { partitionOf } from './partition-of.ts';
import { RunWriter } from './run-file.ts';
import type { Run } from './run-file.ts';
import { SortArena } from './sort-arena.ts';

const nothing = Buffer.alloc(0);

export interface SortOptions {
  readonly partitions: number;
  /** Memory for records and their index; what does not fit is spilled to scratch files. */
  readonly memoryBytes: number;
  readonly combine: Combine | undefined;
  /** An empty directory for scratch files; whoever made it removes it. */
  readonly scratchDir: string;
  readonly signal: AbortSignal;
  /** Runs merged at once; the default suits all but tests. */
  readonly fanIn?: number;
}

/** Sorts records by (partition, key bytes, emission) in bounded memory; combines equal keys if it can. */
export class ExternalSort {
  readonly #options: SortOptions;
  readonly #hash: HashCombiner | undefined;
  #arena: SortArena | undefined;
  readonly #runs: Run[] = [];
  #spills = 0;

  constructor(options: SortOptions) {
    this.#options = options;
    const hashBytes = options.combine === undefined ? 0 : Math.floor(options.memoryBytes / 4);
    this.#hash = options.combine === undefined ? undefined : new HashCombiner(options.combine, hashBytes);
    this.#arena = new SortArena(options.memoryBytes - hashBytes, options.partitions);
  }

  /** How many runs were spilled so far. */
  get spills(): number {
    return this.#spills;
  }

  /** Copies a record in. `partition` overrides the key's hash; await what is returned. */
  add(key: Uint8Array, value: Uint8Array, partition?: number): Promise<void> | undefined {
    if (partition === undefined && this.#hash?.take(key, value) === true) return undefined;
    return this.#store(key, value, partition ?? partitionOf(key, this.#options.partitions));
  }

  /** Copies keys in, each for its partition; await what is returned. */
  addKeys(keys: KeyBatch, from = 0): Promise<void> | undefined {
    const taken = this.#arena?.addKeys(keys, from) ?? 0;
    return from + taken === keys.count ? undefined : this.#spillThenAdd(keys, from + taken);
  }

  async #spillThenAdd(keys: KeyBatch, from: number): Promise<void> {
    for (let at = from; at < keys.count;) {
      await this.#spill();
      const taken = this.#arena?.addKeys(keys, at) ?? 0;
      at += taken;
      if (taken > 0) continue;
      const key = keys.bytes.subarray(keys.starts[at], keys.ends[at]);
      await this.#storeLarge(key, nothing, keys.partitions[at] ?? 0);
      at++;
    }
  }

  #store(key: Uint8Array, value: Uint8Array, partition: number): Promise<void> | undefined {
    frameBytes(key.length, value.length); // Throws at what is too long to be read again.
    if (this.#arena?.add(key, value, partition) === true) return undefined;
    return this.#spillThenStore(key, value, partition);
  }

  async #spillThenStore(key: Uint8Array, value: Uint8Array, partition: number): Promise<void> {
    await this.#spill();
    if (this.#arena?.add(key, value, partition) === true) return;
    await this.#storeLarge(key, value, partition);
  }

  /** Longer than all of the memory: a run of its own. */
  async #storeLarge(key: Uint8Array, value: Uint8Array, partition: number): Promise<void> {
    await this.#writeRun((sink) => {
      const frame = frameOf(key, value);
      return Promise.resolve(sink.put(partition, frame, 0, frame.length));
    });
  }

  async #spill(): Promise<void> {
    const arena = this.#arena;
    if (arena === undefined || arena.count === 0) return;
    await this.#writeRun((sink) => this.#drainArena(arena, sink));
    arena.clear();
  }

  async #writeRun(write: (sink: FrameSink) => Promise<void>): Promise<void> {
    const { scratchDir, partitions, signal } = this.#options;
    signal.throwIfAborted();
    const writer = await RunWriter.create(join(scratchDir, `run-${String(this.#spills++)}`), partitions);
    try {
      await write(writer);
      this.#runs.push(await writer.finish());
    } catch (error) {
      await writer.discard();
      throw error;
    }
  }

  async #drainArena(arena: SortArena, sink: FrameSink): Promise<void> {
    arena.sort();
    const output = new CombiningSink(sink, this.#options.combine);
    for (let rank = 0; rank < arena.count; rank++) {
      arena.moveTo(rank);
      const stored = output.put(arena);
      if (stored !== undefined) await stored;
    }
    await output.flush();
  }

  /** Writes everything to `sink`, in order. The sorter is empty afterwards and must not be used again. */
  async finish(sink: FrameSink): Promise<void> {
    for (const { key, value } of this.#hash?.drain() ?? []) {
      await this.#store(key, value, partitionOf(key, this.#options.partitions));
    }
    if (this.#runs.length === 0) {
      if (this.#arena !== undefined) await this.#drainArena(this.#arena, sink);
      this.#arena?.release();
      this.#arena = undefined;
      return;
    }
    await this.#spill();
    // The merge needs the memory for its own buffers: no variable may hold the arena here.
    this.#arena = undefined;
    await mergeRuns(this.#runs, sink, this.#options);
  }
}
