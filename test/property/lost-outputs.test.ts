import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { JobSpecInput } from '../../src/contracts/job-spec.ts';
import { builtinJob } from '../../src/operators/builtin-jobs.ts';
import { arbIllsOf, arbLossUpTo } from '../support/arb-hardships.ts';
import { complaintsOf, type Loss, lossyJob } from '../support/lossy-jobs.ts';
import { draws } from '../support/draws.ts';

/** Lines that all differ, of about ten bytes, in no order. */
const lines = Array.from({ length: 400 }, (_, line) => `${(line * 7919) % 10_007} ${line}`);
const input = `${lines.join('\n')}\n`;
const sorted = `${lines.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))).join('\n')}\n`;
const sort: JobSpecInput = {
  ...builtinJob('sort', { inputs: ['s3://input/a'], splitBytes: 1_200, partitions: 3 }),
  policy: 'none',
};

/** No task may be lost as often as fails a job: so many losses can hit one. */
const arbLosses = fc.array(arbLossUpTo(14), { minLength: 1, maxLength: 4 });
/** One that is frozen for long reports late what it did not find: its task, and that output's, were done again. */
const workers = ['sample/0/0 1', 'partition/1/0 1', 'merge/0/0 1', 'merge/1/0 1', 'merge/1/1 1'];
const arbIlls = arbIllsOf(workers);

describe('a job whose outputs are removed, cut and changed while it runs', () => {
  it('ends exact, makes again what was harmed and needed alone, and once for each loss', async () => {
    await fc.assert(
      fc.asyncProperty(arbLosses, async (losses) => {
        const outcome = await lossyJob({ spec: sort, input, losses });
        expect(complaintsOf(outcome)).toEqual([]);
        expect(outcome.output).toBe(sorted);
      }),
      { numRuns: draws(40) },
    );
  }, 600_000);

  it('leaves on record when the attempts had ended whose outputs were lost later', async () => {
    const losses: readonly Loss[] = [2, 3, 4].map((which) => ({ before: 6, which, harm: 'removed' }));
    const { attempts, decisions } = await lossyJob({ spec: sort, input, losses });
    const lost = decisions.flatMap((each) => (each.kind === 'lose-output' ? [each.attemptId] : []));
    expect(lost).toContain('partition/0/0');
    const ran = attempts
      .filter(({ state }) => state === 'done')
      .map(({ attemptId, claimedAt = 0, endedAt = 0 }) => [attemptId, endedAt - claimedAt]);
    // Each works for half a second; those that were lost had ended as long ago as before.
    expect(new Set(ran.map(([, ms]) => ms))).toEqual(new Set([500]));
    expect(ran.map(([id]) => id)).toEqual(expect.arrayContaining(lost));
  }, 60_000);

  it('does so also where parts are gone before they are published', async () => {
    const long = lines.map((line) => `${line} ${'x'.repeat(60)}`);
    const outcome = await lossyJob({
      ...{ spec: sort, input: `${long.join('\n')}\n`, uploads: [2, 1], losses: [] },
    });
    expect(complaintsOf(outcome)).toEqual([]);
    expect(outcome.harmed.size).toBeGreaterThan(1);
    expect(outcome.job.attempts.recomputed).toBe(3);
    expect(outcome.output).toBe(`${long.toSorted().join('\n')}\n`);
  }, 60_000);

  it('fails at once where its own input is gone, and names it', async () => {
    const { job } = await lossyJob({ spec: sort, input, losses: [{ before: 1, which: 0, harm: 'source' }] });
    expect(job.state).toBe('failed');
    expect(job.error?.message).toContain('a: gone since the job was planned');
    expect(job.attempts.launched).toBe(1);
  }, 60_000);

  it('fails where the output of one task is lost over and over, and says so', async () => {
    const losses = Array.from({ length: 40 }, (_, place): Loss => ({
      ...{ before: place + 2, which: 0, harm: 'removed' },
    }));
    const { job } = await lossyJob({ spec: sort, input, losses });
    expect(job.state).toBe('failed');
    expect(job.error?.message).toContain(
      'the output of task sample/0 was lost 5 times, at last that of attempt sample/0/4 (missing)',
    );
  }, 60_000);

  it('does so also where schedulers and workers freeze, die and err', async () => {
    await fc.assert(
      fc.asyncProperty(arbLosses, arbIlls, async (losses, ills) => {
        const outcome = await lossyJob({ spec: sort, input, losses, ills });
        expect(complaintsOf(outcome)).toEqual([]);
        expect(outcome.output).toBe(sorted);
      }),
      {
        numRuns: draws(40),
        examples: [
          // Two freezes that overlap, the second until long after its environment's time is up: its task has not used that.
          [
            [{ before: 2, which: 0, harm: 'removed' }],
            {
              'merge/1/0 1': [
                { kind: 'freeze-after', call: 4, ms: 6_000 },
                { kind: 'freeze-before', call: 5, ms: 1_200_000 },
              ],
            },
          ],
        ],
      },
    );
  }, 600_000);
});
