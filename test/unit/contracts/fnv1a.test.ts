import { describe, expect, it } from 'vitest';
import { fnv1a } from '../../../src/contracts/fnv1a.ts';

describe('the hash of a text', () => {
  it('is as its authors have published it', () => {
    // Source: http://www.isthe.com/chongo/src/fnv/test_fnv.c, fnv1a_32.
    expect(['', 'a', 'b', 'foobar'].map(fnv1a)).toEqual([0x811c9dc5, 0xe40c292c, 0xe70c2de5, 0xbf9cf968]);
  });

  it('is of the UTF-8 bytes, wherever in the text those are more than letters', () => {
    // 64-bit arithmetic, after the published definition.
    const expected = (text: string): number =>
      Number(
        [...new TextEncoder().encode(text)].reduce(
          (hash, byte) => ((hash ^ BigInt(byte)) * 0x01000193n) & 0xffffffffn,
          0x811c9dc5n,
        ),
      );
    for (const text of ['é', 'Zürich', 'Straße/ß', 'job-日本/map/0', '😀', 'half \ud83d alone'])
      expect(fnv1a(text)).toBe(expected(text));
  });
});
