import { describe, expect, it } from 'vitest';
import { LossBookKeeper } from '../../../src/app/loss-book-keeper.ts';
import type { JobId } from '../../../src/contracts/ids.ts';
import type { EpochMs } from '../../../src/contracts/units.ts';
import type { LossBook } from '../../../src/core/policy/mantri/loss-book.ts';
import type { LossBookStore } from '../../../src/ports/loss-book-store.ts';
import { itKeepsABook, lasting } from './book-store-suite.ts';
import { at } from './builders.ts';

const book: LossBook = [{ place: 'a', signs: [{ of: 'x', at: at(1), outputs: 8, lost: 2 }] }];
const log = { info: (): void => undefined, warn: (): void => undefined };
const seen = (place: string, outputs: number, lost: number) => new Map([[place, { outputs, lost }]]);

/** What every store of the loss book must do, and what its keeper makes of it. `make` gives an empty one. */
export function describeLossBookStore(
  name: string,
  make: () => LossBookStore | Promise<LossBookStore>,
): void {
  describe(`${name} as a store of the loss book`, () => {
    itKeepsABook(make, { book, empty: [] });

    it('has jobs know what others have seen that ended, once each, and is not written where nothing was lost', async () => {
      const store = await make();
      const timed = lasting(store);
      const keeper = (): LossBookKeeper => new LossBookKeeper(timed, log);
      const keep = (job: string, counts: ReturnType<typeof seen>, now: EpochMs = at(20)): Promise<void> =>
        keeper().keep(job as JobId, counts, now);
      await keep('quiet', seen('a', 10, 0));
      expect((await store.read()).version).toBe(0);
      await Promise.all([keep('one', seen('a', 8, 2)), keep('two', seen('b', 6, 6))]);
      await keep('one', seen('a', 8, 2)); // By whoever took it over.
      await keep('late', seen('a', 10, 0));
      expect((await store.read()).version).toBe(3);
      expect(await keeper().seenByOthers('next' as JobId, at(30))).toEqual(
        new Map([...seen('a', 18, 2), ...seen('b', 6, 6)]),
      );
      expect(await keeper().seenByOthers('two' as JobId, at(30))).toEqual(seen('a', 18, 2));
    });
  });
}
