import { describe, expect, it } from 'vitest';
import { LossBookKeeper } from '../../../../src/app/loss-book-keeper.ts';
import type { JobId } from '../../../../src/contracts/ids.ts';
import { epochMs } from '../../../../src/contracts/units.ts';
import { type LossBook, lossesOfOthers, tellLosses } from '../../../../src/core/policy/mantri/loss-book.ts';

const dayMs = 86_400_000;
const day = (days: number) => epochMs(days * dayMs);
const seen = (outputs: number, lost: number) => new Map([['zone', { outputs, lost }]]);
const told = (book: LossBook, of: string, counts: ReturnType<typeof seen>, at: number): LossBook =>
  tellLosses(book, { of, counts }, day(at));

describe('the loss book', () => {
  it('knows a place by its losses only, and then also by those who lost nothing there', () => {
    const clean = told([], 'a', seen(10, 0), 1);
    expect(clean).toEqual([]);
    const lossy = told(clean, 'b', seen(10, 5), 2);
    expect(lossesOfOthers(told(lossy, 'c', seen(30, 0), 3), 'd', day(3))).toEqual(seen(40, 5));
  });

  it('counts a job once, by what it told last, and not for itself', () => {
    const twice = told(told([], 'a', seen(10, 5), 1), 'a', seen(12, 6), 1);
    expect(lossesOfOthers(twice, 'b', day(1))).toEqual(seen(12, 6));
    expect(lossesOfOthers(twice, 'a', day(1))).toEqual(new Map());
  });

  it('forgets what is two weeks old, and a place that has lost nothing since', () => {
    const book = told(told([], 'a', seen(10, 5), 0), 'b', seen(10, 0), 10);
    expect(lossesOfOthers(book, 'c', day(14))).toEqual(seen(20, 5));
    expect(lossesOfOthers(book, 'c', day(15))).toEqual(seen(10, 0));
    expect(told(book, 'c', seen(10, 0), 15)).toEqual([]);
  });

  it('holds the last 32 jobs of a place, and eight places', () => {
    let book: LossBook = [];
    for (let job = 0; job < 40; job++) book = told(book, `job ${job}`, seen(1, 1), job / 100);
    expect(book[0]?.signs.map(({ of }) => of)).toEqual(
      Array.from({ length: 32 }, (_, job) => `job ${job + 8}`),
    );
    for (let place = 0; place < 10; place++)
      book = tellLosses(
        book,
        { of: 'job', counts: new Map([[`place ${place}`, { outputs: 1, lost: 1 }]]) },
        day(1 + place),
      );
    expect(book.map(({ place }) => place)).toEqual([9, 8, 7, 6, 5, 4, 3, 2].map((place) => `place ${place}`));
  });

  it('is as good as empty where it cannot be read or written', async () => {
    const warned: string[] = [];
    const log = { info: (): void => undefined, warn: (event: string) => void warned.push(event) };
    const refused = (): Promise<never> => Promise.reject(new Error('away'));
    const keeper = new LossBookKeeper({ read: refused, write: refused }, log);
    expect(await keeper.seenByOthers('a' as JobId, day(1))).toEqual(new Map());
    await keeper.keep('a' as JobId, seen(1, 1), day(1));
    expect(warned).toEqual(['loss book not read', 'loss book not written']);
  });
});
