import { beforeEach, describe, expect, it } from 'vitest';
import { MemoryCapacityStore } from '../../../src/adapters/memory/memory-capacity-store.ts';
import { MemoryForecastStore } from '../../../src/adapters/memory/memory-forecast-store.ts';
import { RuledCapacityLedger } from '../../../src/app/capacity-ledger.ts';
import { setDeadline } from '../../../src/app/change-job.ts';
import { controlDeadline, type DeadlineTurn } from '../../../src/app/control-deadline.ts';
import { enterJob } from '../../../src/app/enter-job.ts';
import { planJob } from '../../../src/app/plan-job.ts';
import { findJob } from '../../../src/app/query-jobs.ts';
import type { SchedulerDeps } from '../../../src/app/scheduler-deps.ts';
import type { Session } from '../../../src/app/scheduler-session.ts';
import { submitJob } from '../../../src/app/submit-job.ts';
import { forecastFormat, type StoredForecast } from '../../../src/contracts/forecast.ts';
import type { JobSpecInput } from '../../../src/contracts/job-spec.ts';
import { durationMs, later } from '../../../src/contracts/units.ts';
import { matterOf } from '../../../src/core/forecast/learn-profile.ts';
import { ScriptedSystem } from '../../support/scripted-job.ts';

/** Twenty tasks of four bytes and two behind them, on the four slots of the system. The paper's control, with less slack. */
const spec: JobSpecInput = {
  name: 'words',
  policyConfig: { jockey: { preset: 'paper', slack: 1.1, deadZoneMs: 60_000 } },
  stages: [
    { name: 'map', operator: 'tokenize', inputs: [{ s3: ['s3://data/in/'], splitBytes: 4 }], partitions: 2 },
    { name: 'reduce', operator: 'sum-counts', inputs: [{ stage: 'map', pattern: 'all-to-all' }] },
  ],
};
let system: ScriptedSystem;

beforeEach(async () => {
  system = new ScriptedSystem();
  await system.objects.write({ bucket: 'data', key: 'in/a' }, Buffer.from('one '.repeat(20)));
});

interface Earlier {
  /** Tasks of each stage, and bytes of the job's sources, over those that it has. */
  readonly tasks: number;
  readonly bytes: number;
  readonly taskBytes?: number;
}

/** What earlier runs of another size told: two seconds a task, and no table, so that Amdahl's law foretells the job. */
function learned({ plan }: Session, { tasks: times, bytes, taskBytes }: Earlier): StoredForecast {
  const matter = matterOf(plan);
  const stages = plan.stages.map(({ description: { name, tasks } }, stage) => ({
    ...{ name, tasks: tasks * times, queueMs: [], failureShare: 0 },
    ...(taskBytes === undefined ? {} : { taskBytes }),
    runs: [{ slots: 4, times: { cold: [], first: [], later: [2_000] } }],
    inputs: stage === 0 ? [] : [{ stage: 0, isBarrier: true }],
  }));
  const known = { version: forecastFormat, name: 'words', runs: 3 } as const;
  return { ...known, ...matter, jobs: [], inputBytes: matter.inputBytes * bytes, profile: { stages } };
}

/** A job that has a scheduler and has launched nothing. */
async function entered(deadline: string | undefined, earlier?: Earlier) {
  const bare: SchedulerDeps = {
    ...system.deps,
    ledger: new RuledCapacityLedger(new MemoryCapacityStore()),
  };
  const { jobId } = await submitJob(system, {
    spec: { ...spec, ...(deadline === undefined ? {} : { deadline }) },
  });
  await planJob(system, jobId);
  const until = later(system.clock.now(), durationMs(600_000));
  const session = await enterJob(bare, jobId, { owner: jobId, until });
  const known = earlier === undefined ? [] : [learned(session, earlier)];
  const deps = { ...bare, forecasts: new MemoryForecastStore(known) };
  const look = async (): Promise<DeadlineTurn> =>
    controlDeadline(deps, session, await findJob(system.jobs, jobId), system.clock.now());
  return { jobId, session, look };
}

describe('a job that is larger or smaller than its earlier runs', () => {
  // 1.1 × (4 + 44 / a) s, by a dead zone of a 60th before the deadline: as by runs of its own size.
  it.each([
    [{ tasks: 2, bytes: 2 }, '20s', 4],
    [{ tasks: 2, bytes: 2, taskBytes: 4 }, '30s', 2],
    [{ tasks: 0.5, bytes: 0.5, taskBytes: 4 }, '30s', 2],
  ])('is taken on as what it is: %j, %s', async (earlier, deadline, slots) => {
    const { look } = await entered(deadline, earlier);
    expect(await look()).toMatchObject({ allocation: { slots, reason: 'admitted' } });
  });

  it('is foretold to take longer where each of its tasks reads more', async () => {
    const { look } = await entered('60s', { tasks: 1, bytes: 0.5, taskBytes: 2 });
    // 1.1 × (8 + 88 / a) s, a second before 60; by the earlier runs alone one slot would do.
    expect(await look()).toMatchObject({ allocation: { slots: 2, reason: 'admitted' } });
  });
});

describe('the first run of a job, where others have run', () => {
  const ended = { state: 'done', done: 1, running: 0, recordsIn: 1, recordsOut: 1 } as const;

  /** A finished job whose stages ran these operators. */
  async function past(...operators: readonly string[]): Promise<void> {
    const { jobId } = await submitJob(system, { spec });
    const sizes = { tasks: 10, bytesIn: 40, bytesOut: 40, workerMs: 20_000 };
    const stages = operators.map((operator) => ({ ...ended, ...sizes, name: operator, operator }));
    await system.jobs.update(jobId, ['submitted'], { state: 'succeeded', stages } as never);
  }

  it('rests on those alone that ran what it runs', async () => {
    await past('tokenize', 'sum-counts');
    await past('grep', 'top-counts');
    await past('sum-counts');
    const { session, look } = await entered('60s');
    await look();
    expect(session.deadlineControl?.told).toMatchObject({ basis: 'similar', runs: 2 });
  });

  it('goes by them also under a deadline that it is given later', async () => {
    await past('tokenize', 'sum-counts');
    const { jobId, session, look } = await entered(undefined);
    expect(await look()).toEqual({});
    expect(session.deadlineControl?.told).toMatchObject({ basis: 'nothing', runs: 0 });
    await setDeadline(system, jobId, { deadline: '600s' });
    expect((await look()).allocation).toMatchObject({ reason: 'admitted' });
    expect(session.deadlineControl?.told).toMatchObject({ basis: 'similar', runs: 1 });
  });

  it('looks for them once, also where there are none', async () => {
    const { jobId, look } = await entered(undefined);
    await setDeadline(system, jobId, { deadline: '60s' });
    let lists = 0;
    const list = system.jobs.list.bind(system.jobs);
    system.jobs.list = (...asked) => {
      lists += 1;
      return list(...asked);
    };
    for (let looks = 0; looks < 5; looks++) await look();
    expect(lists).toBe(1);
  });
});
