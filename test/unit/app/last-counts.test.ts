import { expect, it } from 'vitest';
import { AsyncRequestMeter } from '../../../src/adapters/node/async-request-meter.ts';
import { failJob } from '../../../src/app/fail-job.ts';
import { type FinishDeps, finishJob } from '../../../src/app/finish-job.ts';
import { planJob } from '../../../src/app/plan-job.ts';
import { findJob } from '../../../src/app/query-jobs.ts';
import { runScheduler } from '../../../src/app/run-scheduler.ts';
import { submitJob } from '../../../src/app/submit-job.ts';
import { attemptIdOf, type JobId, taskOf } from '../../../src/contracts/ids.ts';
import type { Progress } from '../../../src/contracts/progress.ts';
import type { JobRecord } from '../../../src/contracts/records.ts';
import type { RequestTally } from '../../../src/contracts/requests.ts';
import { type DurationMs, durationMs, later } from '../../../src/contracts/units.ts';
import { totalOf } from '../../../src/core/model/cost.ts';
import { readDecisions } from '../../../src/report/explain/decision-events.ts';
import { explainJob } from '../../../src/report/explain/explain-job.ts';
import { progress, ScriptedSystem } from '../../support/scripted-job.ts';

const asked = (requests: RequestTally): Progress => ({ ...progress(100), requests });

/** A job of one task that is done, whose worker has asked for three GETs and a PUT. */
async function worked(): Promise<{
  system: ScriptedSystem;
  jobId: JobId;
  requests: AsyncRequestMeter;
}> {
  const system = new ScriptedSystem();
  const requests = new AsyncRequestMeter({ elapsedMs: () => system.clock.now() });
  await system.objects.write({ bucket: 'data', key: 'in/a' }, Buffer.from('one'));
  const stage = { name: 'map', operator: 'tokenize' as const, inputs: [{ s3: ['s3://data/in/'] }] };
  const { jobId } = await submitJob(system, { spec: { name: 'words', stages: [stage] } });
  const deps = { ...system.deps, requests };
  await requests.counting(jobId, () => planJob(deps, jobId));
  system.onLaunch = async (payload) => {
    await system.claim(payload);
    const { attemptId } = payload;
    await system.attempts.commit(system.space(payload), {
      ...{ taskId: taskOf(attemptId), attemptId, committedAt: system.clock.now(), final: { kind: 'empty' } },
      ...{ bytesIn: 1, bytesOut: 0, recordsIn: 1, recordsOut: 0, counters: {} },
      progress: asked({ get: 3, put: 1 }),
    });
    return 'accepted';
  };
  const residency = { owner: 'one', until: later(system.clock.now(), durationMs(1e9)) };
  await system.whileTimePasses(requests.counting(jobId, () => runScheduler(deps, jobId, residency)));
  return { system, jobId, requests };
}

type End = (deps: FinishDeps, jobId: JobId, patienceMs: DurationMs) => Promise<void>;

const fail: End = (deps, jobId, patienceMs) =>
  failJob(deps, jobId, { name: 'States.Timeout', message: 'late' }, patienceMs);

/** Two copies that begin as the task is done, the first of which stops after three seconds of the ending. */
async function finishedWithCopies(
  { system, jobId, requests }: Awaited<ReturnType<typeof worked>>,
  end: End,
): Promise<JobRecord> {
  const { shards = 1 } = (await system.jobs.load(jobId)) ?? {};
  const space = { jobId, shards };
  const [late, dead] = [1, 2].map((number) => attemptIdOf('map', 0, number));
  if (late === undefined || dead === undefined) throw new Error('no copies');
  for (const id of [late, dead]) {
    await system.attempts.create(space, id, system.clock.now());
    await system.attempts.claim(space, id, { node: 'n', zone: 'z' }, system.clock.now());
    await system.attempts.report(space, id, asked({ get: 10 }), system.clock.now());
  }
  const deps = { ...system.deps, requests };
  const ending = requests.counting(jobId, async () => {
    requests.count({ put: 7 });
    await end(deps, jobId, durationMs(10_000));
  });
  const stopping = system.clock.sleep(durationMs(3_000)).then(() => {
    const stopped = { state: 'cancelled' as const, progress: asked({ get: 40, other: 1 }) };
    return system.attempts.end(space, late, stopped, system.clock.now());
  });
  await system.whileTimePasses(Promise.all([ending, stopping]));
  return findJob(system.jobs, jobId);
}

it.each([
  { name: 'Finish', end: finishJob },
  { name: 'Fail', end: fail },
])(
  'counts the time of a copy that stopped after the last summary of its job once, by $name',
  async ({ end }) => {
    const world = await worked();
    const { system, jobId, requests } = world;
    const job = await finishedWithCopies(world, end);
    expect(job.stages[0]?.workerMs).toBe(3_000);
    expect(job.workerMs).toBe(3_000);
    // Three seconds of 1,769 MB.
    expect(job.costs?.compute).toBeCloseTo((3 * 1769 * 0.0000133334) / 1024, 9);
    expect(job.dollars).toBe(job.costs === undefined ? undefined : totalOf(job.costs));
    const { attempts } = await system.attempts.all({ jobId, shards: job.shards ?? 1 });
    const { cost } = explainJob({ job, attempts, decisions: readDecisions([]), now: system.clock.now() });
    expect(cost).toMatchObject({ workerMs: 3_000, wonMs: 0, otherMs: 3_000, unheardMs: 0 });
    const deps = { ...system.deps, requests };
    await system.whileTimePasses(requests.counting(jobId, () => end(deps, jobId, durationMs(0))));
    expect(await findJob(system.jobs, jobId)).toMatchObject({ workerMs: 3_000, costs: job.costs });
  },
);

it('tells what copies have asked for that stopped after the output was there, and which never told', async () => {
  const world = await worked();
  const { system, jobId, requests } = world;
  const job = await finishedWithCopies(world, finishJob);
  // The winner's three, the last word of the one that stopped, and the last of the one that never did.
  expect(job.requests?.s3).toEqual({ put: 8, get: 53, list: 0, other: 1 });
  expect(job.requests?.uncounted).toBe(1);
  expect(job.costs?.storage).toBeCloseTo(8 * 0.000005 + 53 * 0.0000004, 12);
  expect(job.dollars).toBe(job.costs === undefined ? undefined : totalOf(job.costs));
  const deps = { ...system.deps, requests };
  // Once more, as Step Functions may do it: nothing counts twice.
  await system.whileTimePasses(requests.counting(jobId, () => finishJob(deps, jobId, durationMs(0))));
  expect((await system.jobs.load(jobId))?.requests).toEqual(job.requests);
});
