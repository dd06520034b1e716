import { beforeEach, describe, expect, it } from 'vitest';
import { MemoryForecastStore } from '../../../src/adapters/memory/memory-forecast-store.ts';
import { setDeadline } from '../../../src/app/change-job.ts';
import { computeForecast } from '../../../src/app/compute-forecast.ts';
import { finishJob } from '../../../src/app/finish-job.ts';
import { listAllocations } from '../../../src/app/list-allocations.ts';
import { planJob } from '../../../src/app/plan-job.ts';
import { runScheduler } from '../../../src/app/run-scheduler.ts';
import { submitJob } from '../../../src/app/submit-job.ts';
import type { ToldAllocation } from '../../../src/contracts/api.ts';
import type { JobId } from '../../../src/contracts/ids.ts';
import type { JobSpecInput } from '../../../src/contracts/job-spec.ts';
import { durationMs, later } from '../../../src/contracts/units.ts';
import { ScriptedSystem } from '../../support/scripted-job.ts';

/** Twenty tasks of `map` and two of `reduce`, each of two seconds, on the four slots of the system. */
const taskMs = 2_000;
const spec: JobSpecInput = {
  name: 'words',
  policyConfig: { jockey: { spareSlots: false } },
  stages: [
    { name: 'map', operator: 'tokenize', inputs: [{ s3: ['s3://data/in/'], splitBytes: 4 }], partitions: 2 },
    { name: 'reduce', operator: 'sum-counts', inputs: [{ stage: 'map', pattern: 'all-to-all' }] },
  ],
};

let system: ScriptedSystem;
let forecasts: MemoryForecastStore;

beforeEach(async () => {
  system = new ScriptedSystem();
  forecasts = new MemoryForecastStore();
  await system.objects.write({ bucket: 'data', key: 'in/a' }, Buffer.from('one '.repeat(20)));
  system.onLaunch = async (payload) => {
    await system.claim(payload);
    void system.clock.sleep(durationMs(taskMs)).then(() => system.succeed(payload, { isClaimed: true }));
    return 'accepted';
  };
});

async function run(
  deadline: string | undefined,
  changes: readonly (readonly [afterMs: number, deadline: string])[] = [],
): Promise<{ readonly jobId: JobId; readonly allocations: readonly ToldAllocation[] }> {
  const { jobId } = await submitJob(system, {
    spec: { ...spec, ...(deadline === undefined ? {} : { deadline }) },
  });
  await planJob(system, jobId);
  for (const [afterMs, changed] of changes)
    void system.clock
      .sleep(durationMs(afterMs))
      .then(() => setDeadline(system, jobId, { deadline: changed }));
  const until = later(system.clock.now(), durationMs(600_000));
  const deps = { ...system.deps, forecasts };
  await system.whileTimePasses(runScheduler(deps, jobId, { owner: jobId, until }), 600_000);
  await finishJob(deps, jobId);
  await computeForecast({ forecasts, log: system.log, totalSlots: 4 }, 'words');
  return { jobId, allocations: (await listAllocations(system, jobId)).allocations };
}

describe('a recurring job in virtual time', () => {
  it('asks for nothing before anything was learned of it, and meets its deadline with the fewest slots after', async () => {
    expect((await run(undefined)).allocations).toEqual([]);
    const { jobId, allocations } = await run('60s');
    expect(allocations[0]).toMatchObject({ reason: 'admitted' });
    // 44 s of work and its deadline in 60 s: one slot is just enough, four are wasted.
    expect(allocations[0]?.slots).toBeLessThanOrEqual(2);
    const job = await system.jobs.load(jobId);
    expect(job).toMatchObject({ state: 'succeeded', forecast: { basis: 'profile', runs: 1 } });
    expect(job?.endedAt).toBeLessThanOrEqual(job?.deadlineAt ?? 0);
  });

  it('asks for more when its deadline is cut on its way, and gives slots back when it is tripled', async () => {
    await run(undefined);
    const { jobId, allocations } = await run('100s', [
      [6_000, '14s'],
      [10_000, '300s'],
    ]);
    const [first = 0] = allocations.map(({ slots }) => slots);
    const moved = allocations.filter(({ reason }) => reason === 'deadline-changed').map(({ slots }) => slots);
    expect(moved[0]).toBeGreaterThan(first);
    expect(moved.at(-1)).toBeLessThan(moved[0] ?? 0);
    const { attempts } = await system.attempts.all({
      jobId,
      shards: (await system.jobs.load(jobId))?.shards ?? 1,
    });
    // Slots are given back as tasks end: nothing was killed.
    expect(attempts.every(({ state }) => state === 'done')).toBe(true);
  });
});
