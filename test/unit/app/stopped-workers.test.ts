import { beforeEach, expect, it } from 'vitest';
import { enterJob } from '../../../src/app/enter-job.ts';
import type { JobId } from '../../../src/contracts/ids.ts';
import { durationMs, later } from '../../../src/contracts/units.ts';
import { attempt } from '../../support/job-states.ts';
import { launch, Predecessor } from '../../support/predecessor.ts';
import { ScriptedSystem } from '../../support/scripted-job.ts';

const node = 'arn:aws:ecs:us-east-1:123456789012:task/cluster/0123456789abcdef';

let system: ScriptedSystem;
let jobId: JobId;

/** Takes the job over; answers what was to be stopped. `wrong` is what each stop comes to. */
async function takeOver(wrong?: string): Promise<readonly unknown[]> {
  const stops: unknown[] = [];
  const stop = (worker: unknown): Promise<string | undefined> => {
    stops.push(worker);
    return Promise.resolve(wrong);
  };
  const launcher = { ...system.deps.launcher, stop };
  const until = later(system.clock.now(), durationMs(600_000));
  await enterJob({ ...system.deps, launcher }, jobId, { owner: 'next', until });
  return stops;
}

beforeEach(async () => {
  system = new ScriptedSystem();
  const stage = { name: 'map', operator: 'grep' as const, options: { pattern: 'one' } };
  const worker = { kind: 'fargate' as const };
  const spec = { name: 'hangs', stages: [{ ...stage, worker, inputs: [{ s3: ['s3://data/in/'] }] }] };
  // What it has decided last it died before it did.
  const before = await Predecessor.of(system, spec, Buffer.from('one\n'));
  ({ jobId } = before);
  const [attemptId, space] = [attempt('map/0/0'), { jobId, shards: 1 }];
  await before.decide({ kind: 'open-stage', stage: 0 });
  await before.decide(launch('map/0/0'));
  await system.attempts.create(space, attemptId, system.clock.now());
  await system.attempts.claim(space, attemptId, { node, zone: 'z' }, system.clock.now());
  await before.decide({ kind: 'lose', attemptId, reason: 'silent' });
});

it('are those that were given up by a scheduler which died before it had them stopped', async () => {
  expect(await takeOver()).toEqual([{ kind: 'fargate', node }]);
  expect(system.logged).not.toContain('worker-not-stopped');
});

it('are told of where they could not be', async () => {
  expect(await takeOver('ThrottlingException: Rate exceeded')).toHaveLength(1);
  expect(system.logged).toContain('worker-not-stopped');
});
