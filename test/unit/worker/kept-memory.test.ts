import { afterEach, describe, expect, it } from 'vitest';
import { dropMemory, keepMemory, takeMemory } from '../../../src/worker/kept-memory.ts';
import { SortArena } from '../../../src/worker/sort-arena.ts';

afterEach(dropMemory);

describe('memory that is kept', () => {
  it('goes to the next that takes as much, and to one alone', () => {
    const memory = takeMemory(64);
    keepMemory(memory);
    expect(takeMemory(64)).toBe(memory);
    expect(takeMemory(64)).not.toBe(memory);
  });

  it('goes to nobody who takes less or more, nor after it was let go of', () => {
    const memory = takeMemory(64);
    keepMemory(memory);
    expect(takeMemory(63)).toHaveProperty('byteLength', 63);
    keepMemory(memory);
    dropMemory();
    expect(takeMemory(64)).not.toBe(memory);
  });

  it('shows nothing of the records that were in it', () => {
    const sorted = (arena: SortArena, keys: readonly string[]): string[] => {
      for (const key of keys) expect(arena.add(Buffer.from(key), Buffer.from('v'), 0)).toBe(true);
      arena.sort();
      return keys.map((_, rank) => {
        arena.moveTo(rank);
        return arena.bytes.subarray(arena.keyStart, arena.end).toString();
      });
    };
    const first = new SortArena(4_096, 1);
    expect(sorted(first, ['zzzzzzzz', 'yyyy', 'zzzzzzz', 'y\u00ff'])).toEqual([
      'yyyyv',
      'y\u00ffv',
      'zzzzzzzv',
      'zzzzzzzzv',
    ]);
    first.release();
    const second = new SortArena(4_096, 1);
    expect(second.bytes.buffer).toBe(first.bytes.buffer);
    expect(sorted(second, ['b', '', 'a', 'aa'])).toEqual(['v', 'av', 'aav', 'bv']);
  });
});
