import { describe, expect, it } from 'vitest';
import { clonesInTime, straggleWithCac, straggleWithCc } from '../../src/experiments/clone-groups.ts';
import { jobLevelStraggle, taskLevelStraggle } from '../../src/experiments/straggle-probability.ts';
import { cloneSchemes, runClonedJobs } from '../../src/experiments/cloned-jobs.ts';
import { draws } from '../support/draws.ts';

const jobs = draws(300);
const forms = {
  job: jobLevelStraggle,
  task: taskLevelStraggle,
  CAC: straggleWithCac,
  CC: straggleWithCc,
} as const;

/** Four standard errors, and one event. */
function expectAgrees(formula: number, count: number, of = jobs): void {
  const error = Math.sqrt((formula * (1 - formula)) / of);
  expect(Math.abs(formula - count / of)).toBeLessThanOrEqual(4 * error + 1 / of);
}

const grid = cloneSchemes.flatMap((scheme) =>
  [1, 4, 10].flatMap((tasks) =>
    [2, 3].flatMap((clones) => [0.1, 0.3].map((p) => ({ scheme, tasks, clones, p }))),
  ),
);

describe('jobs that the scheduler clones straggle as often as the closed forms say', () => {
  it.each(grid)('$scheme: $tasks tasks, $clones clones, p = $p', async ({ scheme, tasks, clones, p }) => {
    const model = { tasks, clones, stragglerProbability: p };
    const { straggled, inTime } = await runClonedJobs(scheme, model, jobs, 'monte carlo');
    expectAgrees(forms[scheme](model), straggled);
    expect(inTime).toHaveLength(scheme === 'CAC' ? clones : 0);
    for (const [place, count] of inTime.entries()) expectAgrees(clonesInTime(model, place + 1), count);
  });

  it('by jobs that really have their copies: the ground truth’s n = 10, c = 3, p = 0.1', async () => {
    const model = { tasks: 10, clones: 3, stragglerProbability: 0.1 };
    const enough = 300;
    const { straggled } = await runClonedJobs('CAC', model, enough, 'ground truth');
    expectAgrees(0.232844, straggled, enough);
    // CC's 0.0198 is 7 standard errors away.
    expect(straggled / enough).toBeGreaterThan(0.1);
  });
});
