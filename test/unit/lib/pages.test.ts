import { describe, expect, it } from 'vitest';
import { eachPage } from '../../../src/lib/pages.ts';

describe('pages of a list', () => {
  const next: Readonly<Record<string, string>> = { '': 'a', a: 'b' };
  const ask = (cursor = ''): Promise<{ at: string; cursor?: string }> => {
    const found = next[cursor];
    return Promise.resolve({ at: cursor, ...(found === undefined ? {} : { cursor: found }) });
  };

  it.each([
    [10, ['', 'a', 'b']],
    [3, ['', 'a', 'b']],
    [2, ['', 'a']],
    [0, []],
  ])('are each asked for by the one before, and no more than %d', async (most, expected) => {
    const seen: string[] = [];
    for await (const { at } of eachPage(ask, most)) seen.push(at);
    expect(seen).toEqual(expected);
  });
});
