import { MemoryAttemptStore } from '../../src/adapters/memory/memory-attempt-store.ts';
import { MemoryCapacityStore } from '../../src/adapters/memory/memory-capacity-store.ts';
import { RuledCapacityLedger } from '../../src/app/capacity-ledger.ts';
import { MemoryClock } from '../../src/adapters/memory/memory-clock.ts';
import { MemoryCoordinator } from '../../src/adapters/memory/memory-coordinator.ts';
import { MemoryDecisionLog } from '../../src/adapters/memory/memory-decision-log.ts';
import { MemoryJobStore } from '../../src/adapters/memory/memory-job-store.ts';
import { MemoryJournalStore } from '../../src/adapters/memory/memory-journal-store.ts';
import { MemoryLeaseStore } from '../../src/adapters/memory/memory-lease-store.ts';
import { MemoryObjectStore } from '../../src/adapters/memory/memory-object-store.ts';
import { RandomIdSource } from '../../src/adapters/node/random-id-source.ts';
import type { PlanDeps } from '../../src/app/plan-job.ts';
import type { SchedulerDeps } from '../../src/app/scheduler-deps.ts';
import type { JobId } from '../../src/contracts/ids.ts';
import { taskOf } from '../../src/contracts/ids.ts';
import type { AttemptPayload } from '../../src/contracts/payloads.ts';
import type { Progress } from '../../src/contracts/progress.ts';
import { durationMs } from '../../src/contracts/units.ts';
import type { LaunchOutcome } from '../../src/ports/launcher.ts';

export const dataBucket = 'data';

export const progress = (bytesRead: number, bytesTotal = 100): Progress => ({
  bytesRead,
  bytesTotal,
  recordsIn: 1,
  recordsOut: 1,
  phase: 'compute',
  phaseMs: { init: 0, read: 0, compute: 0, write: 0 },
  peakMemoryBytes: 0,
});

/** A whole system in memory whose workers do what a test says: one call of `onLaunch` per launched attempt. */
export class ScriptedSystem {
  readonly clock = new MemoryClock();
  readonly jobs = new MemoryJobStore();
  readonly objects = new MemoryObjectStore();
  readonly attempts = new MemoryAttemptStore();
  readonly leases = new MemoryLeaseStore();
  readonly decisions = new MemoryDecisionLog();
  readonly journals = new MemoryJournalStore();
  readonly ledger = new RuledCapacityLedger(new MemoryCapacityStore());
  readonly coordinator = new MemoryCoordinator();
  readonly ids = new RandomIdSource();
  readonly logged: string[] = [];
  readonly launches: string[] = [];
  readonly dataBucket = dataBucket;
  readonly log = {
    info: (event: string): void => void this.logged.push(event),
    warn: (event: string): void => void this.logged.push(event),
  };
  onLaunch: (payload: AttemptPayload) => Promise<LaunchOutcome['outcome']> = async (payload) => {
    await this.succeed(payload);
    return 'accepted';
  };
  readonly checkOperator = (): void => undefined;

  readonly deps: SchedulerDeps & PlanDeps = {
    ...this.stores(),
    launcher: {
      launch: async (requests) => {
        const outcomes: LaunchOutcome[] = [];
        for (const { payload } of requests) {
          this.launches.push(payload.attemptId);
          outcomes.push({ attemptId: payload.attemptId, outcome: await this.onLaunch(payload) });
        }
        return outcomes;
      },
      stop: () => Promise.resolve(undefined),
    },
    config: {
      tickMs: durationMs(100),
      heartbeatMs: durationMs(1_000),
      leaseMs: durationMs(3_000),
      claimLeaseMs: durationMs(5_000),
      totalSlots: 4,
    },
  };

  private stores() {
    const { jobs, objects, attempts, leases, decisions, ledger, clock, ids, log } = this;
    return { jobs, objects, attempts, leases, decisions, ledger, clock, ids, log, dataBucket };
  }

  space(payload: AttemptPayload): { jobId: JobId; shards: number } {
    return { jobId: payload.jobId, shards: payload.shards };
  }

  claim(payload: AttemptPayload): Promise<'claimed' | 'refused'> {
    return this.attempts.claim(
      this.space(payload),
      payload.attemptId,
      { node: 'n', zone: 'z' },
      this.clock.now(),
    );
  }

  /** What a worker does that finds its work easy. The final stage's parts are empty. */
  async succeed(payload: AttemptPayload, { isClaimed = false } = {}): Promise<void> {
    if (!isClaimed && (await this.claim(payload)) === 'refused') return;
    const { attemptId } = payload;
    await this.attempts.commit(this.space(payload), {
      taskId: taskOf(attemptId),
      attemptId,
      committedAt: this.clock.now(),
      partitions: { lengths: [10, 0], crcs: [1, 0] },
      final: { kind: 'empty' },
      bytesIn: 100,
      bytesOut: 10,
      recordsIn: 2,
      recordsOut: 1,
      counters: { seen: 2 },
    });
    await this.attempts.end(
      this.space(payload),
      attemptId,
      { state: 'done', progress: progress(100) },
      this.clock.now(),
    );
  }

  /** Runs `work` while virtual time passes, for at most `limitMs` of it. */
  async whileTimePasses<T>(work: Promise<T>, limitMs = 120_000): Promise<T> {
    const state = { settled: false };
    const watched = work.finally(() => {
      state.settled = true;
    });
    watched.catch(() => undefined);
    for (let passed = 0; !state.settled && passed < limitMs; passed += 50) await this.clock.advance(50);
    if (!state.settled) throw new Error('did not settle in virtual time');
    return watched;
  }
}
