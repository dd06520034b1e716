import { totalmem } from 'node:os';
import { Setting } from '../../src/contracts/settings.ts';
import type { Environment } from './settings.ts';

const mib = 1024 * 1024;

/** What Node, its libraries and the buffers of requests take of a worker's memory before a record is held. */
const runtimeBytes = 512 * mib;
/** The least to sort in, whatever the worker's size: what exceeds it goes to disk. */
const leastSortBytes = 40 * mib;
/** Beyond this the disk is no bottleneck, and V8's typed arrays grow unwieldy. */
const mostSortBytes = 512 * mib;
/**
 * Sorting and merging may be at their peak together, each twice its share for a moment, and user code needs some. No
 * more than this either, since what V8 frees it keeps for long: a sort of 1 GB on a medium worker stays below 512 MB.
 */
const shares = 32;

/**
 * Bytes of memory of this worker, by the word of Lambda or of who launched its task, else by the limit of its container;
 * undefined where nothing bounds it but the machine.
 */
export function workerMemoryBytes(env: Environment): number | undefined {
  const toldMb = Number(env['AWS_LAMBDA_FUNCTION_MEMORY_SIZE'] ?? env[Setting.memoryMb] ?? Number.NaN);
  // The machine may be cut to the task, and keeps some for its kernel.
  if (toldMb > 0) return Math.min(toldMb * mib, totalmem());
  const bytes = process.constrainedMemory();
  // Without a limit the constraint is that of the machine, or a number beyond all memory.
  return bytes > 0 && bytes < totalmem() ? bytes : undefined;
}

/**
 * Memory that a task may use to sort, and again to merge what it reads: the least, and a thirty-second of what the worker
 * has beyond the runtime's. A merge that holds more at once goes to disk less often.
 */
export function sortMemoryBytes(memoryBytes: number | undefined): number {
  if (memoryBytes === undefined) return leastSortBytes;
  const share = Math.floor(Math.max(0, memoryBytes - runtimeBytes) / shares);
  return Math.min(mostSortBytes, leastSortBytes + share);
}

/** What the worker's process takes with its buffers beside a process of user code, and the least heap of that. */
const ownMb = 192;
const leastHeapMb = 128;

/** Megabytes for the heap of user code: what the worker's own process, its merge and the sort leave of the memory. */
export function userHeapMb(memoryBytes: number | undefined): number | undefined {
  if (memoryBytes === undefined) return undefined;
  const beyondLeastMb = (2 * (sortMemoryBytes(memoryBytes) - leastSortBytes)) / mib;
  return Math.max(leastHeapMb, Math.floor((memoryBytes / mib) * 0.9 - ownMb - beyondLeastMb));
}

/** What DuckDB may hold at least: with all else a worker stays below 512 MB. */
const leastEngineBytes = 160 * mib;
/** The size at which Lambda gives one whole core. */
const coreBytes = 1769 * mib;

/** Memory and threads of relational work: half of what is beyond a worker of one core, and a thread for each core. */
export function engineSize(memoryBytes: number | undefined): {
  readonly memoryBytes: number;
  readonly threads: number;
} {
  const beyond = Math.max(0, (memoryBytes ?? 0) - coreBytes);
  return {
    memoryBytes: leastEngineBytes + Math.floor(beyond / 2),
    threads: Math.max(1, Math.floor((memoryBytes ?? 0) / coreBytes)),
  };
}
