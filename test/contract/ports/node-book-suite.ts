import { describe, expect, it } from 'vitest';
import { NodeBookKeeper } from '../../../src/app/node-book-keeper.ts';
import type { JobId } from '../../../src/contracts/ids.ts';
import { epochMs } from '../../../src/contracts/units.ts';
import type { NodeBook } from '../../../src/core/model/node-book.ts';
import type { NodeBookStore } from '../../../src/ports/node-book-store.ts';
import { jobOf, type TaskSpec } from '../../support/policy-views.ts';
import { itKeepsABook, lasting } from './book-store-suite.ts';
import { at } from './builders.ts';

const book: NodeBook = [
  {
    node: 'a',
    zone: 'z',
    signs: [
      { of: 'x', at: at(1), slowdown: 2.5, contrasted: true },
      { of: 'y', at: at(2) },
    ],
  },
];

/** What every store of the node book must do, and what its keeper makes of it. `make` gives an empty one. */
export function describeNodeBookStore(
  name: string,
  make: () => NodeBookStore | Promise<NodeBookStore>,
): void {
  describe(`${name} as a store of the node book`, () => {
    itKeepsABook(make, { book, empty: [] });

    it('holds what all jobs of all processes have learned, and is not written where nobody has', async () => {
      const store = await make();
      const log = { info: () => undefined, warn: () => undefined };
      const usual: TaskSpec[] = [1, 2, 3, 4].flatMap((node) => [
        { doneMs: 1_000, node: `n${String(node)}` },
        { doneMs: 1_000, node: `n${String(node)}` },
      ]);
      const slowOn = (node: string): TaskSpec[] => [
        ...usual,
        { doneMs: 3_000, node },
        { doneMs: 3_000, node },
      ];
      const timed = lasting(store);
      const now = epochMs(20_000);
      const run = async (jobId: string, tasks: readonly TaskSpec[]): Promise<readonly string[]> => {
        const [keeper, state] = [new NodeBookKeeper(timed, log), jobOf(tasks)];
        await keeper.open(now);
        const told = keeper.learn(jobId as JobId, state, now).map(({ node }) => node);
        await keeper.keep(jobId as JobId, state, now, true);
        return told;
      };
      expect(await run('quiet-0123456789ab', usual)).toEqual([]);
      expect((await store.read()).version).toBe(0);
      // Both read before either writes.
      await Promise.all([run('one-0123456789ab', slowOn('x')), run('two-0123456789ab', slowOn('y'))]);
      expect(await run('late-0123456789ab', usual)).toEqual(['x', 'y']);
      expect((await store.read()).version).toBe(2);
    });
  });
}
