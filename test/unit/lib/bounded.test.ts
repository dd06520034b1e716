import { describe, expect, it } from 'vitest';
import { forEachBounded } from '../../../src/lib/bounded.ts';

describe('forEachBounded', () => {
  it('takes each item once, in order, with no more under way than allowed', async () => {
    const begun: number[] = [];
    let [running, most] = [0, 0];
    await forEachBounded([1, 2, 3, 4, 5, 6, 7], 3, async (item) => {
      begun.push(item);
      most = Math.max(most, ++running);
      await Promise.resolve();
      running -= 1;
    });
    expect(begun).toEqual([1, 2, 3, 4, 5, 6, 7]);
    expect(most).toBe(3);
  });

  it('begins nothing after a failure, waits for what is under way, and throws the first', async () => {
    const ended: number[] = [];
    const work = async (item: number): Promise<void> => {
      if (item === 2) throw new Error('two');
      await new Promise((resolve) => setImmediate(resolve));
      ended.push(item);
    };
    await expect(forEachBounded([1, 2, 3, 4], 2, work)).rejects.toThrow('two');
    expect(ended).toEqual([1]);
  });

  it('does nothing with nothing', async () => {
    await forEachBounded([], 4, () => Promise.reject(new Error('called')));
  });
});
