import { expect, it } from 'vitest';
import type { PolicyName } from '../../src/contracts/policy-names.ts';
import { simulate } from '../../src/sim/simulate.ts';
import { laterJob, scenarioOf } from './scenarios.ts';

const onFargate = { kind: 'fargate', size: 'medium' } as const;

/** How many attempts a job makes under a policy, and what each start of a job takes that arrives when it has long ended. */
async function startsBeside(policy: PolicyName) {
  const scenario = scenarioOf({
    cluster: {
      nodes: [{ count: 60, elastic: true }],
      choosesNodes: false,
      fargateStartMs: { kind: 'uniform', min: 30_000, max: 60_000 },
      fargateStopMs: { kind: 'uniform', min: 500, max: 3_000 },
    },
    jobs: [
      {
        name: 'first',
        policy,
        worker: onFargate,
        stages: [
          {
            name: 'map',
            tasks: 20,
            workMs: 60_000,
            slowdown: { kind: 'mixture', probability: 0.2, outlier: 6, usual: 1 },
          },
        ],
      },
      { ...laterJob({ tasks: 10, workMs: 60_000 }), worker: onFargate },
    ],
  });
  const { jobs } = await simulate(scenario, { seed: '1' });
  const [first, second] = jobs;
  if (first === undefined || second === undefined) throw new Error('two jobs were to run');
  const starts = second.attempts.map(({ attemptId, takenAtMs, claimedAtMs = 0 }) => {
    return [attemptId, claimedAtMs - takenAtMs] as const;
  });
  return { attempts: first.attempts.length, starts: Object.fromEntries(starts) };
}

it('starts take the same whether or not other jobs have made copies', async () => {
  const [none, mantri] = [await startsBeside('none'), await startsBeside('mantri')];
  expect(none.attempts).toBe(20);
  expect(mantri.attempts).toBeGreaterThan(20);
  expect(new Set(Object.values(none.starts)).size).toBeGreaterThan(5);
  expect(mantri.starts).toEqual(none.starts);
});

/** What becomes of the launches of a job beside one of so many tasks, where launches are lost, doubled and queued. */
async function launchesBeside(tasks: number) {
  const scenario = scenarioOf({
    cluster: {
      nodes: [{ count: 60, elastic: true }],
      choosesNodes: false,
      startMs: { kind: 'uniform', min: 30, max: 80 },
    },
    faults: { lostLaunch: 0.2, doubleLaunch: 0.3 },
    scheduler: { claimLeaseMs: 20_000 },
    jobs: [
      { name: 'first', policy: 'none', stages: [{ name: 'map', tasks, workMs: 1_000 }] },
      laterJob({ tasks: 20, workMs: 5_000 }),
    ],
  });
  const { jobs } = await simulate(scenario, { seed: '1' });
  const of = jobs.find(({ name }) => name === 'second')?.attempts ?? [];
  return of
    .map(({ attemptId, takenAtMs, leftAtMs, ending }) => `${attemptId} ${takenAtMs} ${leftAtMs} ${ending}`)
    .toSorted();
}

it('launches of a job are lost and doubled alike, however many others have made', async () => {
  const few = await launchesBeside(5);
  expect(few.length).toBeGreaterThan(20);
  expect(few.some((line) => !line.includes(' 600'))).toBe(true);
  expect(await launchesBeside(11)).toEqual(few);
});
