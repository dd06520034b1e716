import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { epochMs } from '../../../src/contracts/units.ts';
import {
  mergeZoneBooks,
  newestOfZones,
  saysMoreOfZones,
  type ZoneBook,
  type ZoneSign,
} from '../../../src/core/model/zone-book.ts';

const minuteMs = 60_000;
const now = epochMs(100 * minuteMs);
const sign = (of: string, minutesAgo: number): ZoneSign => ({
  of,
  at: epochMs(now - minutesAgo * minuteMs),
  zones: [
    { zone: 'a', factor: 3, samples: 4 },
    { zone: 'b', factor: 0.5, samples: 9 },
  ],
});
const names = (book: ZoneBook): string[] => book.map(({ of }) => of);

describe('the book of zones', () => {
  it('has the newest word first, each once, and nothing older than a quarter of an hour', () => {
    const book = mergeZoneBooks([sign('x', 3), sign('old', 16)], [sign('y', 1), sign('x', 3)], now);
    expect(names(book)).toEqual(['y', 'x']);
  });

  it('takes the word of a clock that is ahead a little, and none that would not be old for hours', () => {
    expect(names(mergeZoneBooks([sign('ahead', -15)], [sign('wrong', -16)], now))).toEqual(['ahead']);
  });

  it('answers the newest word of each zone, as long as it tells something', () => {
    const of = (name: string, minutesAgo: number, ...zones: string[]): ZoneSign => ({
      ...sign(name, minutesAgo),
      zones: zones.map((zone) => ({ zone, factor: 3, samples: 4 })),
    });
    const book = [of('x', 1, 'a', 'b'), of('y', 2, 'b'), of('z', 3, 'b', 'c'), of('old', 14, 'a', 'd')];
    expect(names(newestOfZones(book, now))).toEqual(['x', 'z', 'old']);
    expect(names(newestOfZones(book, epochMs(now + 2 * minuteMs)))).toEqual(['x', 'z']);
  });

  it('keeps sixteen', () => {
    const many = Array.from({ length: 40 }, (_, place) => sign(`s${String(place)}`, place / 4));
    expect(names(mergeZoneBooks([], many, now))).toEqual(names(many.slice(0, 16)));
  });

  it('says more where it has the word of a stage that the other has not', () => {
    expect(saysMoreOfZones([sign('x', 3)], [])).toBe(true);
    expect(saysMoreOfZones([sign('x', 3)], [sign('y', 1), sign('x', 3)])).toBe(false);
    expect(saysMoreOfZones([], [])).toBe(false);
  });

  it('comes out alike in whatever order and however often books are put together', () => {
    // A stage has one word, whoever tells it.
    const books = fc.array(
      fc.array(
        fc.nat(30).map((place) => sign(`s${String(place)}`, place * 0.6)),
        { maxLength: 12 },
      ),
      { minLength: 1, maxLength: 4 },
    );
    fc.assert(
      fc.property(books, (all) => {
        const together = (list: readonly ZoneBook[]): ZoneBook =>
          list.reduce((book, each) => mergeZoneBooks(book, each, now), []);
        expect(together([...all].reverse())).toEqual(together(all));
        expect(together([...all, ...all])).toEqual(together(all));
      }),
    );
  });
});
