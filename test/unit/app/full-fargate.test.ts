import { expect, it } from 'vitest';
import { enterJob } from '../../../src/app/enter-job.ts';
import { planJob } from '../../../src/app/plan-job.ts';
import type { SchedulerDeps } from '../../../src/app/scheduler-deps.ts';
import { submitJob } from '../../../src/app/submit-job.ts';
import { runTick } from '../../../src/app/tick-job.ts';
import { durationMs, later } from '../../../src/contracts/units.ts';
import { stageAt } from '../../../src/core/model/job-state.ts';
import type { AttemptPayload } from '../../../src/contracts/payloads.ts';
import type { LaunchRequest } from '../../../src/ports/launcher.ts';
import { failure } from '../../support/job-states.ts';
import { ScriptedSystem } from '../../support/scripted-job.ts';

const slots = 40;
const capacity =
  'Capacity is unavailable at this time. Please try again later or in a different availability zone';

/**
 * A job of 200 tasks on Fargate, which has room for so many, and of 20 on Lambda, which has room for all; seconds of ticks.
 * With `failsAfterMs`, workers on Fargate are accepted, and are told so long after to have found no place.
 */
async function mixedJob(fargateRoom: number, stages = ['fargate', 'lambda'], failsAfterMs = 0) {
  const system = new ScriptedSystem();
  let room = fargateRoom;
  const asked: LaunchRequest[] = [];
  const unplaced: { readonly payload: AttemptPayload; readonly at: number }[] = [];
  /** Has workers of Fargate end which were accepted and found no place, as `worker-ended` tells. */
  const endUnplaced = async (): Promise<void> => {
    const now = system.clock.now();
    for (const { payload } of unplaced.splice(
      0,
      unplaced.filter(({ at }) => now - at >= failsAfterMs).length,
    )) {
      const { attemptId } = payload;
      const death = { invocation: `task-${attemptId}`, failure: failure('expired', capacity) };
      await system.attempts.recordDeath(system.space(payload), attemptId, death, now);
      await system.attempts.tell(system.space(payload), { attemptId, kind: 'end' });
    }
  };
  const deps: SchedulerDeps = {
    ...system.deps,
    launcher: {
      ...system.deps.launcher,
      // As the product's: RunTask takes 20 a second after a burst of 100.
      terms: (kind) =>
        kind === 'lambda'
          ? { waits: true, takesPacks: false, rate: { perS: 1_000, burst: 1_000 } }
          : { waits: false, rate: { perS: 20, burst: 100 } },
      launch: async (requests) => {
        asked.push(...requests);
        const refused = new Set(requests.filter(({ kind }) => kind === 'fargate' && room-- < 1));
        const taken = requests.filter((each) => !refused.has(each));
        for (const { payload, kind } of taken)
          if (kind === 'fargate' && failsAfterMs > 0) unplaced.push({ payload, at: system.clock.now() });
          else await system.succeed(payload);
        return requests.map((each) => ({
          attemptId: each.payload.attemptId,
          ...(refused.has(each)
            ? { outcome: 'throttled' as const, message: capacity }
            : { outcome: 'accepted' as const }),
        }));
      },
    },
    config: { ...system.deps.config, totalSlots: slots, fargateClaimLeaseMs: durationMs(600_000) },
  };
  await system.objects.write({ bucket: 'data', key: 'in/200' }, Buffer.from('one '.repeat(200)));
  await system.objects.write({ bucket: 'data', key: 'in/20' }, Buffer.from('one '.repeat(20)));
  const shapes = stages.map((kind, index) => ({
    name: `${kind}-${String(index)}`,
    operator: 'grep',
    inputs: [{ s3: [`s3://data/in/${kind === 'fargate' ? '200' : '20'}`], splitBytes: 4 }],
    worker: { kind },
    partitions: 1,
  }));
  const last = {
    name: 'last',
    operator: 'grep',
    inputs: shapes.map(({ name }) => ({ stage: name, pattern: 'all-to-all' })),
  };
  const { jobId } = await submitJob(system, { spec: { name: 'words', stages: [...shapes, last] } });
  await planJob(system, jobId);
  const until = later(system.clock.now(), durationMs(60_000));
  const session = await enterJob(deps, jobId, { owner: 'first', until });
  const tick = async (seconds: number): Promise<void> => {
    for (let second = 0; second < seconds; second++) {
      await system.clock.advance(1_000);
      await endUnplaced();
      await runTick(deps, session);
    }
  };
  const of = (kind: string): LaunchRequest[] => asked.filter((each) => each.kind === kind);
  return { system, session, jobId, tick, of, makeRoom: (more: number) => (room = more) };
}

it('lets tasks of Lambda begin while Fargate has no room for those before them, and goes on trying those', async () => {
  const { session, tick, of, makeRoom } = await mixedJob(0);
  await tick(20);
  expect(of('lambda')).toHaveLength(20);
  expect(stageAt(session.state, 1).state).toBe('done');
  const tried = of('fargate').length;
  await tick(20);
  expect(of('fargate').length).toBeGreaterThan(tried);
  // What it cannot launch takes no slots from other jobs either.
  expect(session.grant).toBeLessThanOrEqual(1);
  makeRoom(1_000);
  await tick(60);
  expect(stageAt(session.state, 0).state).toBe('done');
});

it('takes back what it has decided on for Fargate once launches before it are refused', async () => {
  const { session, tick, of } = await mixedJob(15);
  await tick(3);
  // Forty were decided on for all slots, of which thirty-five were asked for before the first answer was known.
  expect(of('fargate').length).toBeLessThan(40);
  expect(session.launches.size).toBe(0);
  await tick(17);
  expect(of('lambda')).toHaveLength(20);
});

it('asks for few slots for what Fargate alone is to run, and has no room for', async () => {
  const { session, tick, of, makeRoom } = await mixedJob(0, ['fargate']);
  await tick(20);
  expect(session.grant).toBeLessThanOrEqual(1);
  expect(of('fargate').length).toBeGreaterThan(20);
  makeRoom(1_000);
  await tick(60);
  expect(stageAt(session.state, 0).state).toBe('done');
});

it('launches few workers on Fargate where those that it accepts find no place', async () => {
  const { session, tick, of } = await mixedJob(Infinity, ['fargate'], 10_000);
  await tick(600);
  // Sixty times ten seconds for each of 40 slots made 2,400.
  expect(of('fargate').length).toBeLessThan(900);
  expect(of('fargate').length).toBeGreaterThan(100);
  expect(session.state.stages[0]?.tasks.every(({ failures }) => failures === 0)).toBe(true);
});
