import { beforeEach, describe, expect, it } from 'vitest';
import { failJob } from '../../../src/app/fail-job.ts';
import { finishJob } from '../../../src/app/finish-job.ts';
import { planJob } from '../../../src/app/plan-job.ts';
import { listAttempts } from '../../../src/app/query-jobs.ts';
import { runScheduler } from '../../../src/app/run-scheduler.ts';
import type { SchedulerDeps } from '../../../src/app/scheduler-deps.ts';
import { submitJob } from '../../../src/app/submit-job.ts';
import type { JobId } from '../../../src/contracts/ids.ts';
import type { JobSpecInput } from '../../../src/contracts/job-spec.ts';
import { planKey } from '../../../src/contracts/keys.ts';
import type { LogEntry } from '../../../src/contracts/records.ts';
import { durationMs, epochMs, later } from '../../../src/contracts/units.ts';
import { ScriptedSystem } from '../../support/scripted-job.ts';
import { type Spoilt, spoiltStore } from '../../support/spoilt-store.ts';

const spec: JobSpecInput = {
  name: 'words',
  stages: [
    { name: 'map', operator: 'tokenize', inputs: [{ s3: ['s3://data/in/'], splitBytes: 4 }], partitions: 2 },
    { name: 'reduce', operator: 'sum-counts', inputs: [{ stage: 'map', pattern: 'all-to-all' }] },
  ],
};

let system: ScriptedSystem;
let jobId: JobId;

beforeEach(async () => {
  system = new ScriptedSystem();
  await system.objects.write({ bucket: 'data', key: 'in/a' }, Buffer.from('one two three'));
  ({ jobId } = await submitJob(system, { spec, clientToken: 'token' }));
  await planJob(system, jobId);
});

const withSpoilt = (spoilt: Spoilt): SchedulerDeps => ({
  ...system.deps,
  attempts: spoiltStore(system.attempts, spoilt),
});
const schedule = (deps: SchedulerDeps, owner = 'first') =>
  system.whileTimePasses(
    runScheduler(deps, jobId, { owner, until: later(system.clock.now(), durationMs(60_000)) }),
  );
const failed = { name: 'JobFailed', message: 'why' };
const logOf = async (): Promise<LogEntry[]> => {
  const entries = [];
  for await (const entry of system.decisions.read(jobId)) entries.push(entry);
  return entries;
};
const intermediate = async (): Promise<string[]> => {
  const keys = [];
  for await (const { key } of system.objects.list({ bucket: 'data', key: 'jobs/' })) keys.push(key);
  return keys;
};

describe('an attempt whose record cannot be read', () => {
  it('is given up and its task done again', async () => {
    const deps = withSpoilt({ attempt: (id) => id === 'map/0/0' });
    system.onLaunch = async (payload) => {
      // The one is claimed and then says nothing that can be read.
      if (payload.attemptId === 'map/0/0') await system.claim(payload);
      else await system.succeed(payload);
      return 'accepted';
    };
    expect(await schedule(deps)).toEqual({ jobId, outcome: 'finish' });
    expect(system.launches).toContain('map/0/1');
    expect(system.logged.filter((event) => event === 'record-unreadable')).toHaveLength(1);
    const decisions = (await logOf()).flatMap((entry) => entry.decisions);
    expect(decisions).toContainEqual({ kind: 'lose', attemptId: 'map/0/0', reason: 'unreadable' });
    expect(await listAttempts({ ...deps, jobs: system.jobs }, jobId)).toMatchObject({ unreadable: 1 });
    await finishJob(deps, jobId);
    expect(await system.jobs.load(jobId)).toMatchObject({ state: 'succeeded' });
  });

  it('does no harm where its result can be read', async () => {
    expect(await schedule(withSpoilt({ attempt: () => true }))).toEqual({ jobId, outcome: 'finish' });
  });

  it('fails the job by name once its task has no retry left', async () => {
    system.onLaunch = async (payload) => {
      await system.claim(payload);
      return 'accepted';
    };
    const running = schedule(withSpoilt({ attempt: (id) => id.startsWith('map/1/') }));
    await expect(running).rejects.toThrow(
      /stage map, task 1 failed .*the record J#job#0\/A#map\/1\/\d cannot be read: progress\.bytesRead must be a number/,
    );
    expect(system.launches.filter((id) => id.startsWith('map/1/')).length).toBeLessThanOrEqual(4);
  });
});

it('a result that cannot be read fails the job at once, by name', async () => {
  const running = schedule(withSpoilt({ result: (id) => id === 'map/2' }));
  await expect(running).rejects.toThrow(
    'stage map, task 2: the record J#job#0/T#map/2 cannot be read: counters must be finite numbers by name',
  );
  expect(system.launches.filter((id) => id.startsWith('map/2/'))).toEqual(['map/2/0']);
});

it('results of tasks that the job has not are left out', async () => {
  const plan = { jobId, shards: 1 };
  const [result] = (await system.attempts.all(plan)).results;
  expect(result).toBeUndefined();
  for (const taskId of ['other/0', 'map/99', 'map/x']) {
    await system.attempts.commit(plan, {
      taskId: taskId as never,
      attemptId: `${taskId}/0` as never,
      committedAt: system.clock.now(),
      bytesIn: 0,
      bytesOut: 0,
      recordsIn: 0,
      recordsOut: 0,
      counters: {},
    });
  }
  expect(await schedule(system.deps)).toEqual({ jobId, outcome: 'finish' });
});

describe('an entry of the decision log that cannot be read', () => {
  it.each<[string, readonly LogEntry['decisions'][], RegExp]>([
    [
      'a decision of no kind',
      [[{ kind: 'explode' }]],
      /^entry 1 of the decision log of job \S+ cannot be read: decisions\[0\]\.kind/,
    ],
    ['no object', [['x']], /^entry 1 of the decision log of job \S+ cannot be read/],
    [
      'a wrong attempt id',
      [[{ kind: 'launch', attemptId: 'map', reason: 'first' }]],
      /decisions\[0\]\.attemptId/,
    ],
    [
      'a stage that is not there',
      [[{ kind: 'open-stage', stage: 9 }]],
      /^entry 1 .* cannot be followed: no such stage/,
    ],
    [
      'a gap before it',
      [[], []],
      /^entry 3 of the decision log of job \S+ follows entry 1: what is between is gone/,
    ],
  ])('with %s fails the job by name', async (_, entries, message) => {
    for (const [index, decisions] of entries.entries())
      await system.decisions.append(jobId, {
        version: 1 + 2 * index,
        epoch: 1,
        at: system.clock.now(),
        decisions,
      });
    await expect(schedule(system.deps)).rejects.toThrow(
      expect.objectContaining({
        name: 'UnreadableRecord',
        message: expect.stringMatching(message) as unknown,
      }) as Error,
    );
    await system.whileTimePasses(failJob(system.deps, jobId, failed, durationMs(1_000)));
    expect(await system.jobs.load(jobId)).toMatchObject({ state: 'failed' });
  });

  it('with facts that were no numbers is followed', async () => {
    const facts = { savedMs: null };
    const decisions = [
      { kind: 'open-stage', stage: 0 },
      { kind: 'launch', attemptId: 'map/0/0', reason: 'first', facts },
    ];
    await system.decisions.append(jobId, { version: 1, epoch: 1, at: system.clock.now(), decisions });
    expect(await schedule(system.deps)).toEqual({ jobId, outcome: 'finish' });
  });
});

describe('a plan that cannot be read', () => {
  it.each(['', '{', '[]', '{"version":2}', '\u0000\ud800'])(
    'such as %j fails the job by name',
    async (body) => {
      const job = await system.jobs.load(jobId);
      const key = planKey({ jobId, nonce: job?.planNonce ?? '' });
      await system.objects.write({ bucket: 'data', key }, Buffer.from(body));
      await expect(schedule(system.deps)).rejects.toThrow(
        expect.objectContaining({
          name: 'UnreadableRecord',
          message: expect.stringContaining(`the plan s3://data/${key} cannot be read: plan`) as unknown,
        }) as Error,
      );
    },
  );
});

describe('ending a job of which nothing can be read', () => {
  it.each([undefined, 1])(
    'fails or cancels it, stops its workers, gives its slots back and cleans up',
    async (cancelRequestedAt) => {
      system.onLaunch = async (payload) => {
        await system.claim(payload);
        return 'accepted';
      };
      const deps = withSpoilt({ attempt: () => true, result: () => true });
      const running = schedule(system.deps).catch(() => undefined);
      await system.clock.advance(1_000);
      expect((await system.ledger.view()).usedSlots).toBeGreaterThan(0);
      const job = await system.jobs.load(jobId);
      await system.objects.write(
        { bucket: 'data', key: planKey({ jobId, nonce: job?.planNonce ?? '' }) },
        Buffer.from('{'),
      );
      await system.jobs.update(jobId, ['running'], {
        stages: 'garbage' as never,
        ...(cancelRequestedAt === undefined ? {} : { cancelRequestedAt: epochMs(cancelRequestedAt) }),
      });
      await system.whileTimePasses(failJob(deps, jobId, failed, durationMs(1_000)));
      await running;
      expect(await system.jobs.load(jobId)).toMatchObject({
        state: cancelRequestedAt === undefined ? 'failed' : 'cancelled',
        error: failed,
      });
      expect((await system.ledger.view()).usedSlots).toBe(0);
      expect(await intermediate()).toEqual([]);
      const { attempts } = await system.attempts.all({ jobId, shards: 1 });
      expect(new Set(attempts.map(({ order }) => order))).toEqual(new Set(['cancel']));
    },
  );
});

it('statistics that fail stop no job', async () => {
  const broken = {
    add: () => Promise.reject(new Error('no')),
    recent: () => Promise.reject(new Error('no')),
  };
  const deps = { ...system.deps, stragglers: broken, assignments: broken };
  expect(await schedule(deps)).toEqual({ jobId, outcome: 'finish' });
  await finishJob(deps, jobId);
  expect(await system.jobs.load(jobId)).toMatchObject({ state: 'succeeded' });
  expect(system.logged).toContain('statistics-not-kept');
});
