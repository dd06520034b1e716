import { describe, expect, it } from 'vitest';
import { planJob } from '../../../src/app/plan-job.ts';
import { runScheduler } from '../../../src/app/run-scheduler.ts';
import type { SchedulerDeps } from '../../../src/app/scheduler-deps.ts';
import { submitJob } from '../../../src/app/submit-job.ts';
import { decisionsOf } from '../../../src/contracts/decision-log.ts';
import type { JobId } from '../../../src/contracts/ids.ts';
import type { AttemptPayload } from '../../../src/contracts/payloads.ts';
import { durationMs, later } from '../../../src/contracts/units.ts';
import { createRng } from '../../../src/lib/rng.ts';
import { ScriptedSystem } from '../../support/scripted-job.ts';

const tickMs = 1_000;

/** A system whose workers are of Fargate, and take from 40 to 70 s to start. */
class SlowStarts {
  readonly system = new ScriptedSystem();
  readonly ticksAt: number[] = [];
  /** How long the service takes for one RunTask. */
  runTaskMs = 0;
  private readonly rng = createRng('starts');

  deps(slots: number, fargateClaimLeaseMs: number): SchedulerDeps {
    const { deps, clock, jobs } = this.system;
    const launch = deps.launcher.launch.bind(deps.launcher);
    this.system.onLaunch = (payload) => {
      void this.start(payload);
      return Promise.resolve('accepted');
    };
    return {
      ...deps,
      jobs: Object.assign(Object.create(jobs) as typeof jobs, {
        load: (id: JobId) => {
          this.ticksAt.push(clock.now());
          return jobs.load(id);
        },
      }),
      launcher: {
        ...deps.launcher,
        terms: (kind) =>
          kind === 'lambda' ? { waits: true } : { waits: false, rate: { perS: 20, burst: 100 } },
        launch: async (requests) => {
          const outcomes = [];
          for (const request of requests) {
            if (this.runTaskMs > 0) await clock.sleep(durationMs(this.runTaskMs));
            outcomes.push(...(await launch([request])));
          }
          return outcomes;
        },
      },
      config: {
        ...{ tickMs: durationMs(tickMs), heartbeatMs: durationMs(10_000), leaseMs: durationMs(15_000) },
        ...{ claimLeaseMs: durationMs(900_000), fargateClaimLeaseMs: durationMs(fargateClaimLeaseMs) },
        ...{ totalSlots: slots, hasFargate: true },
      },
    };
  }

  /** Runs a job of so many tasks; answers the attempts that were given up. */
  async run(tasks: number, fargateClaimLeaseMs: number): Promise<readonly string[]> {
    const { system } = this;
    await system.objects.write({ bucket: 'data', key: 'in/a' }, Buffer.from('x'.repeat(4 * tasks)));
    const input = { s3: ['s3://data/in/'], splitBytes: 4 };
    const worker = { kind: 'fargate' as const, size: 'small' as const };
    const { jobId } = await submitJob(system, {
      spec: {
        name: 'slow',
        policy: 'none',
        stages: [{ name: 'map', operator: 'grep', options: { pattern: 'x' }, worker, inputs: [input] }],
      },
    });
    await planJob(system.deps, jobId);
    const residency = { owner: 'one', until: later(system.clock.now(), durationMs(1e9)) };
    const running = runScheduler(this.deps(tasks, fargateClaimLeaseMs), jobId, residency);
    const { outcome } = await system.whileTimePasses(running, 1_800_000);
    expect(outcome).toBe('finish');
    const lost: string[] = [];
    let version = 0;
    for await (const entry of system.decisions.read(jobId)) {
      for (const each of decisionsOf(jobId, entry, version))
        if (each.kind === 'lose') lost.push(each.attemptId);
      version = entry.version;
    }
    return lost;
  }

  private async start(payload: AttemptPayload): Promise<void> {
    const { clock } = this.system;
    await clock.sleep(durationMs(40_000 + Math.round(30_000 * this.rng.next())));
    if ((await this.system.claim(payload)) === 'refused') return;
    await clock.sleep(durationMs(5_000));
    await this.system.succeed(payload, { isClaimed: true });
  }
}

describe('tasks of Fargate that take 40 to 70 s to start', () => {
  it('are waited for: none of twenty is given up, and each is launched once', async () => {
    const slow = new SlowStarts();
    expect(await slow.run(20, 600_000)).toEqual([]);
    expect(slow.system.launches).toHaveLength(20);
  });

  it('came too late for a lease that fits Lambda, most of them', async () => {
    const slow = new SlowStarts();
    expect(new Set(await slow.run(20, 50_000)).size).toBeGreaterThan(10);
  });

  it('are counted from when they were launched: 400 that the service takes in 40 s hold no tick up, and none is late', async () => {
    const slow = new SlowStarts();
    slow.runTaskMs = 100;
    // The last is launched so late that its lease would be over, were it counted from the decision.
    expect(await slow.run(400, 75_000)).toEqual([]);
    expect(slow.system.launches).toHaveLength(400);
    const gaps = slow.ticksAt.slice(1).map((at, index) => at - (slow.ticksAt[index] ?? at));
    expect(Math.max(...gaps)).toBeLessThanOrEqual(tickMs + 50);
    expect(slow.ticksAt.length).toBeGreaterThan(60);
  });
});
