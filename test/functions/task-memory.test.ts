import { totalmem } from 'node:os';
import { describe, expect, it } from 'vitest';
import {
  engineSize,
  sortMemoryBytes,
  userHeapMb,
  workerMemoryBytes,
} from '../../functions/shared/task-memory.ts';

const mib = 1024 * 1024;

describe('memory of a task', () => {
  it.each([
    [512, 40],
    [884, 51.625],
    [1_024, 56],
    [1_769, 79.28125],
    [3_538, 134.5625],
    [7_076, 245.125],
    [30_720, 512],
  ])('of a worker of %i MB is %d MB to sort in', (memoryMb, sortMb) => {
    expect(sortMemoryBytes(memoryMb * mib)).toBe(sortMb * mib);
  });

  it.each([
    [undefined, 160, 1],
    [884, 160, 1],
    [1_769, 160, 1],
    [3_538, 1_044.5, 2],
    [7_076, 2_813.5, 4],
  ])('of a worker of %s MB leaves DuckDB %d MB and %i threads', (memoryMb, engineMb, threads) => {
    const bytes = memoryMb === undefined ? undefined : memoryMb * mib;
    expect(engineSize(bytes)).toEqual({ memoryBytes: engineMb * mib, threads });
  });

  it('is the least where nothing says how large the worker is', () => {
    expect(sortMemoryBytes(undefined)).toBe(40 * mib);
    expect(userHeapMb(undefined)).toBeUndefined();
  });

  it('is that of the function on Lambda', () => {
    expect(workerMemoryBytes({ AWS_LAMBDA_FUNCTION_MEMORY_SIZE: '884' })).toBe(884 * mib);
  });

  it('is that of the task on Fargate, as who launched it says: within the container nothing bounds it', () => {
    expect(workerMemoryBytes({ OUTRIDER_MEMORY_MB: '2048' })).toBe(2_048 * mib);
    // Of a machine that has no more than that, less what its kernel keeps.
    expect(workerMemoryBytes({ OUTRIDER_MEMORY_MB: '100000000' })).toBe(totalmem());
  });

  it.each([128, 512, 884, 1_769, 3_538, 7_076, 10_240])(
    'of a worker of %i MB leaves room: merging, sorting, the runtime and user code fit together',
    (memoryMb) => {
      const sortMb = sortMemoryBytes(memoryMb * mib) / mib;
      const heapMb = userHeapMb(memoryMb * mib) ?? 0;
      expect(heapMb).toBeGreaterThanOrEqual(128);
      if (memoryMb < 884) return; // Smaller than any worker of ours: the least of everything.
      expect(2 * sortMb + 400).toBeLessThan(memoryMb);
      expect(2 * (sortMb - 40) + 192 + heapMb).toBeLessThanOrEqual(0.9 * memoryMb);
    },
  );
});
