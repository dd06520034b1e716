import { describe, expect, it } from 'vitest';
import type { SweepMark } from '../../../src/ports/sweep-mark.ts';
import { at } from './builders.ts';

/** What every mark must do. */
export function describeSweepMark(name: string, make: () => Promise<SweepMark>): void {
  describe(`${name} as a sweep mark`, () => {
    it('is nowhere at first, then where the latest run left it, and nowhere again', async () => {
      const mark = await make();
      expect(await mark.load()).toBeUndefined();
      await mark.save('page-2', at(1));
      expect(await mark.load()).toBe('page-2');
      await mark.save('page-1', at(0));
      expect(await mark.load()).toBe('page-2');
      await mark.save(undefined, at(2));
      expect(await mark.load()).toBeUndefined();
      await mark.save('page-3', at(3));
      expect(await mark.load()).toBe('page-3');
    });
  });
}
