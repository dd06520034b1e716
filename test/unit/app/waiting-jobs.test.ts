import { describe, expect, it } from 'vitest';
import type { BusyAccount } from '../../support/busy-account.ts';
import { account, oneTask, skewed, submit } from '../../support/small-account.ts';

const minute = 60_000;
const seconds = async ({ system }: BusyAccount, count: number): Promise<void> => {
  for (let passed = 0; passed < count; passed++) await system.clock.advance(1_000);
};
const waiting = async ({ roster }: BusyAccount) =>
  (await roster.view(100)).jobs.filter(({ resident }) => resident === undefined);

describe('a job that waits for a scheduler', () => {
  it.each([-3_600_000, 3_600_000])(
    'is taken on, and those behind it, though it was enlisted by a clock that is %s ms off',
    async (offMs) => {
      const made = await account({
        environments: 1_000,
        taskMs: 8 * minute,
        residents: 1,
        stayMs: 60 * minute,
        wrap: (deps, number) => (number === 17 ? { ...deps, clock: skewed(deps.clock, offMs) } : deps),
      });
      await submit(made, 16);
      await seconds(made, 5);
      void made.submit(oneTask('skewed'), 'skewed');
      await seconds(made, 5);
      for (let job = 0; job < 5; job++) void made.submit(oneTask(`behind-${job}`), `behind-${job}`);
      await seconds(made, 50);
      expect(await waiting(made)).toEqual([]);
      expect(made.counts.mostResidents).toBe(1);
    },
  );

  it.each([-3_600_000, 3_600_000])(
    'and whose execution was stopped leaves the roster, though its enlister was %s ms off',
    async (offMs) => {
      // One resident serves 64 jobs at most: the last waits for as long as they are at work.
      const made = await account({
        environments: 1_000,
        totalSlots: 100,
        taskMs: 20 * minute,
        residents: 1,
        stayMs: 60 * minute,
        wrap: (deps, number) => (number > 64 ? { ...deps, clock: skewed(deps.clock, offMs) } : deps),
      });
      await submit(made, 64);
      await seconds(made, 45);
      expect(await waiting(made)).toEqual([]);
      const id = made.submit(oneTask('stopped'), 'stopped');
      await seconds(made, 10);
      const stopped = await id;
      const { token = '' } = (await made.roster.tokens([stopped])).get(stopped) ?? {};
      made.stopExecution(token);
      await seconds(made, 80);
      expect((await made.roster.view(100)).jobs.map(({ jobId }) => jobId)).not.toContain(stopped);
    },
  );
});
