/*
 * Memory that the next attempt of this process takes over. What is given back to the system comes back as new pages, which
 * the kernel clears first: of a worker that sorts, a tenth of its time.
 */

let kept: ArrayBuffer | undefined;

/** So many bytes of memory, holding anything. */
export function takeMemory(sizeBytes: number): ArrayBuffer {
  const found = kept;
  kept = undefined;
  return found?.byteLength === sizeBytes ? found : new ArrayBuffer(sizeBytes);
}

/** Keeps memory that nobody reads or writes any more for the next that takes as much. */
export function keepMemory(memory: ArrayBuffer): void {
  kept = memory;
}

/** Lets go of what is kept, where the next attempt has another use for the memory. */
export function dropMemory(): void {
  kept = undefined;
}
