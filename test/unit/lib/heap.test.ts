import fc from 'fast-check';
import { expect, it } from 'vitest';
import { Heap } from '../../../src/lib/heap.ts';

it('gives back what was put in, smallest first, whatever the order of calls', () => {
  const step = fc.option(fc.integer({ min: -20, max: 20 }), { nil: undefined });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const heap = new Heap<number>((a, b) => a < b);
      const held: number[] = [];
      for (const value of steps) {
        if (value === undefined) expect(heap.pop()).toBe(held.shift());
        else {
          heap.push(value);
          held.push(value);
          held.sort((a, b) => a - b);
        }
        expect(heap.peek()).toBe(held[0]);
        expect(heap.size).toBe(held.length);
      }
    }),
  );
});
