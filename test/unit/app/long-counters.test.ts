import { expect, it } from 'vitest';
import { planJob } from '../../../src/app/plan-job.ts';
import { runScheduler } from '../../../src/app/run-scheduler.ts';
import { submitJob } from '../../../src/app/submit-job.ts';
import { attemptParts, taskOf } from '../../../src/contracts/ids.ts';
import { durationMs, later } from '../../../src/contracts/units.ts';
import { progress, ScriptedSystem } from '../../support/scripted-job.ts';

/** More than the thousand characters that a job's record holds of counters while it goes on. */
const counters = Object.fromEntries(
  Array.from({ length: 50 }, (_, index) => [`counter-of-a-long-name-${String(index)}`, index]),
);

it('tells long counters of a job that ends where nothing else has changed since it was last told of', async () => {
  const system = new ScriptedSystem();
  const { jobs } = system;
  await system.objects.write({ bucket: 'data', key: 'in/a' }, Buffer.from('one\ntwo\n'));
  const stage = {
    name: 'map',
    operator: 'tokenize' as const,
    inputs: [{ s3: ['s3://data/in/'], splitBytes: 4 }],
  };
  const { jobId } = await submitJob(system, { spec: { name: 'words', stages: [stage] } });
  await planJob(system.deps, jobId);
  // One task is done, for the other there never is room.
  system.onLaunch = async (payload) => {
    const { attemptId } = payload;
    if (attemptParts(attemptId).task > 0) return 'throttled';
    await system.claim(payload);
    await system.attempts.commit(system.space(payload), {
      ...{ taskId: taskOf(attemptId), attemptId, committedAt: system.clock.now(), final: { kind: 'empty' } },
      ...{ bytesIn: 1, bytesOut: 0, recordsIn: 1, recordsOut: 0, counters },
    });
    await system.attempts.end(
      system.space(payload),
      attemptId,
      { state: 'done', progress: progress(1) },
      system.clock.now(),
    );
    return 'accepted';
  };
  const told: { hasCounters: boolean; launched: number | undefined; done: number | undefined }[] = [];
  const update = jobs.update.bind(jobs);
  jobs.update = async (...asked) => {
    const [, , { stages, counters: tells, attempts }] = asked;
    const outcome = await update(...asked);
    if (stages === undefined) return outcome;
    const [done, launched] = [stages[0]?.done, attempts?.launched];
    told.push({ hasCounters: tells !== undefined, launched, done });
    if (done === 1 && launched === 1)
      await update(jobId, ['running'], { cancelRequestedAt: system.clock.now() });
    return outcome;
  };
  const residency = { owner: 'one', until: later(system.clock.now(), durationMs(1e9)) };
  await expect(system.whileTimePasses(runScheduler(system.deps, jobId, residency))).rejects.toThrow(
    /cancelled/,
  );
  expect(told.slice(-2)).toEqual([
    { hasCounters: false, launched: 1, done: 1 },
    { hasCounters: true, launched: 1, done: 1 },
  ]);
  expect((await jobs.load(jobId))?.counters).toEqual(counters);
});
