import { describe, expect, it } from 'vitest';
import { enterJob } from '../../../src/app/enter-job.ts';
import { planJob } from '../../../src/app/plan-job.ts';
import { runScheduler } from '../../../src/app/run-scheduler.ts';
import type { SchedulerDeps } from '../../../src/app/scheduler-deps.ts';
import { submitJob } from '../../../src/app/submit-job.ts';
import type { JobId } from '../../../src/contracts/ids.ts';
import type { JobSpecInput } from '../../../src/contracts/job-spec.ts';
import { planKey } from '../../../src/contracts/keys.ts';
import { planSchema } from '../../../src/contracts/plan.ts';
import { durationMs, later } from '../../../src/contracts/units.ts';
import type { NodeTerms } from '../../../src/ports/launcher.ts';
import { dataBucket, ScriptedSystem } from '../../support/scripted-job.ts';

const spec = (more: Partial<JobSpecInput> = {}): JobSpecInput => ({
  name: 'words',
  stages: [{ name: 'map', operator: 'grep', inputs: [{ s3: ['s3://data/in/'], splitBytes: 10 }] }],
  ...more,
});

/** A planned job of four tasks, which read 4, 10, 10 and 10 bytes: the small one is the first. */
async function planned(system: ScriptedSystem, more: Partial<JobSpecInput> = {}): Promise<JobId> {
  await system.objects.write({ bucket: 'data', key: 'in/a' }, Buffer.from('abc\n'));
  for (const key of ['b', 'c', 'd'])
    await system.objects.write({ bucket: 'data', key: `in/${key}` }, Buffer.from('abcdefghi\n'));
  const { jobId } = await submitJob(system, { spec: spec(more), clientToken: 'token' });
  await planJob(system, jobId);
  return jobId;
}

const stay = (system: ScriptedSystem) => ({
  owner: 'first',
  until: later(system.clock.now(), durationMs(60_000)),
});
const onNodes = ({ deps }: ScriptedSystem, nodes: NodeTerms): SchedulerDeps => ({
  ...deps,
  launcher: { ...deps.launcher, nodes: () => nodes },
});

describe('parameters of policies', () => {
  it('are all in the plan, whatever the spec leaves open', async () => {
    const system = new ScriptedSystem();
    const jobId = await planned(system, { policy: 'late', policyConfig: { late: { minAgeMs: 5 } } });
    const { planNonce = '' } = (await system.jobs.load(jobId)) ?? {};
    const text = await system.objects.readAll({
      bucket: dataBucket,
      key: planKey({ jobId, nonce: planNonce }),
    });
    expect(JSON.parse(Buffer.from(text).toString())).toMatchObject({
      policyConfig: { late: { minAgeMs: 5, speculativeCap: 0.1, waitForStarts: true }, copiesPerTask: 3 },
    });
    const session = await enterJob(system.deps, jobId, stay(system));
    expect(session.tickConfig.policyConfig).toEqual(session.plan.policyConfig);
  });

  it('are the defaults for a plan that was written before they stood in it', () => {
    const plan = { version: 1, jobId: 'a-0', nonce: 'n', name: 'a', policy: 'late', shards: 1, stages: [] };
    expect(planSchema.parse(plan).policyConfig.late.speculativeCap).toBe(0.1);
  });

  it.each([
    ['largest-first', ['map/1/0', 'map/2/0', 'map/3/0', 'map/0/0']],
    ['by-index', ['map/0/0', 'map/1/0', 'map/2/0', 'map/3/0']],
  ] as const)('say that tasks are launched %s', async (launchOrder, expected) => {
    const system = new ScriptedSystem();
    const jobId = await planned(system, { policyConfig: { launchOrder } });
    await system.whileTimePasses(runScheduler(system.deps, jobId, stay(system)));
    expect(system.launches).toEqual(expected);
  });
});

describe('what a host says of its workers', () => {
  it.each([
    [undefined, 2_000],
    [true, 2_000],
    [false, undefined],
  ])('has short attempts ride together unless it says no (%s)', async (takesPacks, packMs) => {
    const system = new ScriptedSystem();
    const jobId = await planned(system);
    const terms = () => ({ waits: false, ...(takesPacks === undefined ? {} : { takesPacks }) });
    const deps = { ...system.deps, launcher: { ...system.deps.launcher, terms } };
    expect((await enterJob(deps, jobId, stay(system))).tickConfig.packMs).toBe(packMs);
  });
});

describe('what a host says of its nodes', () => {
  it('reaches every tick, and nothing where it says nothing', async () => {
    const system = new ScriptedSystem();
    const jobId = await planned(system);
    const silent = await enterJob(system.deps, jobId, stay(system));
    expect(silent.tickConfig.killFreesSlot).toBe(false);
    const kills = onNodes(system, { killsAtOnce: true, free: undefined });
    expect((await enterJob(kills, jobId, { ...stay(system), owner: 'first' })).tickConfig.killFreesSlot).toBe(
      true,
    );
  });

  it('is asked anew by each tick', async () => {
    const system = new ScriptedSystem();
    const jobId = await planned(system);
    let asked = 0;
    const nodes = (): NodeTerms => {
      asked += 1;
      return { killsAtOnce: false, free: new Map([['a', 4]]) };
    };
    const { deps } = system;
    const watched = { ...deps, launcher: { ...deps.launcher, nodes } };
    await system.whileTimePasses(runScheduler(watched, jobId, stay(system)));
    expect(asked).toBeGreaterThanOrEqual(3);
    expect(system.launches).toHaveLength(4);
  });
});
