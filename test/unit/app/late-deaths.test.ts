import { expect, it } from 'vitest';
import { planJob } from '../../../src/app/plan-job.ts';
import { recordWorkerEnd } from '../../../src/app/record-worker-end.ts';
import { runScheduler } from '../../../src/app/run-scheduler.ts';
import { submitJob } from '../../../src/app/submit-job.ts';
import { decisionsOf } from '../../../src/contracts/decision-log.ts';
import type { AttemptPayload } from '../../../src/contracts/payloads.ts';
import type { FailureCause } from '../../../src/contracts/records.ts';
import { durationMs, later } from '../../../src/contracts/units.ts';
import { ScriptedSystem } from '../../support/scripted-job.ts';

const system = new ScriptedSystem();

/** The platform says that the worker of an attempt is gone. */
async function dies(payload: AttemptPayload, cause: FailureCause, afterMs: number): Promise<void> {
  const { attempts, clock } = system;
  const where = { node: 'n', zone: 'z', invocation: payload.attemptId };
  await attempts.claim(system.space(payload), payload.attemptId, where, clock.now());
  await clock.sleep(durationMs(afterMs));
  const death = { invocation: payload.attemptId, failure: { cause, message: 'it died' } };
  const words = { wordOf: () => Promise.resolve(undefined) };
  await recordWorkerEnd({ attempts, clock, log: system.log, words }, { payload, death });
}

it('takes a death over that is told after its attempt was given up: the next worker is larger', async () => {
  await system.objects.write({ bucket: 'data', key: 'in/a' }, Buffer.from('one two'));
  const map = { name: 'map', operator: 'tokenize' as const, inputs: [{ s3: ['s3://data/in/'] }] };
  const reduce = {
    name: 'reduce',
    operator: 'sum-counts' as const,
    inputs: [{ stage: 'map', pattern: 'all-to-all' as const }],
  };
  const { jobId } = await submitJob(system, { spec: { name: 'words', stages: [map, reduce] } });
  await planJob(system.deps, jobId);
  system.onLaunch = async (payload) => {
    // Silent for five heartbeats of a second, it is given up, and its death is told three seconds later.
    if (payload.attemptId === 'map/0/0') void dies(payload, 'out-of-memory', 9_000);
    // Launched before that on a worker of the same size, where it dies of something else.
    else if (payload.attemptId === 'map/0/1') void dies(payload, 'exited', 4_500);
    else await system.succeed(payload);
    return 'accepted';
  };
  const residency = { owner: 'one', until: later(system.clock.now(), durationMs(100_000)) };
  await system.whileTimePasses(runScheduler(system.deps, jobId, residency));
  const seen: unknown[] = [];
  for await (const entry of system.decisions.read(jobId))
    for (const each of decisionsOf(jobId, entry, entry.version - 1)) {
      if (each.kind === 'launch' && each.attemptId.startsWith('map/'))
        seen.push([each.attemptId, each.worker]);
      if (each.kind === 'lose') seen.push([each.attemptId, each.reason]);
    }
  expect(seen).toEqual([
    ['map/0/0', undefined],
    ['map/0/0', 'silent'],
    ['map/0/1', undefined],
    ['map/0/2', { kind: 'lambda', size: 'large' }],
  ]);
});
