/** What a worker that has started holds, and a small attempt beside it: below this a collection gives back next to nothing. */
const startedBytes = 128 * 1024 * 1024;
/** What attempts may leave before it is given back: the buffers of a few small ones. */
const leftBytes = 32 * 1024 * 1024;

/** The process's memory. */
export interface ProcessMemory {
  residentBytes(): number;
  /** Collects all that is garbage, where the process has a way to. */
  collect(): void;
}

/**
 * Gives back what attempts have left in a warm environment: V8 counts buffers late, resident memory counts at once. A
 * collection takes longer than a small attempt, of which there may be thousands, so it waits until some have left more
 * than the process is known to need.
 */
export class GiveBack {
  readonly #memory: ProcessMemory;
  /** The least that was resident since the latest collection; nothing is known before the first. */
  #neededBytes = 0;

  constructor(memory: ProcessMemory) {
    this.#memory = memory;
  }

  /** Between two attempts. */
  run(): void {
    const residentBytes = this.#memory.residentBytes();
    if (residentBytes > Math.max(this.#neededBytes + leftBytes, startedBytes)) {
      this.#memory.collect();
      this.#neededBytes = this.#memory.residentBytes();
    } else this.#neededBytes = Math.min(this.#neededBytes, residentBytes);
  }
}
