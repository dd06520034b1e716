import { expect, it } from 'vitest';
import { taskOf } from '../../src/contracts/ids.ts';
import { policySets } from '../../src/core/policy/policy-sets.ts';
import { simulate } from '../../src/sim/simulate.ts';
import { atOnce, everythingFails, runOne, scenarioOf } from './scenarios.ts';

/** The machines that tasks ran on, in the order of tasks. */
const nodesOf = async (scenario: ReturnType<typeof scenarioOf>): Promise<readonly string[]> =>
  (await simulate(scenario, { seed: '1' })).jobs.flatMap(({ attempts }) =>
    attempts.toSorted((a, b) => a.stage - b.stage || a.task - b.task).map(({ node }) => node),
  );

// Safety is checked after each event of every run: a broken rule throws.
it.each(Array.from({ length: 12 }, (_, index) => String(index)))(
  'ends every job though everything fails, seed %s',
  async (seed) => {
    const { jobs } = await simulate(scenarioOf(everythingFails), { seed });
    expect(jobs).toHaveLength(4);
    for (const { state, attempts, error, lostOutputs } of jobs) {
      const won = attempts.filter(({ ending }) => ending === 'won');
      if (state === 'succeeded') expect(won).toHaveLength(85 + lostOutputs.length);
      else expect(error).toMatch(/failed 4 times/);
    }
  },
);

it.each([...policySets.keys()])(
  'keeps every rule under the policy %s though everything fails',
  async (policy) => {
    const [group] = everythingFails.jobs;
    for (const seed of ['1', '2']) {
      const { jobs } = await simulate(
        scenarioOf({ ...everythingFails, jobs: [{ ...group, policy, stages: group?.stages ?? [] }] }),
        { seed },
      );
      for (const { attempts, lostOutputs } of jobs) {
        const lost = Map.groupBy(lostOutputs, ({ attemptId }) => taskOf(attemptId));
        const tasks = Map.groupBy(
          attempts.filter(({ ending }) => ending !== 'refused'),
          ({ stage, task }) => `${stage}/${task}`,
        );
        for (const copies of tasks.values()) {
          const losses = copies.flatMap(({ attemptId }) => lost.get(taskOf(attemptId)) ?? []).length;
          const won = copies.filter(({ ending }) => ending === 'won').length;
          expect(won).toBeLessThanOrEqual(1 + losses / copies.length);
        }
      }
    }
  },
);

const oneStage = (stage: object, faults: object = {}, cluster: object = {}) =>
  runOne({
    cluster: { nodes: [{ count: 4 }], ...cluster },
    scheduler: atOnce,
    faults,
    jobs: [{ policy: 'none', stages: [{ name: 'map', tasks: 4, workMs: 10_000, ...stage }] }],
  });

it('fails a job whose task fails four times', async () => {
  const job = await oneStage({ tasks: 1 }, { attemptFailure: 1 });
  expect(job.state).toBe('failed');
  expect(job.attempts.map(({ ending }) => ending)).toEqual(['failed', 'failed', 'failed', 'failed']);
});

it('launches again what was never delivered, after the claim lease', async () => {
  const job = await runOne({
    cluster: { nodes: [{ count: 1 }] },
    scheduler: { ...atOnce, claimLeaseMs: 5_000 },
    faults: { lostLaunch: 1, untilMs: 0 },
    jobs: [{ policy: 'none', stages: [{ name: 'map', tasks: 1, workMs: 10_000 }] }],
  });
  expect(job.state).toBe('succeeded');
  expect(job.attempts.map(({ attemptId, ending }) => [attemptId, ending])).toEqual([['map/0/1', 'won']]);
  expect(job.completedAtMs).toBeGreaterThan(15_000);
});

it('refuses the second delivery of an attempt', async () => {
  const job = await oneStage({ tasks: 1 }, { doubleLaunch: 1 });
  expect(job.attempts.map(({ ending }) => ending).toSorted()).toEqual(['refused', 'won']);
});

it('gives up an attempt that has gone silent', async () => {
  const job = await runOne({
    cluster: { nodes: [{ count: 1 }] },
    scheduler: atOnce,
    reports: { everyMs: 1_000 },
    faults: { lostAttempt: 1, untilMs: 0 },
    jobs: [{ policy: 'none', stages: [{ name: 'map', tasks: 1, workMs: 10_000 }] }],
  });
  expect(job.attempts.map(({ ending }) => ending)).toEqual(['died', 'won']);
});

it('makes lost outputs again, once a reader has found one of them gone', async () => {
  const job = await runOne({
    cluster: { nodes: [{ count: 4 }] },
    scheduler: atOnce,
    faults: { lostOutput: 1 },
    jobs: [
      {
        policy: 'none',
        stages: [
          { name: 'map', tasks: 4, workMs: [4_000, 5_000, 6_000, 9_000], outputBytes: 100 },
          { name: 'reduce', tasks: 2, upstream: ['map'], workMs: 1_000 },
        ],
      },
    ],
  });
  // One round of looks finds all four gone.
  expect(job.lostOutputs.map(({ attemptId, atMs }) => [attemptId, atMs])).toEqual([
    ['map/0/0', 9_000],
    ['map/1/0', 9_000],
    ['map/2/0', 9_000],
    ['map/3/0', 9_000],
  ]);
  expect(job.completedAtMs).toBe(9_000 + 9_000 + 1_000);
});

it('makes again, stage by stage, what a machine has lost, and that alone', async () => {
  const job = await runOne({
    cluster: {
      nodes: [{ count: 1, losses: { everyMs: 7_000, lastsMs: 1 } }, { count: 3 }],
      placement: 'in-order',
    },
    scheduler: atOnce,
    faults: { untilMs: 8_000 },
    jobs: [
      {
        policy: 'none',
        stages: [
          { name: 'read', tasks: 4, workMs: 2_000, outputBytes: 100 },
          {
            name: 'part',
            tasks: 4,
            upstream: ['read'],
            pattern: 'one-to-one',
            workMs: 2_000,
            outputBytes: 100,
          },
          { name: 'join', tasks: 1, upstream: ['part'], workMs: [4_000] },
          { name: 'write', tasks: 1, upstream: ['part', 'join'], workMs: 1_000 },
        ],
      },
    ],
  });
  // The first machine holds read/0 and part/0, and loses both at 7 s. The last stage misses one of them at 8 s, when it
  // begins; the other is missed where part/0 is to be made again. Of join nothing is made again: its result is there.
  expect(job.lostOutputs.map(({ attemptId, atMs }) => [attemptId, atMs])).toEqual([
    ['part/0/0', 8_000],
    ['read/0/0', 8_000],
  ]);
  const again = job.attempts.filter(({ number, ending }) => number > 0 && ending === 'won');
  expect(again.map(({ attemptId }) => attemptId)).toEqual(['read/0/1', 'part/0/1', 'write/0/1']);
  expect(job.completedAtMs).toBe(8_000 + 2_000 + 2_000 + 1_000);
});

it('protects by what was seen of machines before, and tells what it has seen', async () => {
  const scenario = scenarioOf({
    cluster: { nodes: [{ count: 2, losses: { everyMs: 3_600_000, lastsMs: 1 } }], placement: 'in-order' },
    scheduler: atOnce,
    jobs: [
      {
        policy: 'mantri',
        stages: [
          { name: 'map', tasks: 2, workMs: 20_000, inputBytes: 10e6, outputBytes: 1_000 },
          { name: 'reduce', tasks: 1, upstream: ['map'], workMs: 1_000, inputBytes: 2_000 },
        ],
      },
    ],
  });
  const copiedIn = async (seenLosses?: ReadonlyMap<string, { outputs: number; lost: number }>) => {
    const { jobs, seenLosses: after } = await simulate(scenario, {
      seed: '1',
      ...(seenLosses === undefined ? {} : { seenLosses }),
    });
    return { copied: jobs[0]?.copiedOutputs.map(({ attemptId }) => attemptId), after };
  };
  const [first = '', second = ''] = await nodesOf(scenario);
  // Where half of a thousand outputs were lost, a copy is worth what it takes; where none was, it is not.
  const safe = { outputs: 1_000, lost: 0 };
  const { copied, after } = await copiedIn(
    new Map([
      [first, { outputs: 1_000, lost: 500 }],
      [second, safe],
    ]),
  );
  expect(copied).toEqual(['map/0/0']);
  expect(after.get(first)).toEqual({ outputs: 1_001, lost: 500 });
  expect(after.get(second)).toEqual({ outputs: 1_001, lost: 0 });
  expect(
    (
      await copiedIn(
        new Map([
          [first, safe],
          [second, safe],
        ]),
      )
    ).copied,
  ).toEqual([]);
});

it('loses what lies in a zone', async () => {
  const job = await runOne({
    cluster: {
      nodes: [
        { count: 2, zone: 'a' },
        { count: 2, zone: 'b' },
      ],
      placement: 'in-order',
      zones: [{ name: 'a', losses: { everyMs: 2_000, lastsMs: 1 } }, { name: 'b' }],
    },
    scheduler: atOnce,
    faults: { untilMs: 3_000 },
    jobs: [
      {
        policy: 'none',
        stages: [
          { name: 'map', tasks: 4, workMs: [1_000, 1_000, 3_000, 3_000], outputBytes: 100 },
          { name: 'reduce', tasks: 1, upstream: ['map'], workMs: 1_000 },
        ],
      },
    ],
  });
  expect(job.lostOutputs.map(({ attemptId }) => attemptId)).toEqual(['map/0/0', 'map/1/0']);
  expect(job.completedAtMs).toBe(3_000 + 1_000 + 1_000);
});

it('slows tasks that share a node', async () => {
  const job = await oneStage({ tasks: 2 }, {}, { nodes: [{ count: 1, slots: 2 }], contention: 0.5 });
  expect(job.completedAtMs).toBe(15_000);
});

it('lets a task run faster once its neighbour has left', async () => {
  const job = await oneStage(
    { tasks: 2, workMs: [4_000, 10_000] },
    {},
    { nodes: [{ count: 1, slots: 2 }], contention: 1 },
  );
  // Both at half speed until 8 s; then the longer one has 6 s left.
  expect(job.completedAtMs).toBe(14_000);
});

it('stretches work by a spell of slowness', async () => {
  const job = await runOne({
    cluster: { nodes: [{ count: 1, spells: { everyMs: 4_000, lastsMs: 5_000, slowdown: 5 } }] },
    scheduler: atOnce,
    jobs: [{ policy: 'none', stages: [{ name: 'map', tasks: 1, workMs: 8_000 }] }],
  });
  // 4 s done by 4 s, 1 s more by 9 s, 3 s at full speed until 12 s.
  expect(job.completedAtMs).toBe(12_000);
});

it('starts environments cold, no faster than their pace, and finds them warm afterwards', async () => {
  const job = await runOne({
    cluster: {
      nodes: [{ count: 6, elastic: true }],
      placement: 'warmest',
      startMs: 10,
      cold: { startMs: 500, environments: 2, perMs: 4_000, keepWarmMs: 60_000 },
    },
    scheduler: atOnce,
    jobs: [
      {
        policy: 'none',
        stages: [
          { name: 'map', tasks: 4, workMs: 10_000 },
          { name: 'reduce', tasks: 2, upstream: ['map'], workMs: 1_000 },
        ],
      },
    ],
  });
  const claims = job.attempts.filter(({ stage }) => stage === 0).map(({ claimedAtMs }) => claimedAtMs);
  expect(claims.toSorted((a, b) => (a ?? 0) - (b ?? 0))).toEqual([500, 500, 2_500, 4_500]);
  expect(job.completedAtMs).toBe(4_500 + 10_000 + 10 + 1_000);
});

it('holds launches back beyond the rate of the service', async () => {
  const job = await oneStage({ tasks: 4, workMs: 1_000 }, {}, { throttle: { launchesPerS: 1, burst: 2 } });
  const taken = job.attempts.map(({ takenAtMs }) => takenAtMs);
  expect(taken.filter((at) => at === 0)).toHaveLength(2);
  expect(job.state).toBe('succeeded');
});

it('reads over the network what lies in another zone, at the rate of the links', async () => {
  const job = await runOne({
    cluster: {
      nodes: [
        { count: 2, zone: 'a' },
        { count: 2, zone: 'b' },
      ],
      placement: 'in-order',
      zones: [
        { name: 'a', upBytesPerS: 1e6 },
        { name: 'b', upBytesPerS: 1e6, downBytesPerS: 1e6 },
      ],
    },
    scheduler: atOnce,
    jobs: [
      {
        policy: 'none',
        stages: [
          { name: 'map', tasks: 1, workMs: 1_000, outputBytes: 100 }, // In zone a.
          { name: 'reduce', tasks: 3, upstream: ['map'], workMs: 1_000, network: true, inputBytes: 3e6 },
        ],
      },
    ],
  });
  const ends = job.attempts.filter(({ stage }) => stage === 1).map(({ leftAtMs }) => leftAtMs);
  // Two readers are beside the data; the third has 3 MB to fetch at 1 MB/s.
  expect(ends).toEqual([2_000, 2_000, 5_000]);
});
