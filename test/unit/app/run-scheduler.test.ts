import { beforeEach, describe, expect, it } from 'vitest';
import { cancelJob } from '../../../src/app/change-job.ts';
import { failJob } from '../../../src/app/fail-job.ts';
import { finishJob } from '../../../src/app/finish-job.ts';
import { planJob } from '../../../src/app/plan-job.ts';
import { runScheduler } from '../../../src/app/run-scheduler.ts';
import { submitJob } from '../../../src/app/submit-job.ts';
import { NotFoundError } from '../../../src/contracts/errors.ts';
import { type JobId, taskOf } from '../../../src/contracts/ids.ts';
import type { JobSpecInput } from '../../../src/contracts/job-spec.ts';
import type { AttemptPayload } from '../../../src/contracts/payloads.ts';
import { durationMs, epochMs, later } from '../../../src/contracts/units.ts';
import { progress, ScriptedSystem } from '../../support/scripted-job.ts';

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

const stay = (owner: string, ms = 60_000) => ({ owner, until: later(system.clock.now(), durationMs(ms)) });
const schedule = (owner = 'first', ms?: number) =>
  system.whileTimePasses(runScheduler(system.deps, jobId, stay(owner, ms)));
const keys = async (): Promise<string[]> => {
  const found = [];
  for await (const { key } of system.objects.list({ bucket: 'data', key: '' })) found.push(key);
  return found;
};

describe('runScheduler', () => {
  it('runs every task once and finishes, leaving the output and nothing else', async () => {
    expect(await schedule()).toEqual({ jobId, outcome: 'finish' });
    expect(system.launches.toSorted()).toEqual([
      'map/0/0',
      'map/1/0',
      'map/2/0',
      'map/3/0',
      'reduce/0/0',
      'reduce/1/0',
    ]);
    await finishJob(system.deps, jobId);
    await finishJob(system.deps, jobId); // Step Functions may call it again.
    const job = await system.jobs.load(jobId);
    expect(job).toMatchObject({
      state: 'succeeded',
      attempts: { launched: 6, lost: 0 },
      counters: { seen: 12 },
    });
    expect(await keys()).toEqual([
      'in/a',
      ...['_SUCCESS', 'part-00000', 'part-00001'].map((name) => `output/${jobId}/${name}`),
    ]);
    expect((await system.ledger.view()).usedSlots).toBe(0);
  });

  it('takes back what it has published when it cannot publish all, and leaves what others wrote', async () => {
    await schedule();
    const other = { bucket: 'data', key: `output/${jobId}/part-00001` };
    await system.objects.write(other, Buffer.from('of another'));
    await expect(finishJob(system.deps, jobId)).rejects.toMatchObject({ name: 'Conflict' });
    expect(await keys()).toContain(`output/${jobId}/part-00000`);
    await failJob(system.deps, jobId, { name: 'Conflict', message: 'taken' }, durationMs(5_000));
    expect(await keys()).toEqual(['in/a', other.key]);
  });

  it('keeps the output of a job that had ended well when Fail came', async () => {
    await schedule();
    await finishJob(system.deps, jobId);
    await failJob(system.deps, jobId, { name: 'States.Timeout', message: 'late' }, durationMs(5_000));
    expect(await keys()).toContain(`output/${jobId}/_SUCCESS`);
    expect(await keys()).toContain(`output/${jobId}/part-00000`);
  });

  it('launches into no more slots than the ledger grants', async () => {
    let live = 0;
    let most = 0;
    system.onLaunch = (payload) => {
      most = Math.max(most, ++live);
      void system.clock
        .sleep(durationMs(700))
        .then(() => system.succeed(payload))
        .then(() => live--);
      return Promise.resolve('accepted');
    };
    await system.ledger.resize('other-000000000000' as JobId, 2, {
      totalSlots: 4,
      now: system.clock.now(),
      length: durationMs(1e6),
    });
    await schedule();
    expect(most).toBe(2);
  });

  it('launches a lost attempt again and takes whichever result comes first', async () => {
    const sleepers: AttemptPayload[] = [];
    system.onLaunch = async (payload) => {
      if (payload.attemptId === 'map/2/0')
        sleepers.push(payload); // The invocation vanished.
      else await system.succeed(payload);
      return 'accepted';
    };
    await schedule();
    expect(system.launches.filter((id) => id.startsWith('map/2/'))).toEqual(['map/2/0', 'map/2/1']);
    for (const payload of sleepers) expect(await system.claim(payload)).toBe('refused');
  });

  it('finds a result whose write took longer than the clocks may differ', async () => {
    system.onLaunch = async (payload) => {
      await system.claim(payload);
      void system.clock.sleep(durationMs(9_000)).then(async () => {
        const { attemptId } = payload;
        await system.attempts.commit(system.space(payload), {
          taskId: taskOf(attemptId),
          attemptId,
          committedAt: epochMs(system.clock.now() - 8_000),
          final: { kind: 'empty' },
          partitions: { lengths: [1, 1], crcs: [0, 0] },
          bytesIn: 1,
          bytesOut: 1,
          recordsIn: 1,
          recordsOut: 1,
          counters: {},
        });
        await system.attempts.end(
          system.space(payload),
          attemptId,
          { state: 'done', progress: progress(1) },
          system.clock.now(),
        );
      });
      for (let beat = 1; beat < 9; beat++) {
        void system.clock
          .sleep(durationMs(beat * 1_000))
          .then(() =>
            system.attempts.report(
              system.space(payload),
              payload.attemptId,
              progress(beat),
              system.clock.now(),
            ),
          );
      }
      return 'accepted';
    };
    expect(await schedule()).toEqual({ jobId, outcome: 'finish' });
    expect(system.launches).toHaveLength(6);
  });

  it('uses the same attempt id again when a launch is throttled', async () => {
    let refusals = 3;
    system.onLaunch = async (payload) => {
      if (refusals-- > 0) return 'throttled';
      await system.succeed(payload);
      return 'accepted';
    };
    await schedule();
    const attempts = (await system.attempts.all({ jobId, shards: 1 })).attempts;
    expect(attempts.map(({ attemptId, state }) => [attemptId.split('/')[2], state])).toEqual(
      Array.from({ length: 6 }, () => ['0', 'done']),
    );
  });

  it('goes on where a killed scheduler left off, without a second launch of what is running', async () => {
    const held: AttemptPayload[] = [];
    system.onLaunch = async (payload) => {
      await system.claim(payload);
      held.push(payload);
      return 'accepted';
    };
    const first = runScheduler(
      { ...system.deps, clock: { now: () => system.clock.now(), sleep: () => new Promise(() => undefined) } },
      jobId,
      stay('first'),
    );
    first.catch(() => undefined); // Killed: it never wakes from its first sleep.
    await system.clock.advance(200);
    const second = runScheduler(system.deps, jobId, stay('second'));
    await expect(second).rejects.toMatchObject({ name: 'LeaseHeld' });
    await system.clock.advance(3_000);
    const before = [...system.launches];
    const taken = runScheduler(system.deps, jobId, stay('second'));
    void system.clock.sleep(durationMs(500)).then(async () => {
      system.onLaunch = async (payload) => system.succeed(payload).then(() => 'accepted' as const);
      for (const payload of held) {
        await system.attempts.commit(
          { jobId, shards: 1 },
          {
            taskId: payload.attemptId.slice(0, -2) as never,
            attemptId: payload.attemptId,
            committedAt: system.clock.now(),
            partitions: { lengths: [1, 1], crcs: [0, 0] },
            bytesIn: 0,
            bytesOut: 0,
            recordsIn: 0,
            recordsOut: 0,
            counters: {},
          },
        );
        await system.attempts.end(
          { jobId, shards: 1 },
          payload.attemptId,
          { state: 'done', progress: {} as never },
          system.clock.now(),
        );
      }
    });
    expect(await system.whileTimePasses(taken)).toEqual({ jobId, outcome: 'finish' });
    expect(before.toSorted()).toEqual(['map/0/0', 'map/1/0', 'map/2/0', 'map/3/0']);
    expect([...new Set(system.launches)].toSorted()).toEqual([
      ...before.toSorted(),
      'reduce/0/0',
      'reduce/1/0',
    ]);
  });

  it('writes what a stage reads although two schedulers in a row died before they could', async () => {
    const never = new Promise<never>(() => undefined);
    const dying = {
      ...system.deps,
      objects: Object.assign(Object.create(system.objects) as typeof system.objects, {
        write: (...args: Parameters<typeof system.objects.write>) =>
          args[0].key.includes('/inputs/reduce/') ? never : system.objects.write(...args),
      }),
    };
    for (const owner of ['first', 'second']) {
      runScheduler(dying, jobId, stay(owner)).catch(() => undefined);
      for (let step = 0; step < 80; step++) await system.clock.advance(50);
    }
    system.onLaunch = async (payload) => {
      for (const { key } of payload.inputs)
        expect(await system.objects.head({ bucket: 'data', key })).toBeDefined();
      await system.succeed(payload);
      return 'accepted';
    };
    expect(await schedule('third')).toEqual({ jobId, outcome: 'finish' });
  });

  it('stops a scheduler that lost its lease at its next decision', async () => {
    system.onLaunch = () => Promise.resolve('accepted');
    const slow = { now: () => system.clock.now(), sleep: () => system.clock.sleep(durationMs(10_000)) };
    const first = runScheduler({ ...system.deps, clock: slow }, jobId, stay('first'));
    first.catch(() => undefined);
    await system.clock.advance(4_000);
    const second = runScheduler(system.deps, jobId, stay('second', 20_000));
    second.catch(() => undefined);
    await expect(system.whileTimePasses(first)).rejects.toMatchObject({ name: 'LeaseHeld' });
    await system.whileTimePasses(second.catch(() => undefined));
  });

  it('leaves before its time is up and is entered again', async () => {
    system.onLaunch = async (payload) => {
      void system.clock.sleep(durationMs(2_000)).then(() => system.succeed(payload));
      await system.claim(payload);
      return 'accepted';
    };
    expect(await schedule('first', 1_000)).toEqual({ jobId, outcome: 'continue' });
    system.onLaunch = async (payload) => system.succeed(payload).then(() => 'accepted' as const);
    expect(await schedule('second')).toEqual({ jobId, outcome: 'finish' });
  });

  it('cancels what runs when asked to, and ends the job as cancelled', async () => {
    const orders: string[] = [];
    system.onLaunch = async (payload) => {
      await system.claim(payload);
      const work = async (): Promise<void> => {
        for (let beat = 0; beat < 100; beat++) {
          await system.clock.sleep(durationMs(500));
          const order = await system.attempts.report(
            system.space(payload),
            payload.attemptId,
            {} as never,
            system.clock.now(),
          );
          if (order === 'continue') continue;
          orders.push(payload.attemptId);
          await system.attempts.end(
            system.space(payload),
            payload.attemptId,
            { state: 'cancelled', progress: {} as never },
            system.clock.now(),
          );
          return;
        }
      };
      void work();
      return 'accepted';
    };
    const running = runScheduler(system.deps, jobId, stay('first'));
    running.catch(() => undefined);
    await system.clock.advance(1_000);
    await cancelJob(system, jobId);
    await expect(system.whileTimePasses(running)).rejects.toMatchObject({
      name: 'JobFailed',
      message: 'cancelled on request',
    });
    await system.whileTimePasses(
      failJob(system.deps, jobId, { name: 'JobFailed', message: 'cancelled on request' }, durationMs(5_000)),
    );
    expect(orders).toHaveLength(4);
    expect(await system.jobs.load(jobId)).toMatchObject({ state: 'cancelled' });
    expect(await keys()).toEqual(['in/a']);
    expect((await system.ledger.view()).usedSlots).toBe(0);
  });

  it('fails the job with the task and its cause', async () => {
    system.onLaunch = async (payload) => {
      await system.claim(payload);
      const failure = { cause: 'bad-record', message: 'in/a:1: broken' } as const;
      await system.attempts.end(
        system.space(payload),
        payload.attemptId,
        { state: 'failed', progress: {} as never, failure },
        system.clock.now(),
      );
      return 'accepted';
    };
    await expect(schedule()).rejects.toMatchObject({
      name: 'JobFailed',
      message: expect.stringMatching(/^stage map, task \d: in\/a:1: broken$/) as string,
    });
  });
});

describe('submitJob', () => {
  it('starts one job for two submissions with one token, and refuses another spec under it', async () => {
    expect(await submitJob(system, { spec, clientToken: 'token' })).toEqual({ jobId, started: false });
    await expect(
      submitJob(system, { spec: { ...spec, budget: 1 }, clientToken: 'token' }),
    ).rejects.toMatchObject({ name: 'Conflict' });
    expect(jobId).toMatch(/^words-[0-9a-f]{12}$/);
  });
  it('refuses what is wrong before anything is written', async () => {
    await expect(submitJob(system, { spec: { ...spec, stages: [] } })).rejects.toThrow(
      /spec\.stages must have at least one stage/,
    );
    await expect(submitJob(system, { spec: { ...spec, policy: 'jockey' } })).rejects.toThrow(/policy/);
    expect((await system.jobs.list({ limit: 10 })).jobs).toHaveLength(1);
  });
});

describe('planJob', () => {
  it('refuses an input that is not there and an output that is', async () => {
    const missing = {
      ...spec,
      stages: [{ ...spec.stages[0], inputs: [{ s3: ['s3://data/none'] }] }, spec.stages[1]],
    } as JobSpecInput;
    const lost = await submitJob(system, { spec: missing });
    await expect(planJob(system, lost.jobId)).rejects.toThrow(
      'stages[0].inputs[0].s3[0]: there is no object s3://data/none',
    );
    const noBucket = {
      ...system.deps,
      objects: Object.assign(Object.create(system.objects) as typeof system.objects, {
        list: async function* ({ key }: { key: string }) {
          if (key === 'in/') throw new NotFoundError('list: no such bucket');
        },
      }),
    };
    const nowhere = await submitJob(system, { spec, clientToken: 'nowhere' });
    await expect(planJob(noBucket, nowhere.jobId)).rejects.toMatchObject({
      name: 'InvalidInput',
      message: 'stages[0].inputs[0].s3[0]: there is no bucket for s3://data/in/',
    });
    await system.objects.write({ bucket: 'data', key: 'there/a' }, Buffer.from('old'));
    const taken = await submitJob(system, { spec: { ...spec, output: 's3://data/there/' } });
    await expect(planJob(system, taken.jobId)).rejects.toThrow(
      'output must be an empty prefix, but s3://data/there/a is there',
    );
  });
});
