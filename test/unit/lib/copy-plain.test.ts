import { expect, it } from 'vitest';
import { copyPlain } from '../../../src/lib/copy-plain.ts';

it('copies what structuredClone does, deeply, and shares nothing with it', () => {
  const original: { list: unknown[] } & Record<string, unknown> & { sizes: Uint32Array } = {
    text: 'a',
    none: undefined,
    nothing: null,
    list: [1, [2, { deep: true }], undefined],
    sizes: Uint32Array.of(1, 2, 3),
    at: new Date(5),
    places: new Map([['x', { y: 1 }]]),
  };
  const copy = copyPlain(original);
  expect(copy).toStrictEqual(structuredClone(original));
  original.list[1] = 'changed';
  original.sizes[0] = 9;
  expect(copy.list).toStrictEqual([1, [2, { deep: true }], undefined]);
  expect([...copy.sizes]).toEqual([1, 2, 3]);
});
