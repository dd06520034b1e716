import { createHash } from 'node:crypto';
import { beforeEach, describe, expect, it } from 'vitest';
import { planJob } from '../../../src/app/plan-job.ts';
import { runScheduler } from '../../../src/app/run-scheduler.ts';
import { submitJob } from '../../../src/app/submit-job.ts';
import { AccessDeniedError } from '../../../src/contracts/errors.ts';
import type { JobId } from '../../../src/contracts/ids.ts';
import type { JobSpecInput } from '../../../src/contracts/job-spec.ts';
import type { AttemptPayload } from '../../../src/contracts/payloads.ts';
import type { Failure } from '../../../src/contracts/records.ts';
import { durationMs, later } from '../../../src/contracts/units.ts';
import { MemoryHost } from '../../support/memory-host.ts';
import { progress, ScriptedSystem } from '../../support/scripted-job.ts';

const spec: JobSpecInput = {
  name: 'words',
  stages: [
    { name: 'map', operator: 'tokenize', inputs: [{ s3: ['s3://data/in/'], splitBytes: 4 }], partitions: 2 },
    { name: 'reduce', operator: 'sum-counts', inputs: [{ stage: 'map', pattern: 'all-to-all' }] },
  ],
};
const denial = 'access denied: s3:GetObject on s3://data/in/a: AccessDenied Access Denied';

let system: ScriptedSystem;
let jobId: JobId;

beforeEach(async () => {
  system = new ScriptedSystem();
  await system.objects.write({ bucket: 'data', key: 'in/a' }, Buffer.from('one two three'));
  ({ jobId } = await submitJob(system, { spec, clientToken: 'token' }));
});

const schedule = (deps = system.deps) =>
  system.whileTimePasses(
    runScheduler(deps, jobId, { owner: 'first', until: later(system.clock.now(), durationMs(60_000)) }),
  );

/** What a worker on `node` does whose attempt fails. */
async function fail(payload: AttemptPayload, failure: Failure, node: string): Promise<void> {
  const space = system.space(payload);
  await system.attempts.claim(space, payload.attemptId, { node, zone: 'z' }, system.clock.now());
  await system.attempts.end(
    space,
    payload.attemptId,
    { state: 'failed', progress: progress(1), failure },
    system.clock.now(),
  );
}
const launchesOf = (task: string): string[] => system.launches.filter((id) => id.startsWith(`${task}/`));

describe('a missing right', () => {
  it('ends the job at the first attempt that meets it, as what it is', async () => {
    await planJob(system, jobId);
    system.onLaunch = async (payload) => {
      await fail(payload, { cause: 'access-denied', message: denial }, 'a');
      return 'accepted';
    };
    await expect(schedule()).rejects.toThrow(
      expect.objectContaining({
        name: 'AccessDenied',
        message: expect.stringMatching(/^stage map, task \d: access denied: s3:GetObject on s3:/) as unknown,
      }) as Error,
    );
    expect(system.launches.toSorted()).toEqual(['map/0/0', 'map/1/0', 'map/2/0', 'map/3/0']);
  });

  it('to launch ends the job at once', async () => {
    await planJob(system, jobId);
    const message = 'access denied: lambda:InvokeFunction on function worker: AccessDeniedException';
    let calls = 0;
    const launcher = {
      launch: (requests: readonly { payload: AttemptPayload }[]) => {
        calls += 1;
        return Promise.resolve(
          requests.map(({ payload: { attemptId } }) => ({
            attemptId,
            outcome: 'refused' as const,
            denied: true as const,
            message,
          })),
        );
      },
      stop: () => Promise.resolve(undefined),
    };
    await expect(schedule({ ...system.deps, launcher })).rejects.toThrow(
      expect.objectContaining({ name: 'AccessDenied', message }) as Error,
    );
    expect(calls).toBe(1);
  });

  it('to run tasks at all, where something of the deployment is missing, ends the job at once and is told once', async () => {
    await planJob(system, jobId);
    const why = 'InvalidParameterException: The specified capacity provider FARGATE_SPOT was not found.';
    let calls = 0;
    const launcher = {
      launch: (requests: readonly { payload: AttemptPayload }[]) => {
        calls += 1;
        return Promise.resolve(
          requests.map(({ payload: { attemptId } }) => ({
            ...{ attemptId, outcome: 'refused' as const, message: why },
          })),
        );
      },
      stop: () => Promise.resolve(undefined),
    };
    const failed: unknown = await schedule({ ...system.deps, launcher }).catch((cause: unknown) => cause);
    expect(failed).toMatchObject({ name: 'JobFailed' });
    const message = failed instanceof Error ? failed.message : '';
    expect(message).toMatch(/^attempt map\/\d\/0 cannot be launched: /);
    expect(message.split(why)).toHaveLength(2);
    expect(calls).toBe(1);
  });

  it('to read an input fails the plan and names the field', async () => {
    const list = (): never => {
      throw new AccessDeniedError('access denied: s3:ListBucket on s3://data/in/');
    };
    const objects = Object.assign(Object.create(system.objects) as typeof system.objects, {
      list: (ref: { key: string }) => (ref.key === 'in/' ? list() : system.objects.list(ref as never)),
    });
    await expect(planJob({ ...system.deps, ids: system.ids, objects }, jobId)).rejects.toThrow(
      expect.objectContaining({
        name: 'AccessDenied',
        message: 'stages[0].inputs[0].s3[0]: access denied: s3:ListBucket on s3://data/in/',
      }) as Error,
    );
  });
});

describe('a task that fails', () => {
  const userCode = (message: string): Failure => ({ cause: 'user-code', message });

  it('alike on two nodes ends the job at the second try, and says so', async () => {
    await planJob(system, jobId);
    system.onLaunch = async (payload) => {
      if (payload.attemptId.startsWith('map/1/'))
        await fail(payload, userCode('TypeError: x is not a function'), `node-${payload.attemptId}`);
      else await system.succeed(payload);
      return 'accepted';
    };
    await expect(schedule()).rejects.toThrow(
      expect.objectContaining({
        name: 'JobFailed',
        message: 'stage map, task 1 failed alike twice: TypeError: x is not a function',
      }) as Error,
    );
    expect(launchesOf('map/1')).toEqual(['map/1/0', 'map/1/1']);
  });

  it.each<[string, (number: number) => Failure, (number: number) => string]>([
    ['with messages that differ', (number) => userCode(`line ${number}`), (number) => `node-${number}`],
    [
      'of a fault that passes',
      () => ({ cause: 'storage', message: 'reading failed' }),
      (number) => `node-${number}`,
    ],
    ['alike on one node while there are others', () => userCode('x'), () => 'n-bad'],
  ])('%s is tried four times', async (_, failureOf, nodeOf) => {
    await planJob(system, jobId);
    system.onLaunch = async (payload) => {
      const number = Number(payload.attemptId.split('/')[2]);
      if (payload.attemptId.startsWith('map/1/')) await fail(payload, failureOf(number), nodeOf(number));
      else await system.succeed(payload);
      return 'accepted';
    };
    await expect(schedule()).rejects.toThrow(/task 1 failed 4 times/);
    expect(launchesOf('map/1')).toHaveLength(4);
  });

  it('in its clone too is not tried again', async () => {
    const bundle = `export default { check() {}, async run() { throw new Error('never works'); } };`;
    const host = new MemoryHost({ totalSlots: 400 });
    const uri = await host.put('in/a', Buffer.from('a\nb\n'));
    const s3 = await host.put('code.mjs', Buffer.from(bundle));
    const code = { s3, sha256: createHash('sha256').update(bundle).digest('hex') };
    for (const policy of ['none', 'dolly', 'mantri', 'outrider'] as const) {
      const { job } = await host.run({
        name: 'bad',
        policy,
        stages: [{ name: 'work', code, inputs: [{ s3: [uri] }] }],
      });
      expect(job.error).toEqual({
        name: 'JobFailed',
        message: 'stage work, task 0 failed alike twice: never works',
      });
      if (policy === 'none') expect(job.attempts.launched).toBe(2);
    }
  });
});
