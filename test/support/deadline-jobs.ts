import { MemoryCapacityStore } from '../../src/adapters/memory/memory-capacity-store.ts';
import { MemoryForecastStore } from '../../src/adapters/memory/memory-forecast-store.ts';
import { RuledCapacityLedger } from '../../src/app/capacity-ledger.ts';
import { controlDeadline, type DeadlineTurn } from '../../src/app/control-deadline.ts';
import { enterJob } from '../../src/app/enter-job.ts';
import { planJob } from '../../src/app/plan-job.ts';
import { findJob } from '../../src/app/query-jobs.ts';
import type { SchedulerDeps } from '../../src/app/scheduler-deps.ts';
import type { Session } from '../../src/app/scheduler-session.ts';
import { submitJob } from '../../src/app/submit-job.ts';
import { runTick } from '../../src/app/tick-job.ts';
import { forecastFormat, type StoredForecast } from '../../src/contracts/forecast.ts';
import type { JobId } from '../../src/contracts/ids.ts';
import type { JobSpecInput } from '../../src/contracts/job-spec.ts';
import { durationMs, epochMs, later } from '../../src/contracts/units.ts';
import type { CapacityRule, SlotBid } from '../../src/core/capacity/ledger.ts';
import { matterOf } from '../../src/core/forecast/learn-profile.ts';
import type { CapacityStore, Changed } from '../../src/ports/capacity-store.ts';
import type { ForecastStore } from '../../src/ports/forecast-store.ts';
import { ScriptedSystem } from './scripted-job.ts';

/** Twenty tasks of `map` and two of `reduce` on the four slots of the system; foretold to take two seconds each. The paper's control, with less slack. */
export const spec: JobSpecInput = {
  name: 'words',
  policyConfig: { jockey: { preset: 'paper', slack: 1.1, deadZoneMs: 60_000 } },
  stages: [
    { name: 'map', operator: 'tokenize', inputs: [{ s3: ['s3://data/in/'], splitBytes: 4 }], partitions: 2 },
    { name: 'reduce', operator: 'sum-counts', inputs: [{ stage: 'map', pattern: 'all-to-all' }] },
  ],
};
const taskMs = 2_000;

/** A ledger's store whose changes come to nothing while others write. */
class BusyStore implements CapacityStore {
  isBusy = false;
  private readonly inner = new MemoryCapacityStore();
  readonly tell: CapacityStore['tell'] = (...words) => this.inner.tell(...words);
  readonly own: CapacityStore['own'] = (jobId) => this.inner.own(jobId);
  readonly strike: CapacityStore['strike'] = (...whom) => this.inner.strike(...whom);
  readonly remove: CapacityStore['remove'] = (jobId) => this.inner.remove(jobId);
  readonly load: CapacityStore['load'] = () => this.inner.load();

  change<T>(rule: CapacityRule<T>): Promise<Changed<T> | 'busy'> {
    return this.isBusy ? Promise.resolve('busy') : this.inner.change(rule);
  }
}

/** A system of jobs with deadlines, whose tasks take as long as a test says. */
export class DeadlineJobs {
  readonly system = new ScriptedSystem();
  readonly store = new BusyStore();
  readonly told: [event: string, data: object][] = [];
  /** What schedulers of jobs have besides, or in place of what the system gives them. */
  more: Partial<SchedulerDeps> = {};
  taskTakesMs = taskMs;
  foretoldMs = taskMs;

  static async open(): Promise<DeadlineJobs> {
    const host = new DeadlineJobs();
    const { system } = host;
    await system.objects.write({ bucket: 'data', key: 'in/a' }, Buffer.from('one '.repeat(20)));
    system.onLaunch = async (payload) => {
      await system.claim(payload);
      const takesMs = durationMs(host.taskTakesMs);
      void system.clock.sleep(takesMs).then(() => system.succeed(payload, { isClaimed: true }));
      return 'accepted';
    };
    return host;
  }

  /** What earlier runs told: without a table, so that Amdahl's law foretells 4 s + 44 s / slots. */
  learned(session: Session, changes: Partial<StoredForecast> = {}): StoredForecast {
    const times = { cold: [], first: [], later: [this.foretoldMs] };
    const stages = session.plan.stages.map(({ description: { name, tasks } }, stage) => ({
      ...{ name, tasks, queueMs: [], failureShare: 0, runs: [{ slots: 4, times }] },
      inputs: stage === 0 ? [] : [{ stage: 0, isBarrier: true }],
    }));
    const matter = matterOf(session.plan);
    return {
      version: forecastFormat,
      name: 'words',
      ...matter,
      runs: 3,
      jobs: [],
      profile: { stages },
      ...changes,
    };
  }

  /** A job that has a scheduler and has launched nothing; by default its forecast is known. */
  async entered(
    changes: Partial<JobSpecInput> = {},
    knows: ((session: Session) => ForecastStore) | undefined = (session) =>
      new MemoryForecastStore([this.learned(session)]),
  ) {
    const log = {
      info: (event: string, data: object = {}): void => void this.told.push([event, data]),
      warn: (event: string, data: object = {}): void => void this.told.push([event, data]),
    };
    const bare: SchedulerDeps = {
      ...this.system.deps,
      ...this.more,
      ledger: new RuledCapacityLedger(this.store),
      log,
    };
    const { jobId } = await submitJob(this.system, { spec: { ...spec, ...changes } });
    await planJob(this.system, jobId);
    const until = later(this.system.clock.now(), durationMs(600_000));
    const session = await enterJob(bare, jobId, { owner: jobId, until });
    const deps = { ...bare, forecasts: knows(session) };
    const look = async (): Promise<DeadlineTurn> =>
      controlDeadline(deps, session, await findJob(this.system.jobs, jobId), this.system.clock.now());
    const tick = async (): Promise<void> => {
      await this.system.clock.advance(100);
      await runTick(deps, session);
    };
    return { jobId, session, deps, look, tick };
  }

  /** Another job with a deadline that was taken on before, and asks for so many slots. */
  async rival(slots: number, granted = slots): Promise<JobId> {
    const jobId = 'rival-000000000000' as JobId;
    const said = { wanted: slots, weight: 1, since: epochMs(0), beat: 1, epoch: 1 };
    const bid: SlotBid = {
      asks: slots,
      left: [
        [1, 600_000],
        [slots, 600_000 / slots],
      ],
      utility: [
        [0, 1],
        [600_000, 1],
        [700_000, -1],
      ],
    };
    await this.store.tell(jobId, undefined, {
      ...said,
      slots: granted,
      held: granted,
      guaranteed: slots,
      bid,
    });
    return jobId;
  }
}
