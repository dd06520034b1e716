import { describe, expect, it } from 'vitest';
import { failJob } from '../../../src/app/fail-job.ts';
import { finishJob } from '../../../src/app/finish-job.ts';
import { planJob } from '../../../src/app/plan-job.ts';
import { runScheduler } from '../../../src/app/run-scheduler.ts';
import { submitJob } from '../../../src/app/submit-job.ts';
import type { AttemptId, JobId, TaskId } from '../../../src/contracts/ids.ts';
import { taskOf } from '../../../src/contracts/ids.ts';
import type { JobSpecInput } from '../../../src/contracts/job-spec.ts';
import { durationMs, later } from '../../../src/contracts/units.ts';
import { collect } from '../../contract/ports/builders.ts';
import { ScriptedSystem } from '../../support/scripted-job.ts';

const spec: JobSpecInput = {
  name: 'small',
  stages: [
    {
      name: 'map',
      operator: 'grep',
      options: { pattern: 'a' },
      inputs: [{ s3: ['s3://data/in/'], splitBytes: 5 }],
    },
  ],
};

/** A job all of whose tasks have sent their parts with their results. */
async function worked(): Promise<{ system: ScriptedSystem; jobId: JobId }> {
  const system = new ScriptedSystem();
  await system.objects.write({ bucket: 'data', key: 'in/a' }, Buffer.from('0123456789'));
  const { jobId } = await submitJob(system, { spec, clientToken: 'token' });
  await planJob(system.deps, jobId);
  system.onLaunch = async (payload) => {
    await system.claim(payload);
    const { attemptId } = payload;
    const sums = { bytesIn: 5, bytesOut: 9, recordsIn: 1, recordsOut: 1, counters: {} };
    const final = { kind: 'inline', body: Buffer.from(`of ${attemptId}`) } as const;
    const committedAt = system.clock.now();
    const result = { taskId: taskOf(attemptId), attemptId, committedAt, final, ...sums };
    await system.attempts.commit(system.space(payload), result);
    await system.succeed(payload, { isClaimed: true });
    return 'accepted';
  };
  const residency = { owner: 'first', until: later(system.clock.now(), durationMs(60_000)) };
  await system.whileTimePasses(runScheduler(system.deps, jobId, residency));
  return { system, jobId };
}

const outputs = async ({ objects }: ScriptedSystem): Promise<string[]> =>
  (await collect(objects.list({ bucket: 'data', key: 'output/' }))).map(({ key }) => key.split('/')[2] ?? '');

describe('parts that came with their results', () => {
  it('are published with their bytes and their writers, once however often the job is finished', async () => {
    const { system, jobId } = await worked();
    await finishJob(system.deps, jobId);
    await finishJob(system.deps, jobId);
    expect(await outputs(system)).toEqual(['_SUCCESS', 'part-00000', 'part-00001']);
    const second = { bucket: 'data', key: `output/${jobId}/part-00001` };
    expect(Buffer.from(await system.objects.readAll(second)).toString()).toBe('of map/1/0');
    expect((await system.objects.head(second))?.metadata).toEqual({ 'outrider-attempt': `${jobId}/map/1/0` });
    const job = await system.jobs.load(jobId);
    expect(job).toMatchObject({ state: 'succeeded', partTotals: { count: 2, sizeBytes: 20 } });
  });

  /** A task that was added since a partition was split, of which the record of the job does not tell yet. */
  const add = ({ attempts, clock }: ScriptedSystem, jobId: JobId, taskId: TaskId): Promise<unknown> =>
    attempts.commit(
      { jobId, shards: 1 },
      {
        ...{ taskId, attemptId: `${taskId}/0` as AttemptId, committedAt: clock.now() },
        final: { kind: 'inline', body: Buffer.from('added') },
        ...{ bytesIn: 5, bytesOut: 5, recordsIn: 1, recordsOut: 1, counters: {} },
      },
    );

  it('are counted by themselves where the record is older, and none may be missing', async () => {
    const { system, jobId } = await worked();
    await add(system, jobId, 'map/3' as TaskId);
    await expect(finishJob(system.deps, jobId)).rejects.toThrow('a job finished before all its tasks');
    await add(system, jobId, 'map/2' as TaskId);
    await finishJob(system.deps, jobId);
    const parts = ['part-00000', 'part-00001', 'part-00002', 'part-00003'];
    expect(await outputs(system)).toEqual(['_SUCCESS', ...parts]);
  });

  it('are not there where the job failed first', async () => {
    const { system, jobId } = await worked();
    await failJob(system.deps, jobId, { name: 'Unknown', message: 'no' }, durationMs(0));
    await expect(finishJob(system.deps, jobId)).rejects.toThrow('has ended');
    expect(await outputs(system)).toEqual([]);
  });

  it('are refused where another has written there', async () => {
    const { system, jobId } = await worked();
    await system.objects.write({ bucket: 'data', key: `output/${jobId}/part-00000` }, Buffer.from('mine'));
    await expect(finishJob(system.deps, jobId)).rejects.toThrow('must be an empty prefix');
  });
});
