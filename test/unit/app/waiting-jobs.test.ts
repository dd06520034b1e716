import { describe, expect, it } from 'vitest';
import type { JobId } from '../../../src/contracts/ids.ts';
import { renderJob } from '../../../src/report/job-table.ts';
import { makeStyle } from '../../../src/report/style.ts';
import type { BusyAccount } from '../../support/busy-account.ts';
import { FreezingProcess } from '../../support/freezing.ts';
import { account, oneTask, skewed, submit } from '../../support/small-account.ts';

const minute = 60_000;
const plain = makeStyle({ isTty: false, env: {} });
const seconds = async ({ system }: BusyAccount, count: number): Promise<void> => {
  for (let passed = 0; passed < count; passed++) await system.clock.advance(1_000);
};
const waiting = async ({ roster }: BusyAccount) =>
  (await roster.view(100)).jobs.filter(({ resident }) => resident === undefined);

const told = async (made: BusyAccount, id: JobId): Promise<string> => {
  const job = await made.system.jobs.load(id);
  return job === undefined ? '' : renderJob(job, undefined, plain).join('\n');
};

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

  it('and whose execution was stopped leaves the roster, though its enlister was an hour ahead', async () => {
    // One resident serves 64 jobs at most: the last waits for as long as they are at work.
    const made = await account({
      environments: 1_000,
      totalSlots: 100,
      taskMs: 20 * minute,
      residents: 1,
      stayMs: 60 * minute,
      wrap: (deps, number) => (number > 64 ? { ...deps, clock: skewed(deps.clock, 3_600_000) } : deps),
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
  });

  it('is told as waiting until somebody serves it, and no longer, however soon that is', async () => {
    const seen = { waited: 0, served: 0 };
    for (let ms = 15_000; ms <= 26_000; ms += 2_000) {
      const made = await account({
        environments: 1_000,
        taskMs: 20_000,
        residents: 1,
        stayMs: 60 * minute,
      });
      await submit(made, 16);
      await made.system.clock.advance(ms - 1_000);
      const late = made.submit(oneTask('late'), 'late');
      for (let second = 0; second < 15; second++) {
        await made.system.clock.advance(1_000);
        const [job] = (await made.roster.view(99)).jobs.filter(({ jobId }) => jobId.startsWith('late'));
        const text = job === undefined ? '' : await told(made, job.jobId);
        if (text.includes('waiting for a scheduler')) seen.waited += 1;
      }
      const id = await late;
      const [job] = (await made.roster.view(99)).jobs.filter(({ jobId }) => jobId === id);
      if (job?.resident === undefined) continue;
      seen.served += 1;
      expect(await told(made, id), `submitted after ${ms} ms`).not.toContain('waiting for a scheduler');
    }
    expect(seen.waited).toBeGreaterThan(3);
    expect(seen.served).toBeGreaterThan(3);
  });

  it('is not told as waiting once it is served, though its enlister was an hour ahead, or slept and told so late', async () => {
    const process = new FreezingProcess({ call: 2, when: 'before' });
    const made = await account({
      environments: 1_000,
      taskMs: 2 * minute,
      residents: 1,
      stayMs: 60 * minute,
      wrap: (deps, number) => {
        if (number === 17) return { ...deps, clock: skewed(deps.clock, 3_600_000) };
        return number === 18 ? process.wrap(deps, ['jobs']) : deps;
      },
    });
    await submit(made, 16);
    const ids = ['ahead', 'asleep'].map(async (name) => made.submit(oneTask(name), name));
    await seconds(made, 10);
    expect(await process.frozen).toBe('jobs.update');
    const [ahead, asleep] = await Promise.all(ids);
    if (ahead === undefined || asleep === undefined) throw new Error('not submitted');
    expect(await told(made, ahead)).toContain('waiting for a scheduler');
    expect(await told(made, asleep)).not.toContain('waiting for a scheduler');
    await seconds(made, 50);
    expect(await waiting(made)).toEqual([]);
    expect(await told(made, ahead)).not.toContain('waiting for a scheduler');
    process.thaw();
    await seconds(made, 5);
    expect((await made.system.jobs.load(asleep))?.waitingSince).toBeDefined();
    expect(await told(made, asleep)).not.toContain('waiting for a scheduler');
  });
});
