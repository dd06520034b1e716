import { describe, expect, it } from 'vitest';
import { hostOf } from '../../src/sim/host-profiles.ts';
import type { AttemptOutcome, JobOutcome } from '../../src/sim/outcome.ts';
import type { ScenarioInput } from '../../src/sim/scenario.ts';
import { simulate } from '../../src/sim/simulate.ts';
import { runOne, scenarioOf } from './scenarios.ts';

type Cluster = ScenarioInput['cluster'];
type Stage = ScenarioInput['jobs'][number]['stages'][number];

const minute = 60_000;
/** Of 15 minutes an attempt keeps 20 s, in which it says why it ends. */
const workedMs = 880_000;

/** A job of one stage on Lambda as its host has it, with so many slots and no copies. */
function onLambda(slots: number, stage: Partial<Stage>, cluster: Partial<Cluster> = {}): ScenarioInput {
  const { worker, wrapUpMs, ...host } = hostOf('lambda', slots, minute);
  return {
    ...host,
    cluster: { ...host.cluster, ...cluster },
    jobs: [
      {
        ...{ policy: 'none', launchOrder: 'by-index', worker },
        stages: [{ name: 'map', tasks: 1, workMs: minute, wrapUpMs, ...stage }],
      },
    ],
  };
}

/** A worker of Lambda begins within two seconds, one of Fargate after half a minute at the soonest. */
const isOnFargate = ({ takenAtMs, claimedAtMs = 0 }: AttemptOutcome): boolean =>
  claimedAtMs - takenAtMs >= 30_000;

const workOf = ({ claimedAtMs = 0, leftAtMs }: AttemptOutcome): number => leftAtMs - claimedAtMs;

/** How the attempts of each task have ended that began, in order, and where they ran. */
const fatesOf = ({ attempts }: JobOutcome): Record<number, string[]> => {
  const fates: Record<number, string[]> = {};
  const begun = attempts.filter(({ claimedAtMs }) => claimedAtMs !== undefined);
  for (const each of begun.toSorted((a, b) => a.number - b.number))
    (fates[each.task] ??= []).push(`${each.ending} on ${isOnFargate(each) ? 'Fargate' : 'Lambda'}`);
  return fates;
};

describe('a task that takes longer than Lambda lets it', () => {
  it('stops shortly before 15 minutes are over, begins anew on Fargate, and ends well there', async () => {
    const job = await runOne(onLambda(4, { workMs: 20 * minute }));
    expect(job).toMatchObject({ state: 'succeeded', error: undefined });
    expect(fatesOf(job)).toEqual({ 0: ['failed on Lambda', 'won on Fargate'] });
    const [first, second] = job.attempts as [AttemptOutcome, AttemptOutcome];
    expect(workOf(first)).toBe(workedMs);
    expect(second.reason).toBe('retry');
    expect(workOf(second)).toBeGreaterThanOrEqual(20 * minute);
    expect(workOf(second)).toBeLessThan(20 * minute + 2_000);
    // Of Lambda 1769 MB for 880 s, of Fargate 1 vCPU, 2 GB and a public address for 1,200.
    const lambda = 880 * (1_769 / 1_024) * 0.0000133334;
    expect(job.dollars).toBeCloseTo(lambda + (1_200 * (0.03238 + 2 * 0.00356 + 0.005)) / 3_600, 3);
  });

  it('sends the others of its stage that read as much to Fargate at once, which keep its pace and slots', async () => {
    const job = await runOne(onLambda(4, { tasks: 12, workMs: 20 * minute }));
    const fates = fatesOf(job);
    for (const task of [0, 1, 2, 3]) expect(fates[task]).toEqual(['failed on Lambda', 'won on Fargate']);
    for (const task of [4, 5, 6, 7, 8, 9, 10, 11]) expect(fates[task]).toEqual(['won on Fargate']);
    const atOnce = job.attempts.map(
      ({ takenAtMs: at }) =>
        job.attempts.filter(({ takenAtMs, leftAtMs }) => takenAtMs <= at && at < leftAtMs).length,
    );
    expect(Math.max(...atOnce)).toBe(4);
  });

  it('is on Fargate from the first where tasks that read less foretell it', async () => {
    const sizes = [1, 1, 1, 1, 1, 1, 1, 1, 4, 4];
    const stage = {
      ...{ tasks: 10, workMs: sizes.map((size) => size * 5 * minute) },
      inputBytes: sizes.map((size) => size * 1e9),
    };
    const fates = fatesOf(await runOne(onLambda(4, stage)));
    for (const task of [0, 1, 2, 3, 4, 5, 6, 7]) expect(fates[task]).toEqual(['won on Lambda']);
    for (const task of [8, 9]) expect(fates[task]).toEqual(['won on Fargate']);
  });

  it('is on Fargate from the first also where only the time that it keeps to stop is too short', async () => {
    // By what it reads, a task of four takes 890 s of Lambda's 900.
    const sizes = [1, 1, 1, 1, 1, 1, 1, 1, 4, 4];
    const stage = {
      ...{ tasks: 10, workMs: sizes.map((size) => size * 222_500), wrapUpMs: 0 },
      inputBytes: sizes.map((size) => size * 1e9),
    };
    const fates = fatesOf(await runOne(onLambda(4, stage)));
    for (const task of [0, 1, 2, 3, 4, 5, 6, 7]) expect(fates[task]).toEqual(['won on Lambda']);
    for (const task of [8, 9]) expect(fates[task]).toEqual(['won on Fargate']);
  });

  it('fails its job where there is no Fargate, as production says it', async () => {
    const { fargateStartMs, ...cluster } = onLambda(4, { workMs: 20 * minute }).cluster;
    const job = await runOne({ ...onLambda(4, { workMs: 20 * minute }), cluster });
    expect(fargateStartMs).toBeDefined();
    expect(job.state).toBe('failed');
    expect(job.error).toContain("ran out of Lambda's time: it stopped itself 20 s before");
  });

  it('runs to its end where a scenario says nothing of a limit', async () => {
    const { lambdaMs, ...cluster } = onLambda(4, { workMs: 20 * minute }).cluster;
    expect(lambdaMs).toBe(900_000);
    const job = await runOne({ ...onLambda(4, { workMs: 20 * minute }), cluster });
    expect(fatesOf(job)).toEqual({ 0: ['won on Lambda'] });
  });

  it('has all the time that it takes on the host fargate', async () => {
    const { wrapUpMs, worker, ...host } = hostOf('fargate', 4, minute);
    const stages = [{ name: 'map', tasks: 1, workMs: 20 * minute, wrapUpMs }];
    const job = await runOne({ ...host, jobs: [{ policy: 'none', worker, stages }] });
    expect(job.attempts).toMatchObject([{ ending: 'won' }]);
  });
});

it('does what ran out of time behind others of its worker again on Lambda, on a worker of its own', async () => {
  // Of ten seconds an attempt has nine, and one that comes behind others less.
  const works = Array.from({ length: 60 }, (_, task) => (task === 45 ? 8_700 : 300));
  const job = await runOne(onLambda(2, { tasks: 60, workMs: works, wrapUpMs: 0 }, { lambdaMs: 10_000 }));
  expect(job.state).toBe('succeeded');
  expect(job.invocations).toBeLessThan(60);
  expect(fatesOf(job)[45]).toEqual(['failed on Lambda', 'won on Lambda']);
  expect(job.attempts).toHaveLength(61);
});

it.each([60, 10])('changes nothing where work takes %d s at the most', async (seconds) => {
  const stage: Partial<Stage> = {
    tasks: 40,
    workMs: { kind: 'uniform', min: 100, max: seconds * 1_000 },
    slowdown: { kind: 'pareto', scale: 1, shape: 1.4, max: 8 },
  };
  const limited = onLambda(12, stage);
  const { lambdaMs, fargateStartMs, fargateStopMs, fargateThrottle, ...cluster } = limited.cluster;
  expect([lambdaMs, fargateStartMs, fargateStopMs, fargateThrottle]).not.toContain(undefined);
  const run = async (input: ScenarioInput, policy: 'none' | 'outrider' | 'mantri'): Promise<string> => {
    const jobs = input.jobs.map((job) => ({ ...job, policy }));
    return JSON.stringify(await simulate(scenarioOf({ ...input, jobs }), { seed: '1', trace: true }));
  };
  for (const policy of ['none', 'outrider', 'mantri'] as const)
    expect(await run(limited, policy)).toBe(await run({ ...limited, cluster }, policy));
});

it('starts no more on Fargate than RunTask does, a hundred at once and twenty a second', async () => {
  const job = await runOne(onLambda(150, { tasks: 150, workMs: 20 * minute }));
  const begun = job.attempts.filter(isOnFargate).map(({ takenAtMs }) => takenAtMs);
  const firstAt = Math.min(...begun);
  expect(begun).toHaveLength(150);
  for (const seconds of [0, 1, 2])
    expect(begun.filter((at) => at <= firstAt + seconds * 1_000).length).toBeLessThanOrEqual(
      100 + 20 * seconds,
    );
});

describe('a perfect detector of stragglers', () => {
  const perfect = async (slots: number, stage: Partial<Stage>): Promise<JobOutcome> => {
    const { jobs } = await simulate(scenarioOf(onLambda(slots, stage)), { seed: '1', perfect: true });
    const [job] = jobs;
    if (job === undefined) throw new Error('no job');
    return job;
  };

  it('copies at once an attempt that Lambda will end, where a new one may be expected to end before', async () => {
    const job = await perfect(3, { tasks: 2, attemptsMs: [[20 * minute, 5 * minute], [5 * minute]] });
    expect(fatesOf(job)[0]).toEqual(['cancelled on Lambda', 'won on Lambda']);
    expect(job.completedAtMs).toBeLessThan(6 * minute);
  });

  it('stops at once what Lambda would end, and end again, and begins it anew on Fargate', async () => {
    const job = await perfect(8, { tasks: 2, workMs: 20 * minute });
    for (const task of [0, 1]) expect(fatesOf(job)[task]?.at(-1)).toBe('won on Fargate');
    const onLambda = job.attempts.filter((each) => !isOnFargate(each));
    expect(onLambda).toHaveLength(2);
    for (const { takenAtMs, leftAtMs } of onLambda) expect(leftAtMs - takenAtMs).toBeLessThan(10_000);
    expect(job.completedAtMs).toBeLessThan(22 * minute);
  });

  it('does so with those alone of a stage that are too long', async () => {
    const sizes = [1, 1, 1, 1, 1, 1, 8, 8];
    const job = await perfect(8, {
      ...{ tasks: 8, workMs: sizes.map((size) => size * 2 * minute) },
      inputBytes: sizes.map((size) => size * 1e9),
    });
    for (const task of [0, 1, 2, 3, 4, 5]) expect(fatesOf(job)[task]).toEqual(['won on Lambda']);
    for (const task of [6, 7]) expect(fatesOf(job)[task]?.at(-1)).toBe('won on Fargate');
    expect(job.completedAtMs).toBeLessThan(18 * minute);
  });
});
