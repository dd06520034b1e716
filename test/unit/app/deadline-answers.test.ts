import { beforeEach, describe, expect, it } from 'vitest';
import { setDeadline } from '../../../src/app/change-job.ts';
import { enterJob, leaveJob } from '../../../src/app/enter-job.ts';
import type { SchedulerDeps } from '../../../src/app/scheduler-deps.ts';
import type { Session } from '../../../src/app/scheduler-session.ts';
import { runTick } from '../../../src/app/tick-job.ts';
import { durationMs, later } from '../../../src/contracts/units.ts';
import { DeadlineJobs } from '../../support/deadline-jobs.ts';

let host: DeadlineJobs;

beforeEach(async () => {
  host = await DeadlineJobs.open();
});

/** How long the job is expected to take from the last look on, and how likely it ends in time. */
function expected({ deadlineControl }: Session): readonly (number | undefined)[] {
  const { at, expectedEndAt, probability } = deadlineControl?.told ?? {};
  if (at === undefined || expectedEndAt === undefined) throw new Error('nothing is told');
  return [expectedEndAt - at, probability];
}

async function takenOver(deps: SchedulerDeps, session: Session): Promise<Session> {
  await leaveJob(deps, session);
  const until = later(host.system.clock.now(), durationMs(600_000));
  return enterJob(deps, session.jobId, { owner: 'next', until });
}

// 4 s and 44 s by the number of slots, as earlier runs tell.
describe('the first look of a scheduler at a deadline', () => {
  it('tells what is expected on the slots that become the job its own by it', async () => {
    const { session, look } = await host.entered({ deadline: '30s' });
    const { allocation } = await look();
    expect(session.share.guaranteed).toBe(2);
    const [leftMs, probability] = expected(session);
    expect(leftMs).toBe(4_000 + 44_000 / 2);
    expect(probability).toBeGreaterThan(0.5);
    expect(allocation?.facts).toMatchObject({ guaranteed: 2, probability });
    expect(session.deadlineControl?.hasSlack).toBe(true);
  });

  it('tells what is expected on those that the job had from the scheduler before', async () => {
    const { session, deps, tick } = await host.entered({ deadline: '30s' });
    for (let ticks = 0; ticks < 3; ticks++) await tick();
    expect(session.grant).toBe(4);
    const next = await takenOver(deps, session);
    await host.system.clock.advance(100);
    await runTick(deps, next);
    expect(expected(next)).toEqual([4_000 + 44_000 / 4, 1]);
  });

  it('tells what is expected on those of a job that goes on without slots of its own', async () => {
    const other = await host.rival(3, 0);
    const { session, deps, tick } = await host.entered({ deadline: '30s', admission: 'best-effort' });
    await tick();
    await host.store.remove(other);
    for (let ticks = 0; ticks < 2; ticks++) await tick();
    expect(session.state.allocation).toMatchObject({ slots: 0, reason: 'best-effort' });
    expect(session.grant).toBe(4);
    const next = await takenOver(deps, session);
    await host.system.clock.advance(100);
    await runTick(deps, next);
    expect(expected(next)[0]).toBe(4_000 + 44_000 / 4);
  });
});

describe('a deadline that is changed while the ledger is busy', () => {
  it('is asked for slots by when it is not, and told of as a change', async () => {
    const { jobId, session, tick } = await host.entered({ deadline: '60s' });
    await tick();
    expect(session.state.allocation).toMatchObject({ slots: 1, reason: 'admitted' });
    await setDeadline(host.system, jobId, { deadline: '16s' });
    host.store.isBusy = true;
    await tick();
    expect(session.state.allocation).toMatchObject({ slots: 1, reason: 'admitted' });
    host.store.isBusy = false;
    await tick();
    expect(session.state.allocation).toMatchObject({ reason: 'deadline-changed' });
  });

  it('has a job without slots of its own taken on as soon as it is not', async () => {
    const other = await host.rival(4, 0);
    const { jobId, session, look, tick } = await host.entered({ deadline: '25s', admission: 'best-effort' });
    await tick();
    expect(session.state.allocation).toMatchObject({ slots: 0, reason: 'best-effort' });
    await host.store.remove(other);
    await setDeadline(host.system, jobId, { deadline: '30s' });
    host.store.isBusy = true;
    await look();
    host.store.isBusy = false;
    await host.system.clock.advance(100);
    expect((await look()).allocation).toMatchObject({ slots: 2, reason: 'admitted' });
  });
});

it('guarantees a job what its spec says once others have left it that, also where it had a deadline before', async () => {
  const other = await host.rival(2, 0);
  const { jobId, tick } = await host.entered({ deadline: '60s', guaranteedSlots: 4 });
  await tick();
  expect(await host.store.own(jobId)).toMatchObject({ guaranteed: 2 });
  await setDeadline(host.system, jobId, { deadline: 'none' });
  for (let ticks = 0; ticks < 2; ticks++) await tick();
  await host.store.remove(other);
  await host.system.clock.advance(6_000);
  for (let ticks = 0; ticks < 2; ticks++) await tick();
  expect(await host.store.own(jobId)).toMatchObject({ guaranteed: 4 });
});

it('tells that a job does not end in time on an account that has fewer places than it has slots of its own', async () => {
  const taskMs = 200_000;
  const { system } = host;
  [host.taskTakesMs, host.foretoldMs] = [taskMs, taskMs];
  const { launcher, config } = system.deps;
  host.more = {
    launcher: { ...launcher, terms: () => ({ waits: true, takesPacks: false }) },
    config: { ...config, totalSlots: 900, claimLeaseMs: durationMs(900_000) },
  };
  const begin = system.onLaunch;
  const waiting: Parameters<typeof begin>[0][] = [];
  let running = 0;
  // Two run at once; the others wait in Lambda's queue.
  const next = async (): Promise<void> => {
    const payload = running < 2 ? waiting.shift() : undefined;
    if (payload === undefined) return;
    running += 1;
    await begin(payload);
    void system.clock.sleep(durationMs(taskMs)).then(() => {
      running -= 1;
      return next();
    });
  };
  system.onLaunch = async (payload) => {
    waiting.push(payload);
    await next();
    return 'accepted';
  };
  const { session, deps } = await host.entered({ deadline: '20m' });
  const told: (readonly (number | undefined)[])[] = [];
  for (let second = 1; second <= 480; second++) {
    await system.clock.advance(1_000);
    await runTick(deps, session);
    if (second % 60 === 0) told.push(expected(session));
  }
  expect(session.share.guaranteed).toBeGreaterThan(4);
  // After eight minutes four of twenty-two tasks have ended: the others take half an hour on two places.
  const [leftMs = 0, probability] = told.at(-1) ?? [];
  expect(leftMs).toBeGreaterThan(1_200_000);
  expect(probability).toBeLessThan(0.1);
  // Whoever looked before the first tasks had ended was told so, too.
  for (const [ms = 0] of told.slice(1)) expect(ms).toBeGreaterThan(1_200_000);
});
