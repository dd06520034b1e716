import { beforeEach, describe, expect, it } from 'vitest';
import { MemoryForecastStore } from '../../../src/adapters/memory/memory-forecast-store.ts';
import { setDeadline } from '../../../src/app/change-job.ts';
import type { DeadlineTurn } from '../../../src/app/control-deadline.ts';
import { findJob } from '../../../src/app/query-jobs.ts';
import type { Session } from '../../../src/app/scheduler-session.ts';
import { submitJob } from '../../../src/app/submit-job.ts';
import type { JobId } from '../../../src/contracts/ids.ts';
import type { ForecastStore } from '../../../src/ports/forecast-store.ts';
import { DeadlineJobs, spec } from '../../support/deadline-jobs.ts';
import type { ScriptedSystem } from '../../support/scripted-job.ts';

let host: DeadlineJobs;
let system: ScriptedSystem;
let store: DeadlineJobs['store'];

beforeEach(async () => {
  host = await DeadlineJobs.open();
  ({ system, store } = host);
});

const entered: DeadlineJobs['entered'] = (...given) => host.entered(...given);
const rival: DeadlineJobs['rival'] = (...given) => host.rival(...given);
const learned: DeadlineJobs['learned'] = (...given) => host.learned(...given);
const eventsOf = (event: string): object[] =>
  host.told.flatMap(([each, data]) => (each === event ? [data] : []));

describe('a job with a deadline and a forecast', () => {
  // 1.1 × (4 + 44 / a) s, by a dead zone of a 60th before the deadline.
  it.each([
    ['60s', 1],
    ['30s', 2],
    ['20s', 4],
  ])('is taken on with the fewest slots of its own that meet %s: %i', async (deadline, slots) => {
    const { jobId, session, deps, look } = await entered({ deadline });
    expect(await look()).toMatchObject({ allocation: { kind: 'allocate', slots, reason: 'admitted' } });
    expect(session.share.guaranteed).toBe(slots);
    expect((await deps.ledger.view()).grants[jobId]).toMatchObject({ guaranteed: slots });
    expect(session.deadlineControl?.told).toMatchObject({ basis: 'profile', runs: 3, slotsWanted: slots });
  });

  it('is refused where no number of slots is enough, and says so', async () => {
    const { jobId, look } = await entered({ deadline: '10s' });
    expect(await look()).toEqual({
      refused:
        'the job is foretold to take longer than its deadline, also on all 4 slots: give it more time, or "admission": "best-effort" to run it without a promise',
    });
    expect(await store.own(jobId)).toBeUndefined();
  });

  it('is refused where those that were taken on before leave too few', async () => {
    await rival(3);
    const { look } = await entered({ deadline: '30s' });
    expect((await look()).refused).toMatch(
      /^the job needs 2 slots of its own for its deadline, more than others have left of 4: /,
    );
  });

  it.each([
    // No number of slots would do: none is told as needed.
    ['10s', 0, { totalSlots: 4 }],
    ['30s', 3, { needed: 2, totalSlots: 4 }],
  ])('runs without slots of its own where asked to (%s, beside %i)', async (deadline, others, facts) => {
    if (others > 0) await rival(others);
    const { jobId, session, look } = await entered({ deadline, admission: 'best-effort' });
    expect(await look()).toMatchObject({ allocation: { slots: 0, reason: 'best-effort', facts } });
    expect(session.share.guaranteed).toBe(0);
    expect((await store.own(jobId))?.bid).toBeUndefined();
  });

  it('launches nothing while the ledger is busy, and is taken on when it is not', async () => {
    const { look } = await entered({ deadline: '30s' });
    store.isBusy = true;
    expect(await look()).toEqual({ isHeldBack: true });
    await system.clock.advance(100);
    expect(await look()).toEqual({ isHeldBack: true });
    store.isBusy = false;
    expect((await look()).allocation).toMatchObject({ slots: 2, reason: 'admitted' });
  });

  it('goes on without an answer where the ledger is busy for long', async () => {
    const { look } = await entered({ deadline: '30s' });
    store.isBusy = true;
    for (let tries = 1; tries < 20; tries++) expect(await look()).toEqual({ isHeldBack: true });
    expect(await look()).toEqual({});
    store.isBusy = false;
    expect((await look()).allocation).toMatchObject({ slots: 2, reason: 'admitted' });
  });

  it('is not ended for a deadline that is given to it when it runs', async () => {
    const { jobId, session, tick } = await entered();
    for (let ticks = 0; ticks < 5; ticks++) await tick();
    expect(session.state.attempts.size).toBeGreaterThan(0);
    await setDeadline(system, jobId, { deadline: '1s' });
    for (let ticks = 0; ticks < 5; ticks++) await tick();
    expect(session.state.allocation).toMatchObject({ slots: 0, reason: 'best-effort' });
    expect((await findJob(system.jobs, jobId)).state).toBe('running');
  });

  it('asks for more when its deadline is cut, and for nothing when it has none any more', async () => {
    const { jobId, session, tick } = await entered({ deadline: '60s' });
    await tick();
    expect(session.state.allocation).toMatchObject({ slots: 1, reason: 'admitted' });
    await setDeadline(system, jobId, { deadline: '16s' });
    await tick();
    expect(session.state.allocation).toMatchObject({ reason: 'deadline-changed' });
    expect(session.state.allocation?.slots).toBeGreaterThan(1);
    await setDeadline(system, jobId, { deadline: 'none' });
    for (let ticks = 0; ticks < 3; ticks++) await tick();
    expect(session.state.allocation).toMatchObject({ slots: 0, reason: 'deadline-changed' });
    // What it bid for is nobody's any more, so that others may be taken on.
    const next = await entered({ name: 'words', deadline: '20s' });
    expect(await next.look()).toMatchObject({ allocation: { slots: 4, reason: 'admitted' } });
  });

  it('keeps the slots that its spec guarantees beside those for its deadline', async () => {
    const { jobId, session, tick } = await entered({ deadline: '60s', guaranteedSlots: 3 });
    for (let ticks = 0; ticks < 3; ticks++) {
      await tick();
      expect(await store.own(jobId)).toMatchObject({ guaranteed: 3 });
    }
    expect(session.state.allocation).toMatchObject({ slots: 1, reason: 'admitted' });
  });

  it('takes its fair share where the forecast proves wrong, and says why', async () => {
    host.taskTakesMs = 4_000;
    host.foretoldMs = 1_000;
    const { session, deps, tick } = await entered({ deadline: '600s' });
    const isWrong = () => session.state.allocation?.reason === 'wrong-forecast';
    for (let ticks = 0; ticks < 1_500 && !isWrong(); ticks++) await tick();
    expect(session.state.allocation).toMatchObject({ slots: 0, reason: 'wrong-forecast' });
    const last = eventsOf('allocated').at(-1) as {
      readonly workFactor: number;
      readonly finishedTasks: number;
    };
    expect(last).toMatchObject({ reason: 'wrong-forecast', slots: 0 });
    expect(last.workFactor).toBeGreaterThan(3);
    expect(last.finishedTasks).toBeGreaterThanOrEqual(20);
    await tick();
    expect(session.deadlineControl?.told).not.toHaveProperty('slotsWanted');
    expect(deps.ledger.isAnyOwed('other-000000000000' as JobId)).toBe(false);
  });
});

describe('a job that meets its deadline easily', () => {
  it('makes no copies while another lacks slots for its own, whether it looks anew or not', async () => {
    const { look } = await entered({ deadline: '600s' });
    expect(await look()).not.toHaveProperty('givesWay');
    await rival(3, 0);
    const turns: DeadlineTurn[] = [];
    for (let seconds = 0; seconds < 25; seconds++) {
      await system.clock.advance(1_000);
      turns.push(await look());
    }
    // What others lack is known from its second look at the ledger on, after ten seconds.
    expect(turns.slice(10).map(({ givesWay }) => givesWay)).toEqual(Array(15).fill(true));
  });

  it('makes them when it lacks time itself', async () => {
    const { look } = await entered({ deadline: '20s' });
    await look();
    await rival(3, 0);
    await system.clock.advance(10_000);
    const turns: DeadlineTurn[] = [];
    for (let seconds = 0; seconds < 5; seconds++) {
      await system.clock.advance(1_000);
      turns.push(await look());
    }
    expect(turns.filter(({ givesWay }) => givesWay)).toEqual([]);
  });
});

describe('a job of which nothing can be foretold', () => {
  const unreadable: ForecastStore = {
    get: () => Promise.resolve({ forecast: undefined, unreadable: 'it is no JSON', tag: '1' }),
    put: () => Promise.resolve('stale'),
  };
  const unreachable: ForecastStore = { ...unreadable, get: () => Promise.reject(new Error('no way')) };
  it.each([
    ['its first run', () => new MemoryForecastStore(), undefined, {}],
    ['a forecast that cannot be read', () => unreadable, 'forecast-unreadable', { why: 'it is no JSON' }],
    ['a store that cannot be reached', () => unreachable, 'no-forecast', { cause: 'Error: no way' }],
    [
      'a forecast of another plan',
      (session: Session) => new MemoryForecastStore([learned(session, { fingerprint: 'other' })]),
      'forecast-of-another',
      { name: 'words', runs: 3 },
    ],
    [
      'a forecast of another input',
      (session: Session) => new MemoryForecastStore([learned(session, { inputBytes: 1_000 })]),
      'forecast-of-another',
      { name: 'words', runs: 3 },
    ],
    [
      'a forecast of other stages',
      (session: Session) => {
        const forecast = learned(session);
        const stages = forecast.profile.stages.slice(0, 1);
        return new MemoryForecastStore([{ ...forecast, profile: { stages } }]);
      },
      'forecast-of-another',
      { name: 'words', runs: 3 },
    ],
  ] as const)('goes by its fair share and says so: %s', async (_name, knows, event, data) => {
    const { session, look } = await entered({ deadline: '10s' }, knows);
    expect(await look()).toEqual({});
    expect(session.deadlineControl?.told).toMatchObject({ basis: 'nothing', runs: 0 });
    expect(session.deadlineControl?.told).not.toHaveProperty('expectedEndAt');
    if (event !== undefined) expect(eventsOf(event)).toMatchObject([data]);
  });

  it('tells when it ends where it has no deadline and its runs are known', async () => {
    const { session, look } = await entered();
    session.grant = 4;
    expect(await look()).toEqual({});
    // 4 s + 44 s / 4.
    const expectedEndAt = system.clock.now() + 15_000;
    expect(session.deadlineControl?.told).toEqual({
      at: system.clock.now(),
      ...{ basis: 'profile', runs: 3, expectedEndAt },
    });
  });
});

describe('a job without slots of its own', () => {
  async function fallBack(session: Session, look: () => Promise<DeadlineTurn>): Promise<void> {
    const { allocation } = await look();
    if (allocation?.reason !== 'best-effort') throw new Error('it was taken on');
    session.state.allocation = { ...allocation, at: system.clock.now() };
  }

  it('is taken on when others have left it room, looked at every ten periods', async () => {
    const other = await rival(4);
    const { session, look } = await entered({ deadline: '120s', admission: 'best-effort' });
    await fallBack(session, look);
    await store.remove(other);
    await system.clock.advance(18_000);
    expect(await look()).toEqual({});
    await system.clock.advance(2_000);
    expect((await look()).allocation).toMatchObject({ slots: 1, reason: 'admitted' });
    expect(session.deadlineControl?.told).toMatchObject({ slotsWanted: 1 });
  });

  it('is taken on at once where its new deadline lets it', async () => {
    const { jobId, session, look } = await entered({ deadline: '10s', admission: 'best-effort' });
    await fallBack(session, look);
    await setDeadline(system, jobId, { deadline: '30s' });
    expect((await look()).allocation).toMatchObject({ slots: 2, reason: 'admitted' });
  });
});

describe('the first run of a job', () => {
  const unknown = () => new MemoryForecastStore();

  /** A finished job with the same operators: 500 ms a byte in the first stage, and 100 in the second. */
  async function past(): Promise<void> {
    const { jobId } = await submitJob(system, { spec });
    const done = await findJob(system.jobs, jobId);
    const stage = { state: 'done', done: 1, running: 0, recordsIn: 1, recordsOut: 1 } as const;
    const stages = [
      { ...stage, name: 'a', operator: 'tokenize', tasks: 10, bytesIn: 40, bytesOut: 40, workerMs: 20_000 },
      { ...stage, name: 'b', operator: 'sum-counts', tasks: 2, bytesIn: 40, bytesOut: 9, workerMs: 4_000 },
    ];
    await system.jobs.update(done.jobId, ['submitted'], { state: 'succeeded', stages } as never);
  }

  it('is foretold by jobs like it, with more slack, and never refused for that', async () => {
    await past();
    const { session, look } = await entered({ deadline: '60s' }, unknown);
    const own = (await look()).allocation;
    expect(own).toMatchObject({ reason: 'admitted' });
    expect(session.deadlineControl?.told).toMatchObject({ basis: 'similar', runs: 1 });
    // 1.5 times the slack of what was learned: one slot is enough by that, and not by this.
    expect(own?.slots).toBeGreaterThan(1);
    const hopeless = await entered({ deadline: '2s' }, unknown);
    expect((await hopeless.look()).allocation).toMatchObject({ slots: 0, reason: 'best-effort' });
  });

  it('is foretold by its own first tasks as they end, and asks for slots by that', async () => {
    const { session, tick } = await entered({ deadline: '60s' }, unknown);
    const bases = new Set<string | undefined>();
    for (let ticks = 0; ticks < 100; ticks++) {
      await tick();
      const { basis, probability } = session.deadlineControl?.told ?? {};
      bases.add(basis);
      expect(probability === undefined).toBe(basis === 'nothing');
    }
    expect([...bases]).toEqual(['nothing', 'first-wave']);
    expect(session.state.allocation?.slots).toBeGreaterThan(0);
  });
});
