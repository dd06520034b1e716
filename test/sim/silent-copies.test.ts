import { describe, expect, it } from 'vitest';
import type { PolicyName } from '../../src/contracts/policy-names.ts';
import type { JobOutcome } from '../../src/sim/outcome.ts';
import type { ScenarioInput } from '../../src/sim/scenario.ts';
import { runOne } from './scenarios.ts';

/** Most attempts of one task that are not retries of failed ones: originals, backups and restarts. */
const mostAttempts = 10;

/**
 * Twenty tasks of 10 s that read their input only at their very end, as programs do that compute first; the last
 * takes five minutes, whoever runs it.
 */
const unreadFor = (policy: PolicyName, heldMs: number, slots = 40): ScenarioInput => ({
  cluster: { nodes: [{ count: slots }] },
  reports: { everyMs: 2_000 },
  maxEvents: 200_000,
  jobs: [
    {
      policy,
      stages: [
        {
          name: 'map',
          tasks: 20,
          workMs: 10_000,
          attemptsMs: [...Array.from({ length: 19 }, () => [10_000]), [heldMs]],
          progress: [
            [0, 0],
            [0.999, 0],
            [1, 1],
          ],
        },
      ],
    },
  ],
});

const attemptsOfLast = ({ attempts }: JobOutcome): number =>
  attempts.filter(({ attemptId }) => attemptId.startsWith('map/19/')).length;

describe.each(['mantri', 'outrider', 'late', 'dolly', 'spark', 'flink', 'hadoop2', 'cubed'] as const)(
  'a task whose input stays unread, under %s',
  (policy) => {
    it.each([300_000, 3_000_000])('ends as it would alone, after %i ms, by few copies', async (heldMs) => {
      const job = await runOne(unreadFor(policy, heldMs));
      expect(job.completedAtMs).toBeLessThanOrEqual(1.5 * heldMs);
      expect(attemptsOfLast(job)).toBeLessThanOrEqual(mostAttempts);
    });

    it('ends where slots are scarce', async () => {
      const job = await runOne(unreadFor(policy, 300_000, 4));
      expect(job.completedAtMs).toBeLessThanOrEqual(1.5 * 350_000);
      expect(attemptsOfLast(job)).toBeLessThanOrEqual(mostAttempts);
    });
  },
);
