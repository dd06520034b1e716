import { describe, expect, it } from 'vitest';
import { ZoneBookKeeper } from '../../../src/app/zone-book-keeper.ts';
import type { JobId } from '../../../src/contracts/ids.ts';
import { epochMs } from '../../../src/contracts/units.ts';
import type { ZoneBook } from '../../../src/core/model/zone-book.ts';
import type { ZoneBookStore } from '../../../src/ports/zone-book-store.ts';
import { jobOf, type TaskSpec } from '../../support/policy-views.ts';
import { itKeepsABook, lasting } from './book-store-suite.ts';
import { at } from './builders.ts';

const book: ZoneBook = [
  { of: 'x', at: at(1), zones: [{ zone: 'use1-az1', factor: 2.5, samples: 4 }] },
  { of: 'y', at: at(2), zones: [] },
];
const log = { info: (): void => undefined, warn: (): void => undefined };

/** What every store of the zone book must do, and what its keeper makes of it. `make` gives an empty one. */
export function describeZoneBookStore(
  name: string,
  make: () => ZoneBookStore | Promise<ZoneBookStore>,
): void {
  describe(`${name} as a store of the zone book`, () => {
    itKeepsABook(make, { book, empty: [] });

    it('holds what all jobs of all processes have found, once each, and is not written where zones are alike', async () => {
      const store = await make();
      const timed = lasting(store);
      const now = epochMs(60_000);
      const slowIn = (signs: ZoneBook): readonly string[] =>
        signs.map(({ zones }) => zones.find(({ factor }) => factor > 1)?.zone ?? '').toSorted();
      const run = async (jobId: string, slow: string | undefined): Promise<readonly string[]> => {
        const keeper = new ZoneBookKeeper(timed, log);
        const tasks = ['a', 'b', 'c'].flatMap((zone) =>
          Array.from({ length: 4 }, (_, node): TaskSpec => ({
            ...{ doneMs: zone === slow ? 6_000 : 1_000, zone, node: `${zone}${String(node)}` },
          })),
        );
        const state = jobOf(tasks, 'fargate');
        const told = await keeper.told(now);
        await keeper.keep(jobId as JobId, state, now, true);
        return slowIn(told);
      };
      expect(await run('quiet-0123456789ab', undefined)).toEqual([]);
      expect((await store.read()).version).toBe(0);
      // Both read before either writes.
      await Promise.all([run('one-0123456789ab', 'a'), run('two-0123456789ab', 'b')]);
      const both = await store.read();
      expect([both.version, slowIn(both.book)]).toEqual([2, ['a', 'b']]);
      // By whoever took it over. Of two that were done at once one tells of all zones.
      expect(await run('one-0123456789ab', 'a')).toHaveLength(1);
      expect(await store.read()).toEqual(both);
    });
  });
}
