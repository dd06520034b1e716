import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MemoryAttemptStore } from '../../src/adapters/memory/memory-attempt-store.ts';
import { MemoryCapacityStore } from '../../src/adapters/memory/memory-capacity-store.ts';
import { RuledCapacityLedger } from '../../src/app/capacity-ledger.ts';
import { MemoryCoordinator } from '../../src/adapters/memory/memory-coordinator.ts';
import { MemoryDecisionLog } from '../../src/adapters/memory/memory-decision-log.ts';
import { MemoryJobStore } from '../../src/adapters/memory/memory-job-store.ts';
import { MemoryLeaseStore } from '../../src/adapters/memory/memory-lease-store.ts';
import { MemoryObjectStore } from '../../src/adapters/memory/memory-object-store.ts';
import { RandomIdSource } from '../../src/adapters/node/random-id-source.ts';
import { SystemClock } from '../../src/adapters/node/system-clock.ts';
import { failJob } from '../../src/app/fail-job.ts';
import { finishJob } from '../../src/app/finish-job.ts';
import { planJob } from '../../src/app/plan-job.ts';
import { runScheduler } from '../../src/app/run-scheduler.ts';
import type { SchedulerDeps } from '../../src/app/scheduler-deps.ts';
import { submitJob } from '../../src/app/submit-job.ts';
import type { JobSpecInput } from '../../src/contracts/job-spec.ts';
import { parseUri } from '../../src/contracts/keys.ts';
import type { AttemptPayload } from '../../src/contracts/payloads.ts';
import type { JobRecord } from '../../src/contracts/records.ts';
import { durationMs, later } from '../../src/contracts/units.ts';
import { operators } from '../../src/operators/registry.ts';
import type { LaunchRequest } from '../../src/ports/launcher.ts';
import { runPack } from '../../src/worker/run-pack.ts';
import { plainEnvironment } from '../../src/worker/processes/child-environment.ts';
import { userCodeEntry } from './user-code-entry.ts';

const noLog = { info: (): void => undefined, warn: (): void => undefined };

/** What a job left behind. */
export interface HostedJob {
  readonly job: JobRecord;
  /** Output parts in order, laid end to end. */
  readonly output: Buffer;
  /** Every key in the bucket but the inputs. */
  readonly keys: readonly string[];
}

/** Runs whole jobs through the real use cases, workers and operators over stores in memory: exactness, fast. */
export class MemoryHost {
  readonly objects = new MemoryObjectStore();
  /** Called for each launch; may run the attempt twice, later or never. */
  deliver: (run: () => Promise<unknown>, payload: AttemptPayload) => Promise<unknown> = (run) => run();
  readonly sortMemoryBytes: number;

  readonly totalSlots: number;

  constructor(options: { readonly sortMemoryBytes?: number; readonly totalSlots?: number } = {}) {
    this.totalSlots = options.totalSlots ?? 4;
    this.sortMemoryBytes = options.sortMemoryBytes ?? 1024 * 1024;
  }

  async put(key: string, body: Uint8Array): Promise<string> {
    const ref = { bucket: 'input', key };
    await this.objects.write(ref, body);
    return `s3://input/${key}`;
  }

  async run(spec: JobSpecInput): Promise<HostedJob> {
    const scratchRoot = await mkdtemp(join(tmpdir(), 'outrider-host-'));
    try {
      const hosted = await this.runIn(spec, scratchRoot);
      const left = await readdir(scratchRoot);
      if (left.length > 0) throw new Error(`attempts left scratch files: ${left.join(', ')}`);
      return hosted;
    } finally {
      await rm(scratchRoot, { recursive: true, force: true });
    }
  }

  private async runIn(spec: JobSpecInput, scratchRoot: string): Promise<HostedJob> {
    const deliveries: Promise<unknown>[] = [];
    const deps = this.depsFor(scratchRoot, deliveries);
    const { jobId } = await submitJob(deps, { spec });
    try {
      await planJob(deps, jobId);
      await runScheduler(deps, jobId, { owner: 'host', until: later(deps.clock.now(), durationMs(120_000)) });
      await finishJob(deps, jobId);
    } catch (error) {
      const caught = error instanceof Error ? error : new Error(String(error));
      await failJob(deps, jobId, { name: caught.name, message: caught.message }, durationMs(2_000));
    }
    await Promise.all(deliveries);
    const job = await deps.jobs.load(jobId);
    if (job === undefined) throw new Error('the job vanished');
    return this.collect(job);
  }

  private depsFor(scratchRoot: string, deliveries: Promise<unknown>[]) {
    const attempts = new MemoryAttemptStore();
    const { objects, sortMemoryBytes } = this;
    const clock = new SystemClock();
    const common = { objects, attempts, clock, log: noLog, dataBucket: 'data' };
    const worker = {
      ...common,
      operators,
      environment: { plain: plainEnvironment(process.env) },
      place: { node: 'node', zone: 'zone' },
      scratchRoot,
      sortMemoryBytes,
      userCode: { objects, program: { entryPath: userCodeEntry } },
    };
    const launch = ({ payload }: LaunchRequest) => {
      deliveries.push(this.deliver(() => runPack(worker, payload), payload));
      return { attemptId: payload.attemptId, outcome: 'accepted' as const };
    };
    const scheduler: SchedulerDeps = {
      ...common,
      jobs: new MemoryJobStore(),
      leases: new MemoryLeaseStore(),
      decisions: new MemoryDecisionLog(),
      ledger: new RuledCapacityLedger(new MemoryCapacityStore()),
      launcher: {
        launch: (requests) => Promise.resolve(requests.map(launch)),
        stop: () => Promise.resolve(undefined),
      },
      config: {
        tickMs: durationMs(1),
        heartbeatMs: durationMs(500),
        leaseMs: durationMs(60_000),
        claimLeaseMs: durationMs(300),
        totalSlots: this.totalSlots,
      },
    };
    return {
      ...scheduler,
      coordinator: new MemoryCoordinator(),
      ids: new RandomIdSource(),
      checkOperator: (name: keyof typeof operators, options: Readonly<Record<string, unknown>>) => {
        operators[name].check(options);
      },
    };
  }

  private async collect(job: JobRecord): Promise<HostedJob> {
    const bucket = parseUri(job.output)?.bucket ?? 'data';
    const keys: string[] = [];
    for await (const { key } of this.objects.list({ bucket, key: '' })) keys.push(key);
    const parts = [];
    // A job's record names few parts only, `_SUCCESS` all of them; the store has them in order.
    for (const key of keys.filter((each) => /\/part-\d+$/.test(each)).toSorted())
      parts.push(await this.objects.readAll({ bucket, key }));
    for await (const upload of this.objects.listUploads({ bucket, key: '' }))
      keys.push(`upload of ${upload.key}`);
    return { job, output: Buffer.concat(parts), keys };
  }
}
