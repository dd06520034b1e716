import { describe, expect, it } from 'vitest';
import { cancelJob } from '../../../src/app/change-job.ts';
import { failJob } from '../../../src/app/fail-job.ts';
import type { ResidentDeps } from '../../../src/app/resident-deps.ts';
import { StoreUnavailableError } from '../../../src/contracts/errors.ts';
import type { JobId } from '../../../src/contracts/ids.ts';
import { durationMs, epochMs, later } from '../../../src/contracts/units.ts';
import type { TaskToken } from '../../../src/ports/roster.ts';
import type { BusyAccount } from '../../support/busy-account.ts';
import { FreezingProcess } from '../../support/freezing.ts';
import { account, deadAfter, oneTask, skewed, submit } from '../../support/small-account.ts';

const minute = 60_000;
const wellEnded = ({ counts }: BusyAccount): number =>
  counts.executions.filter(({ ended }) => ended === 'succeeded').length;
const ports = [
  'jobs',
  'objects',
  'attempts',
  'ledger',
  'leases',
  'decisions',
  'launcher',
  'roster',
  'answers',
] as const;

describe('residents', () => {
  it('serve many jobs at once, one resident sixteen, and leave when there are none', async () => {
    const made = await account();
    await submit(made, 16);
    await made.untilEnded(16, 10 * minute);
    await made.system.clock.advance(minute);
    expect(wellEnded(made)).toBe(16);
    expect(made.counts.mostResidents).toBe(1);
    expect(made.seated.size).toBe(0);
    expect(made.running.get('schedule')).toBe(0);
    // Three steps for each job, none of them tried again.
    expect(made.counts.transitions).toBe(48);
    expect(await made.roster.view(100)).toMatchObject({ jobs: [] });
  });

  it('are as many as jobs are worth and never more than there may be, and the rest waits and is told so', async () => {
    const made = await account({ residents: 2, taskMs: 4 * minute });
    const ids = await submit(made, 60);
    await made.system.clock.advance(20_000);
    expect(made.counts.mostResidents).toBe(2);
    const waiting = (await Promise.all(ids.map((id) => made.system.jobs.load(id)))).filter(
      (job) => job?.waitingSince !== undefined && job.scheduledAt === undefined,
    );
    expect(waiting).toHaveLength(60 - 32);
    await made.system.clock.advance(minute);
    // Nobody waits until others end: those who have waited for long are taken on by full residents.
    expect((await made.roster.view(100)).jobs.filter(({ resident }) => resident === undefined)).toEqual([]);
    await made.untilEnded(60, 60 * minute);
    expect(wellEnded(made)).toBe(60);
    expect(made.counts.mostResidents).toBe(2);
    expect(made.counts.transitions).toBe(180);
  });

  it('give signs of life for jobs that wait, which therefore cost nothing', async () => {
    const made = await account({ residents: 1, taskMs: 8 * minute, stayMs: 60 * minute });
    await submit(made, 70);
    await made.system.clock.advance(5 * minute);
    expect((await made.roster.view(100)).jobs.filter(({ resident }) => resident === undefined)).toHaveLength(
      6,
    );
    expect(made.counts.transitions).toBe(140);
    await made.untilEnded(70, 60 * minute);
    expect(made.counts.transitions).toBe(210);
  });

  it('give them for jobs beyond all that they look at, too', async () => {
    // One resident looks at the 128 oldest.
    const made = await account({
      residents: 1,
      environments: 1_000,
      taskMs: 8 * minute,
      stayMs: 60 * minute,
    });
    await submit(made, 140);
    await made.system.clock.advance(2 * minute);
    const { jobs, next } = await made.roster.view(128);
    expect(jobs.filter(({ resident }) => resident === undefined)).toHaveLength(128 - 64);
    expect((await made.roster.after(next ?? '', 100)).jobs).toHaveLength(12);
    expect(made.counts.transitions).toBe(280);
  });

  it('hand over to one that follows before their time is up, which launches nothing again', async () => {
    const made = await account({ stayMs: minute, taskMs: 5 * minute });
    await submit(made, 3);
    await made.untilEnded(3, 20 * minute);
    expect(wellEnded(made)).toBe(3);
    expect(made.launched.size).toBe(3);
    expect(made.counts.mostResidents).toBe(1);
    // One state machine is told at each hand-over, and the other jobs are not.
    expect(made.counts.transitions).toBeLessThanOrEqual(9 + 7);
    expect(made.counts.transitions).toBeGreaterThan(9 + 3);
  });

  it('that are killed are followed at once by one that takes all their jobs on', async () => {
    const death = Promise.withResolvers<unknown>();
    const process = new FreezingProcess({ call: Infinity, when: 'before' });
    const made = await account({
      taskMs: 2 * minute,
      killed: (number) => (number === 1 ? death.promise : undefined),
      wrap: (deps, number) =>
        number === 1 ? { ...process.wrap(deps, ports), clock: deadAfter(deps, death.promise) } : deps,
    });
    await submit(made, 4);
    await made.system.clock.advance(30_000);
    death.resolve(undefined);
    await made.system.clock.advance(25_000);
    const { jobs } = await made.roster.view(10);
    expect(new Set(jobs.map(({ resident }) => resident)).size).toBe(1);
    expect(jobs.every(({ resident }) => resident !== 'request-1')).toBe(true);
    await made.untilEnded(4, 20 * minute);
    expect(wellEnded(made)).toBe(4);
    expect(made.launched.size).toBe(4);
  });

  it.each([
    ['alone', 0],
    ['while others come and go', 8],
  ])('of the second seat that are killed are followed %s, too', async (_, later) => {
    const death = Promise.withResolvers<unknown>();
    const made = await account({
      residents: 2,
      taskMs: 6_000,
      killed: (number) => (number === 17 ? death.promise : undefined),
      wrap: (deps, number) => (number === 17 ? { ...deps, clock: deadAfter(deps, death.promise) } : deps),
    });
    await submit(made, 16);
    void made.submit(oneTask('job-16'), 't-16');
    await made.system.clock.advance(4_000);
    expect(made.counts.mostResidents).toBe(2);
    death.resolve(undefined);
    for (let number = 0; number < later; number++) {
      void made.submit(oneTask(`later-${number}`), `later-${number}`);
      await made.system.clock.advance(10_000);
    }
    await made.untilEnded(17 + later, 2 * minute);
    expect(wellEnded(made)).toBe(17 + later);
    await made.system.clock.advance(minute);
    expect(made.running.get('schedule')).toBe(0);
  });

  it.each(['thaws', 'dies'] as const)(
    'that freeze anywhere are followed by others, and do no harm where one %s',
    async (fate) => {
      const places = new Set<string>();
      for (let call = 1; call <= 120; call++) {
        const when = call % 2 === 0 ? 'before' : 'after';
        const process = new FreezingProcess({ call, when });
        const made = await account({
          taskMs: 20_000,
          wrap: (deps, number) => (number === 1 ? process.wrap(deps, ports) : deps),
        });
        void process.frozen.then((name) => places.add(name));
        const ids = await submit(made, 3, { guaranteedSlots: 5 });
        if (fate === 'thaws') {
          await made.system.clock.advance(4 * minute);
          process.thaw();
        }
        await made.untilEnded(3, 30 * minute);
        await made.system.clock.advance(5 * minute);
        // Of an attempt that was decided on, but not launched for longer than a claim may take, another is due.
        const ended = await Promise.all(ids.map((id) => made.system.jobs.load(id)));
        const lost = ended.reduce((sum, job) => sum + (job?.attempts.lost ?? 0), 0);
        const well = { call, when, well: wellEnded(made), needless: made.launched.size - 3 - lost };
        expect(well).toEqual({ call, when, well: 3, needless: 0 });
        expect(lost).toBeLessThanOrEqual(3);
        expect((await made.roster.view(10)).jobs).toEqual([]);
        expect((await made.system.ledger.view()).grants, `${when} ${call}`).toEqual({});
      }
      expect(places.size).toBeGreaterThan(15);
    },
  );

  it('that wake within a tick long after their job has ended leave it none of its own slots', async () => {
    const places = new Set<string>();
    for (let call = 1; call <= 80; call++) {
      const process = new FreezingProcess({ call, when: call % 2 === 0 ? 'before' : 'after' });
      void process.frozen.then((name) => places.add(name));
      const made = await account({
        taskMs: 20_000,
        wrap: (deps, number) => (number === 1 ? process.wrap(deps, ports) : deps),
      });
      await submit(made, 1, { guaranteedSlots: 50 });
      await made.untilEnded(1, 10 * minute);
      await made.system.clock.advance(2 * minute);
      process.thaw();
      // Step by step: nothing else is due, and one step of time would be over before it had done what it does.
      for (let second = 0; second < 60; second++) await made.system.clock.advance(1_000);
      expect({ call, grants: (await made.system.ledger.view()).grants }).toEqual({ call, grants: {} });
    }
    expect(places).toContain('ledger.resize');
    expect(places).toContain('attempts.told');
  });

  it('of the second seat that freeze anywhere and die are followed, whoever sits in the first', async () => {
    for (let call = 1; call <= 80; call += 3) {
      const when = call % 2 === 0 ? 'before' : 'after';
      const process = new FreezingProcess({ call, when });
      const made = await account({
        residents: 2,
        taskMs: call % 4 === 0 ? 60_000 : 4_000,
        wrap: (deps, number) => (number === 17 ? process.wrap(deps, ports) : deps),
      });
      await submit(made, 16);
      void made.submit(oneTask('job-16'), 't-16');
      await made.untilEnded(17, 5 * minute);
      expect({ call, when, well: wellEnded(made) }).toEqual({ call, when, well: 17 });
    }
  });

  it.each([-3_600_000, 3_600_000])('whose clocks are %s ms off are followed all the same', async (offMs) => {
    const death = Promise.withResolvers<unknown>();
    const made = await account({
      taskMs: 2 * minute,
      killed: (number) => (number === 1 ? death.promise : undefined),
      wrap: (deps, number) =>
        number === 1 ? { ...deps, clock: skewed(deadAfter(deps, death.promise), offMs) } : deps,
      stayMs: 24 * 3_600_000,
    });
    await submit(made, 4);
    await made.system.clock.advance(30_000);
    death.resolve(undefined);
    await made.untilEnded(4, 20 * minute);
    expect(wellEnded(made)).toBe(4);
    expect(made.launched.size).toBe(4);
  });

  it('wait for no lease of a stranger whose clock is an hour ahead, once it is not renewed', async () => {
    const made = await account({ taskMs: 5_000 });
    const [id] = await submit(made, 1);
    const { leases, clock } = made.system;
    // Of a scheduler that the roster does not know: it gave its job back, or was struck off, and its release was lost.
    await leases.acquire(
      id ?? ('' as JobId),
      'gone',
      later(clock.now(), durationMs(3_600_000)),
      durationMs(15_000),
    );
    await made.untilEnded(1, 3 * minute);
    expect(wellEnded(made)).toBe(1);
    expect(made.launched.size).toBe(1);
  });

  it('take no lease from one that lives and renews it, whatever its clock says', async () => {
    const made = await account({ taskMs: 5_000 });
    const [id = '' as JobId] = await submit(made, 1);
    const { leases, clock } = made.system;
    const ahead = () => later(clock.now(), durationMs(3_600_000));
    await leases.acquire(id, 'alive', ahead(), durationMs(15_000));
    for (let second = 0; second < 120; second++) {
      await clock.advance(1_000);
      if (second % 7 === 0)
        expect(await leases.renew(id, 'alive', 1, later(ahead(), durationMs(15_000)))).toBe('renewed');
    }
    expect(made.launched.size).toBe(0);
    await made.untilEnded(1, 3 * minute);
    expect(wellEnded(made)).toBe(1);
  });

  it('end one job without harm to the others', async () => {
    const made = await account({ taskMs: minute });
    const [first] = await submit(made, 5);
    await made.system.clock.advance(20_000);
    await cancelJob(made.system, first ?? '');
    await made.untilEnded(5, 20 * minute);
    expect(wellEnded(made)).toBe(4);
    expect(made.counts.executions.find(({ jobId }) => jobId === first)).toMatchObject({
      ended: 'failed',
      error: expect.stringContaining('JobFailed') as unknown,
    });
    expect(made.counts.mostResidents).toBe(1);
  });

  it('bear a store that is away, without a step that is tried again', async () => {
    const away = { until: epochMs(0) };
    const made = await account({
      taskMs: minute,
      wrap: (deps) => ({ ...deps, jobs: unreliable(deps, away) }),
    });
    await submit(made, 3);
    await made.system.clock.advance(10_000);
    away.until = later(made.system.clock.now(), durationMs(20_000));
    await made.untilEnded(3, 20 * minute);
    expect(wellEnded(made)).toBe(3);
    expect(made.counts.transitions).toBe(9);
    expect(made.launched.size).toBe(3);
  });

  it('keep their seat, and with it their jobs, while a call hangs that it does not hang on', async () => {
    const hanging = { tokens: 0 };
    const made = await account({
      taskMs: 2 * minute,
      wrap: (deps) => ({
        ...deps,
        answers: Object.assign(Object.create(deps.answers) as typeof deps.answers, {
          beat: async (token: string) => {
            if (hanging.tokens-- > 0) await deps.clock.sleep(durationMs(20_000));
            return deps.answers.beat(token);
          },
        }),
      }),
    });
    await submit(made, 3);
    await made.system.clock.advance(10_000);
    hanging.tokens = 1;
    const leftMs: number[] = [];
    for (let second = 0; second < 40; second++) {
      await made.system.clock.advance(1_000);
      const { seats } = await made.roster.view(10);
      leftMs.push(...seats.map(({ until }) => until - made.system.clock.now()));
    }
    expect(leftMs).toHaveLength(40);
    expect(Math.min(...leftMs)).toBeGreaterThan(0);
    expect(hanging.tokens).toBeLessThan(1);
    await made.untilEnded(3, 20 * minute);
    expect(made.counts).toMatchObject({ transitions: 9, mostResidents: 1 });
    expect(made.launched.size).toBe(3);
  });

  it.each<[string, (token: TaskToken) => readonly TaskToken[]]>([
    // Whoever enlisted it again died between its two writes: the token is that of another enlistment than the place.
    ['was but half enlisted anew', (token) => [{ ...token, mark: 'another' }]],
    ['has no token that can be read any more', () => []],
  ])('take a job that has ended off the roster, and leave, where it %s', async (_, left) => {
    const made = await account({
      wrap: (deps) => ({
        ...deps,
        roster: Object.assign(Object.create(deps.roster) as typeof deps.roster, {
          tokens: async (jobs: readonly JobId[]) => {
            const tokens = [...(await made.roster.tokens(jobs))];
            return new Map(
              tokens.flatMap(([jobId, token]) => left(token).map((one) => [jobId, one] as const)),
            );
          },
        }),
      }),
    });
    const ids = await submit(made, 2);
    await made.system.clock.advance(minute);
    for (const id of ids) {
      const error = { name: 'ExecutionEnded', message: 'its execution was aborted' };
      await failJob(made.system.deps, id, error, durationMs(0));
    }
    await made.system.clock.advance(10 * minute);
    expect((await made.roster.view(10)).jobs).toEqual([]);
    expect(made.seated.size).toBe(0);
  });

  it('leave a job whose execution is gone, once none has followed for a while', async () => {
    const made = await account({ taskMs: 30 * minute });
    const [gone] = await submit(made, 2);
    await made.system.clock.advance(20_000);
    const token = gone === undefined ? undefined : (await made.roster.tokens([gone])).get(gone);
    made.stopExecution(token?.token ?? '');
    await made.system.clock.advance(4 * minute);
    expect((await made.roster.view(10)).jobs.map(({ jobId }) => jobId)).not.toContain(gone);
  });
});

/** Job records that cannot be read while the store is away. */
function unreliable({ jobs, clock }: ResidentDeps, away: { until: number }): ResidentDeps['jobs'] {
  return new Proxy(jobs, {
    get: (target, property) => {
      const method: unknown = Reflect.get(target, property, target);
      if (typeof method !== 'function') return method;
      return (...args: unknown[]): unknown => {
        if (clock.now() < away.until) return Promise.reject(new StoreUnavailableError('the store is away'));
        return Reflect.apply(method, target, args);
      };
    },
  });
}
