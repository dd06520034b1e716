import { describe, expect, it } from 'vitest';
import type { JobId } from '../../../src/contracts/ids.ts';
import type { JournalPiece, JournalStore } from '../../../src/ports/journal-store.ts';
import { at, freshJobId } from './builders.ts';

const piece = (
  epoch: number,
  number: number,
  text = `${String(epoch)}/${String(number)}\n`,
): JournalPiece => ({
  epoch,
  number,
  text,
});

async function all(store: JournalStore, jobId: JobId): Promise<readonly JournalPiece[]> {
  const found: JournalPiece[] = [];
  for (;;) {
    const { pieces, isLast } = await store.page(jobId, found.at(-1));
    found.push(...pieces);
    if (isLast) return found;
  }
}

/** What every store of journals must do. */
export function describeJournalStore(name: string, make: () => JournalStore | Promise<JournalStore>): void {
  describe(`${name} as a store of journals`, () => {
    it('gives pieces by epoch and number, past the tenth, page by page', async () => {
      const store = await make();
      const jobId = freshJobId();
      const pieces = [1, 2, 11].flatMap((epoch) =>
        Array.from({ length: 12 }, (_, number) => piece(epoch, number)),
      );
      for (const each of pieces.toReversed()) await store.append(jobId, each, at(1));
      expect(await all(store, jobId)).toEqual(pieces);
      expect(await all(store, freshJobId())).toEqual([]);
    });

    it('keeps what was written first', async () => {
      const store = await make();
      const jobId = freshJobId();
      await store.append(jobId, piece(1, 0, 'first'), at(1));
      await store.append(jobId, piece(1, 0, 'other'), at(2));
      expect(await all(store, jobId)).toEqual([piece(1, 0, 'first')]);
    });

    it('keeps a long piece whole', async () => {
      const store = await make();
      const jobId = freshJobId();
      const long = Array.from(
        { length: 4_000 },
        (_, index) => `{"kind":"held","at":${String(index * 7_919)}}\n`,
      );
      await store.append(jobId, piece(1, 0, long.join('')), at(1));
      expect(await all(store, jobId)).toEqual([piece(1, 0, long.join(''))]);
    });
  });
}
