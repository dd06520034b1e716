import fc from 'fast-check';
import { expect, it } from 'vitest';
import { TimedHeap } from '../../../src/lib/timed-heap.ts';

it('gives events back by time, and those of one time by number', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 20 })), (times) => {
      const heap = new TimedHeap(1);
      times.forEach((time, id) => {
        heap.push(time, id);
      });
      const given: (readonly [number, number])[] = [];
      while (heap.size > 0) given.push([heap.time, heap.pop()]);
      const sorted = times.map((time, id) => [time, id] as const).sort((a, b) => a[0] - b[0] || a[1] - b[1]);
      expect(given).toEqual(sorted);
    }),
  );
});

it('is empty once it is cleared', () => {
  const heap = new TimedHeap();
  heap.push(1, 7);
  heap.clear();
  expect([heap.size, heap.time, heap.pop()]).toEqual([0, Infinity, -1]);
});
