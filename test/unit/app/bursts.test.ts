import { describe, expect, it } from 'vitest';
import type { JobSpecInput } from '../../../src/contracts/job-spec.ts';
import { BusyAccount } from '../../support/busy-account.ts';

const tiny = (name: string): JobSpecInput => ({
  name,
  stages: [
    {
      name: 'map',
      operator: 'grep',
      options: { pattern: 'a' },
      inputs: [{ s3: ['s3://data/in/'], splitBytes: 4 }],
    },
  ],
});

async function burst(jobs: number, account: BusyAccount): Promise<void> {
  await account.system.objects.write({ bucket: 'data', key: 'in/a' }, Buffer.from('one two three'));
  const submits = Array.from({ length: jobs }, (_, index) =>
    account.submit(tiny(`tiny-${index}`), `token-${index}`),
  );
  const all = Promise.all(submits);
  await account.untilEnded(jobs, 6 * 3_600_000);
  await all;
}

/** What a deployment allows where nobody has set anything. */
const totalSlots = 900;

describe('a burst of tiny jobs', () => {
  it.each([20, 10])(
    'ends well, all 200 of them, with %i environments for schedulers, steps and workers',
    async (environments) => {
      const account = new BusyAccount({ environments, totalSlots, taskMs: 5_000, seed: 'burst' });
      await burst(200, account);
      const { executions } = account.counts;
      const launched = account.system.launches.length;
      expect(executions.filter(({ ended }) => ended === 'failed')).toEqual([]);
      expect(new Set(executions.map(({ jobId }) => jobId)).size).toBe(200);
      // 800 tasks, and a twentieth of launches wasted at the most.
      expect(launched).toBeLessThanOrEqual(800 / 0.95);
      expect(account.counts.mostResidents).toBeLessThanOrEqual(4);
    },
    300_000,
  );

  it('wastes no launches on a change of residents', async () => {
    const account = new BusyAccount({
      environments: 12,
      totalSlots,
      taskMs: 20_000,
      seed: 'changes',
      stayMs: 120_000,
    });
    await burst(30, account);
    expect(account.counts.executions.filter(({ ended }) => ended === 'failed')).toEqual([]);
    expect(account.system.launches.length).toBeLessThanOrEqual(120 / 0.95);
  }, 300_000);
});
