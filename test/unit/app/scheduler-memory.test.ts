import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const megabyte = 1024 * 1024;

/** Runs a module in a process of its own, with the bounds that Lambda gives V8 in a function of so many megabytes. */
function measured(file: string, count: readonly number[], functionMb: number): Record<string, number> {
  const path = fileURLToPath(new URL(`../../support/${file}`, import.meta.url));
  const bounds = [
    `--max-semi-space-size=${String(Math.floor(functionMb * 0.05))}`,
    `--max-old-space-size=${String(Math.floor(functionMb * 0.9))}`,
  ];
  const printed = execFileSync(process.execPath, [...bounds, path, ...count.map(String)]).toString();
  return JSON.parse(printed) as Record<string, number>;
}

describe('memory of those that coordinate', () => {
  it('is under 300 MB for a scheduler that takes a shuffle of 10,000 × 100 over and opens it', () => {
    const { peakBytes, bytes, requests, lastByte } = measured('scheduler-memory.ts', [10_000, 100], 512);
    expect(peakBytes).toBeLessThan(300 * megabyte);
    // A million segments of some 75 bytes, in parts of 8 MiB; every line found where it lies.
    expect(bytes).toBeGreaterThan(70_000_000);
    expect(lastByte).toBe(bytes);
    expect(requests).toBe(10);
  });

  it('does not grow with the manifest: 1,000 × 1,000 segments take as little', () => {
    const { peakBytes } = measured('scheduler-memory.ts', [1_000, 1_000], 512);
    expect(peakBytes).toBeLessThan(300 * megabyte);
  });

  it('is under half of that of its function for Plan over 100,000 objects, which it gives to 391 tasks', () => {
    const { peakBytes, tasks, bytes, largestBytes } = measured('plan-memory.ts', [100_000], 1_024);
    expect(tasks).toBe(391);
    expect(peakBytes).toBeLessThan(512 * megabyte);
    expect(bytes).toBeGreaterThan(15_000_000);
    expect(largestBytes).toBeLessThanOrEqual(8 * megabyte);
  });
});
