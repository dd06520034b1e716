import { expect } from 'vitest';
import type { EmbeddedSystem } from './embedded-system.ts';

/**
 * Waits until jobs have left nothing in the bucket. A job is told to have ended before Finish has removed what it kept
 * in between, and a loser may still be removing what it wrote: whoever looks once, at once, meets them at it.
 */
export async function expectNothingLeft(system: EmbeddedSystem, timeoutMs = 15_000): Promise<void> {
  await expect.poll(() => system.leftovers(), { timeout: timeoutMs }).toEqual([]);
}

/** Waits until jobs have left nothing in the bucket and hold no slots, clones included. */
export async function expectNothingHeld(system: EmbeddedSystem, timeoutMs: number): Promise<void> {
  await expectNothingLeft(system, timeoutMs);
  await expect
    .poll(() => system.capacity(), { timeout: timeoutMs })
    .toMatchObject({ usedSlots: 0, cloneSlots: 0, grants: {} });
}
