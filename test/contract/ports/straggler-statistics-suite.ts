import { describe, expect, it } from 'vitest';
import type { StragglerStatistics } from '../../../src/ports/straggler-statistics.ts';
import { at } from './builders.ts';

/** What every store of straggler statistics must do. `make` gives an empty one. */
export function describeStragglerStatistics(
  name: string,
  make: () => StragglerStatistics | Promise<StragglerStatistics>,
): void {
  describe(`${name} as a store of straggler statistics`, () => {
    it('knows nothing at first', async () => {
      expect(await (await make()).recent(at(0))).toEqual({ attempts: 0, stragglers: 0 });
    });

    it('adds up what all jobs have seen, whoever adds at once', async () => {
      const statistics = await make();
      await Promise.all(
        Array.from({ length: 20 }, () => statistics.add({ attempts: 10, stragglers: 1 }, at(0))),
      );
      expect(await statistics.recent(at(1))).toEqual({ attempts: 200, stragglers: 20 });
    });

    it('forgets what is older than the last full hour', async () => {
      const statistics = await make();
      await statistics.add({ attempts: 10, stragglers: 1 }, at(0));
      await statistics.add({ attempts: 5, stragglers: 2 }, at(3_600));
      expect(await statistics.recent(at(3_600))).toEqual({ attempts: 15, stragglers: 3 });
      expect(await statistics.recent(at(7_200))).toEqual({ attempts: 5, stragglers: 2 });
      expect(await statistics.recent(at(10_800))).toEqual({ attempts: 0, stragglers: 0 });
    });
  });
}
