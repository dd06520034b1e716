import { describe, expect, it } from 'vitest';
import { failJob } from '../../../src/app/fail-job.ts';
import { finishJob } from '../../../src/app/finish-job.ts';
import { planJob } from '../../../src/app/plan-job.ts';
import { runScheduler } from '../../../src/app/run-scheduler.ts';
import { submitJob } from '../../../src/app/submit-job.ts';
import { StoreUnavailableError } from '../../../src/contracts/errors.ts';
import type { JobId } from '../../../src/contracts/ids.ts';
import { durationMs, later } from '../../../src/contracts/units.ts';
import { ScriptedSystem } from '../../support/scripted-job.ts';

/** A job of one stage all of whose tasks are done. */
async function worked(tasks: number): Promise<{ system: ScriptedSystem; jobId: JobId }> {
  const system = new ScriptedSystem();
  for (let task = 0; task < tasks; task++)
    await system.objects.write({ bucket: 'data', key: `in/${String(task)}` }, Buffer.from('some words\n'));
  const inputs = [
    { s3: Array.from({ length: tasks }, (_, task) => `s3://data/in/${String(task)}`), splitBytes: 11 },
  ];
  const spec = { name: 'words', stages: [{ name: 'map', operator: 'tokenize' as const, inputs }] };
  const { jobId } = await submitJob(system, { spec });
  await planJob(system.deps, jobId);
  const residency = { owner: 'one', until: later(system.clock.now(), durationMs(600_000)) };
  await system.whileTimePasses(runScheduler(system.deps, jobId, residency));
  return { system, jobId };
}

const keysOf = async (system: ScriptedSystem, prefix: string): Promise<string[]> => {
  const keys: string[] = [];
  for await (const { key } of system.objects.list({ bucket: 'data', key: prefix })) keys.push(key);
  return keys;
};

const manifestOf = async (system: ScriptedSystem, jobId: JobId) =>
  JSON.parse(
    Buffer.from(await system.objects.readAll({ bucket: 'data', key: `output/${jobId}/_SUCCESS` })).toString(),
  ) as { jobId: string; parts: { key: string }[] };

/** Finish stops when it has set the mark and is to write `_SUCCESS`. */
function stopsAfterMark(system: ScriptedSystem): ScriptedSystem['deps'] {
  const { objects } = system;
  const stopping = Object.assign(Object.create(objects) as typeof objects, {
    write: (...args: Parameters<typeof objects.write>) =>
      args[0].key.endsWith('_SUCCESS')
        ? Promise.reject(new StoreUnavailableError('stopped'))
        : objects.write(...args),
  });
  return { ...system.deps, objects: stopping };
}

describe('an output of many parts', () => {
  it('is listed in its manifest, and the record of the job tells how many there are', async () => {
    const { system, jobId } = await worked(40);
    await finishJob(system.deps, jobId);
    const job = await system.jobs.load(jobId);
    expect(job).toMatchObject({ state: 'succeeded', parts: [], partTotals: { count: 40 } });
    const { parts, ...rest } = await manifestOf(system, jobId);
    expect(rest).toEqual({ jobId });
    expect(parts).toHaveLength(40);
    expect(parts[39]?.key).toBe(`output/${jobId}/part-00039`);
    expect(await keysOf(system, `output/${jobId}/part-`)).toEqual(parts.map(({ key }) => key));
    expect(await keysOf(system, 'jobs/')).toEqual([]);
  });

  it('is listed in the record as well where the parts are few', async () => {
    const { system, jobId } = await worked(32);
    await finishJob(system.deps, jobId);
    const job = await system.jobs.load(jobId);
    expect(job?.parts).toEqual((await manifestOf(system, jobId)).parts);
    expect(job?.partTotals?.count).toBe(32);
  });

  it.each(['Finish', 'Fail'])('is completed by %s where Finish stopped after its mark', async (who) => {
    const { system, jobId } = await worked(40);
    await expect(finishJob(stopsAfterMark(system), jobId)).rejects.toThrow('stopped');
    expect(await system.jobs.load(jobId)).toMatchObject({
      state: 'running',
      parts: [],
      partTotals: { count: 40 },
    });
    if (who === 'Finish') await finishJob(system.deps, jobId);
    else await failJob(system.deps, jobId, { name: 'States.Timeout', message: 'late' }, durationMs(0));
    expect((await system.jobs.load(jobId))?.state).toBe('succeeded');
    expect((await manifestOf(system, jobId)).parts).toHaveLength(40);
    expect(await keysOf(system, 'jobs/')).toEqual([]);
  });

  it('fails where its list is gone, and is taken back', async () => {
    const { system, jobId } = await worked(40);
    await expect(finishJob(stopsAfterMark(system), jobId)).rejects.toThrow('stopped');
    const lists = (await keysOf(system, `jobs/${jobId}/`)).filter((key) => key.endsWith('/parts.json'));
    expect(lists).toHaveLength(1);
    await system.objects.remove('data', lists);
    await failJob(system.deps, jobId, { name: 'States.Timeout', message: 'late' }, durationMs(0));
    expect((await system.jobs.load(jobId))?.state).toBe('failed');
    expect(await keysOf(system, `output/${jobId}/`)).toEqual([]);
  });
});
