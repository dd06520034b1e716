import { expect, it } from 'vitest';
import { workerEndOf } from '../../functions/shared/worker-death.ts';
import { planJob } from '../../src/app/plan-job.ts';
import { recordWorkerEnd } from '../../src/app/record-worker-end.ts';
import { runScheduler } from '../../src/app/run-scheduler.ts';
import { submitJob } from '../../src/app/submit-job.ts';
import type { AttemptPayload } from '../../src/contracts/payloads.ts';
import { durationMs, later } from '../../src/contracts/units.ts';
import { ScriptedSystem } from '../support/scripted-job.ts';

const arnOf = (attemptId: string): string =>
  `arn:aws:ecs:us-east-1:123456789012:task/cluster/${attemptId.replaceAll('/', '')}`;

/** What EventBridge tells of a task that its scheduler has stopped. */
const stoppedBy = (payload: AttemptPayload): unknown => ({
  'detail-type': 'ECS Task State Change',
  source: 'aws.ecs',
  detail: {
    taskArn: arnOf(payload.attemptId),
    lastStatus: 'STOPPED',
    stopCode: 'UserInitiated',
    stoppedReason: 'the attempt is not needed',
    containers: [{ exitCode: 137 }],
    overrides: {
      containerOverrides: [{ environment: [{ name: 'OUTRIDER_ATTEMPT', value: JSON.stringify(payload) }] }],
    },
  },
});

// Its stop came back as an interruption, which is no strike: such a task was launched again without end.
it('gives a task up that hangs in each attempt until its scheduler has it stopped', async () => {
  const system = new ScriptedSystem();
  const { attempts, clock, log } = system;
  const payloads = new Map<string, AttemptPayload>();
  system.onLaunch = async (payload) => {
    const node = arnOf(payload.attemptId);
    payloads.set(node, payload);
    const place = { node, zone: 'z', invocation: node };
    await attempts.claim(system.space(payload), payload.attemptId, place, clock.now());
    return 'accepted';
  };
  const words = { wordOf: () => Promise.resolve(undefined) };
  const stop = async ({ node = '' }: { node?: string }): Promise<undefined> => {
    const payload = payloads.get(node);
    const end = payload === undefined ? undefined : workerEndOf(stoppedBy(payload));
    if (end !== undefined) await recordWorkerEnd({ attempts, clock, log, words }, end);
  };
  await system.objects.write({ bucket: 'data', key: 'in/a' }, Buffer.from('one two'));
  const stage = { name: 'only', operator: 'grep' as const, inputs: [{ s3: ['s3://data/in/'] }] };
  const worker = { kind: 'fargate' as const };
  const spec = { name: 'hangs', stages: [{ ...stage, options: { pattern: 'one' }, worker }] };
  const { jobId } = await submitJob(system, { spec });
  await planJob(system.deps, jobId);
  const deps = { ...system.deps, launcher: { ...system.deps.launcher, stop } };
  const residency = { owner: 'one', until: later(clock.now(), durationMs(200_000)) };
  const done = system.whileTimePasses(runScheduler(deps, jobId, residency), 250_000);
  await expect(done).rejects.toThrow(
    'stage only, task 0 failed 4 times, at last: its workers stopped reporting',
  );
  expect(system.launches).toEqual(['only/0/0', 'only/0/1', 'only/0/2', 'only/0/3']);
});
