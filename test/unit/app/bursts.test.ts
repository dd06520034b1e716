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

describe('a burst of tiny jobs', () => {
  it('ends well, all 200 of them, with 20 environments for schedulers, steps and workers', async () => {
    const account = new BusyAccount({ environments: 20, totalSlots: 14, taskMs: 5_000, seed: 'burst' });
    await burst(200, account);
    const { executions } = account.counts;
    const launched = account.system.launches.length;
    expect(executions.filter(({ ended }) => ended === 'failed')).toEqual([]);
    expect(new Set(executions.map(({ jobId }) => jobId)).size).toBe(200);
    expect(launched).toBeLessThanOrEqual(800 * 1.05);
    expect(account.counts.mostResidents).toBeLessThanOrEqual(4);
  }, 300_000);
});
