import { AsyncLocalStorage } from 'node:async_hooks';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { invocation, transitions } from '../../functions/shared/metered.ts';
import { CountedLog } from '../../functions/shared/counted-log.ts';
import { DynamoAttemptStore } from '../../src/adapters/aws/dynamo-attempt-store.ts';
import { DynamoCapacityStore } from '../../src/adapters/aws/dynamo-capacity-store.ts';
import { RuledCapacityLedger } from '../../src/app/capacity-ledger.ts';
import { DynamoDecisionLog } from '../../src/adapters/aws/dynamo-decision-log.ts';
import { DynamoJournalStore } from '../../src/adapters/aws/dynamo-journal-store.ts';
import { DynamoJobStore } from '../../src/adapters/aws/dynamo-job-store.ts';
import { DynamoRoster } from '../../src/adapters/aws/dynamo-roster.ts';
import { MemoryTaskAnswers } from '../../src/adapters/memory/memory-task-answers.ts';
import { DynamoLeaseStore } from '../../src/adapters/aws/dynamo-lease-store.ts';
import { DynamoStragglerStatistics } from '../../src/adapters/aws/dynamo-straggler-statistics.ts';
import { DynamoTable } from '../../src/adapters/aws/dynamo-table.ts';
import { MemoryCoordinator } from '../../src/adapters/memory/memory-coordinator.ts';
import { MemoryObjectStore } from '../../src/adapters/memory/memory-object-store.ts';
import { AsyncRequestMeter } from '../../src/adapters/node/async-request-meter.ts';
import { RandomIdSource } from '../../src/adapters/node/random-id-source.ts';
import { finishJob, type FinishDeps } from '../../src/app/finish-job.ts';
import { planJob, type PlanDeps } from '../../src/app/plan-job.ts';
import { enlistJob } from '../../src/app/enlist-job.ts';
import { reside } from '../../src/app/reside.ts';
import type { ResidentDeps } from '../../src/app/resident-deps.ts';
import { submitJob, type SubmitDeps } from '../../src/app/submit-job.ts';
import { submissionOwner } from '../../src/app/tell-costs.ts';
import type { JobSpecInput } from '../../src/contracts/job-spec.ts';
import type { JobId } from '../../src/contracts/ids.ts';
import type { JobRecord } from '../../src/contracts/records.ts';
import type { RequestTally } from '../../src/contracts/requests.ts';
import { durationMs, later } from '../../src/contracts/units.ts';
import { listPrices as prices } from '../../src/contracts/prices.ts';
import { costsOf } from '../../src/core/model/cost.ts';
import { addTallies } from '../../src/core/model/request-tally.ts';
import { operators } from '../../src/operators/registry.ts';
import type { LaunchRequest } from '../../src/ports/launcher.ts';
import type { Operator } from '../../src/worker/operator.ts';
import { type AttemptDeps } from '../../src/worker/run-attempt.ts';
import { runPack } from '../../src/worker/run-pack.ts';
import { countedObjects } from './counted-objects.ts';
import { InProcessDynamo, type ServedRequest } from './in-process-dynamo.ts';
import { QuietClock } from './quiet-clock.ts';
import { userCodeEntry } from './user-code-entry.ts';

export interface CostedJob {
  readonly maps: number;
  readonly mapMs: number;
  /** 0: a job of one stage. */
  readonly reduces: number;
  readonly reduceMs: number;
  readonly slots: number;
  /** Memory of workers whose time is the compute that all else is compared with. */
  readonly workerGb: number;
}

/** What a job has cost in one of its parts. */
export interface CostRow {
  readonly part: string;
  readonly count: number;
  readonly dollars: number;
  /** Of the compute. */
  readonly share: number;
}

export interface JobBill {
  readonly job: JobRecord;
  /** Everything that was asked for, as it was seen where it was served. */
  readonly seen: RequestTally;
  readonly rows: readonly CostRow[];
  /** The time of workers at `workerGb`, dollars. */
  readonly compute: number;
  /** All but compute, of it. */
  readonly overhead: number;
  /** DynamoDB, launches, coordinator, transitions, API and logs, of the compute. */
  readonly scheduling: number;
  readonly wallMs: number;
  readonly attempts: number;
}

const mb = 512;
/** From an invocation to the first line of the handler, warm or cold. */
const startMs = durationMs(150);
const residencyMs = durationMs(13 * 60_000);
const mapLine = Buffer.from('0123456\n');

/** What a job of tasks that only take time costs: production's use cases, worker and adapters, in virtual time. */
export async function billJob(options: CostedJob): Promise<JobBill> {
  const scratchRoot = await mkdtemp(join(tmpdir(), 'outrider-bill-'));
  try {
    return await new Host(options, scratchRoot).run();
  } finally {
    await rm(scratchRoot, { recursive: true, force: true });
  }
}

async function drain(items: AsyncIterable<unknown>): Promise<number> {
  let count = 0;
  for await (const item of items) if (item !== undefined) count += 1;
  return count;
}

class Host {
  private readonly options: CostedJob;
  private readonly scratchRoot: string;
  private readonly clock: QuietClock;
  private readonly meter: AsyncRequestMeter;
  private readonly workerMeter: AsyncRequestMeter;
  private readonly dynamo: InProcessDynamo;
  private readonly memory = new MemoryObjectStore();
  private readonly records = new Map<string, { count: number; writeUnits: number; readUnits: number }>();
  private readonly storage = new Map<string, number>();
  private readonly workers: Promise<unknown>[] = [];
  /** Workers are other processes: what they do is not the scheduler's who launched them. */
  private readonly elsewhere = AsyncLocalStorage.snapshot();
  private seen: RequestTally = {};

  constructor(options: CostedJob, scratchRoot: string) {
    this.options = options;
    this.scratchRoot = scratchRoot;
    this.clock = new QuietClock(() => this.dynamo.inFlight > 0);
    const began = this.clock.now();
    this.meter = new AsyncRequestMeter({ memoryMb: mb, elapsedMs: () => this.clock.now() - began });
    this.workerMeter = new AsyncRequestMeter({ elapsedMs: () => this.clock.now() - began });
    this.dynamo = new InProcessDynamo(
      (tally) => {
        // Each counts for those whose work it is, and nothing for others.
        this.meter.count(tally);
        this.workerMeter.count(tally);
      },
      (served) => {
        this.noteRecords(served);
      },
    );
  }

  async run(): Promise<JobBill> {
    await this.dynamo.createTable();
    const deps = this.deps();
    const inputs = await this.inputs();
    const began = this.clock.now();
    const jobId = await this.clock.until(this.drive(deps, inputs));
    const job = await deps.jobs.load(jobId);
    if (job === undefined) throw new Error('the job vanished');
    return this.bill(job, this.clock.now() - began);
  }

  private async inputs(): Promise<JobSpecInput> {
    const { maps, reduces } = this.options;
    const body = Buffer.concat(Array.from({ length: maps }, () => mapLine));
    await this.memory.write({ bucket: 'input', key: 'lines' }, body);
    const worker = { kind: 'lambda', size: 'small' } as const;
    const input = { s3: ['s3://input/lines'], splitBytes: mapLine.length };
    const map = { name: 'map', operator: 'tokenize' as const, worker, inputs: [input] };
    return {
      name: 'billed',
      stages:
        reduces === 0
          ? [map]
          : [
              { ...map, partitions: reduces },
              {
                name: 'reduce',
                operator: 'sum-counts',
                worker,
                inputs: [{ stage: 'map', pattern: 'all-to-all' }],
              },
            ],
    };
  }

  /** As the state machine does it. */
  private async drive(deps: ReturnType<Host['deps']>, spec: JobSpecInput): Promise<JobId> {
    const { jobId } = await this.meter.counting(submissionOwner, () => {
      this.meter.count({ api: 1, lambda: 1 });
      return submitJob(deps, { spec });
    });
    await invocation(deps, jobId, transitions.plan, () => planJob(deps, jobId));
    for (let entry = 0; !(await this.schedule(deps, jobId, entry)); entry++);
    await Promise.all(this.workers);
    await invocation(deps, jobId, transitions.finish, () => finishJob(deps, jobId));
    return jobId;
  }

  /** One try of the state machine; whether it was told that the job is to finish. */
  private async schedule(deps: ReturnType<Host['deps']>, jobId: JobId, entry: number): Promise<boolean> {
    const self = { owner: `entry-${String(entry)}`, until: later(this.clock.now(), residencyMs) };
    const token = `token-${String(entry)}`;
    const heard: string[] = [];
    deps.answers.wait(token);
    deps.answers.onAnswer = (_token, { kind }) => void heard.push(kind);
    const seating = await invocation(deps, jobId, transitions.schedule, () =>
      enlistJob(deps, { jobId, token }, self),
    );
    if (seating === undefined) throw new Error('another resident is there');
    await reside(deps, seating, { ...self, jobId });
    return heard.includes('succeeded');
  }

  private deps(): ResidentDeps & { readonly answers: MemoryTaskAnswers } & FinishDeps &
    PlanDeps &
    SubmitDeps & { readonly requests: AsyncRequestMeter } {
    const table = new DynamoTable(this.dynamo.documents, this.dynamo.tableName);
    const objects = countedObjects(this.memory, (name, requests) => {
      this.meter.count({ [name]: requests });
      this.noteStorage(`coordinator ${name}`, requests);
    });
    const quiet = { info: (): void => undefined, warn: (): void => undefined };
    const common = {
      objects,
      attempts: new DynamoAttemptStore(table),
      clock: this.clock,
      log: new CountedLog(quiet, this.meter),
      requests: this.meter,
      dataBucket: 'data',
    };
    const worker: AttemptDeps = {
      ...common,
      requests: this.workerMeter,
      log: new CountedLog(quiet, this.workerMeter),
      objects: countedObjects(this.memory, (name, requests) => {
        this.workerMeter.count({ [name]: requests });
        this.noteStorage(`workers ${name}`, requests);
      }),
      operators: { ...operators, tokenize: this.map(), 'sum-counts': this.reduce() },
      environment: { plain: {} },
      place: { node: 'node', zone: 'zone' },
      scratchRoot: this.scratchRoot,
      sortMemoryBytes: 256 * 1024,
      userCode: { objects: this.memory, program: { entryPath: userCodeEntry } },
    };
    return {
      ...common,
      jobs: new DynamoJobStore(table),
      leases: new DynamoLeaseStore(table),
      roster: new DynamoRoster(table),
      answers: new MemoryTaskAnswers(),
      residents: 4,
      decisions: new DynamoDecisionLog(table),
      journals: new DynamoJournalStore(table),
      ledger: new RuledCapacityLedger(new DynamoCapacityStore(table)),
      stragglers: new DynamoStragglerStatistics(table),
      coordinator: new MemoryCoordinator(),
      ids: new RandomIdSource(),
      checkOperator: () => undefined,
      launcher: {
        launch: (requests) => Promise.resolve(requests.map((request) => this.launch(worker, request))),
        stop: () => Promise.resolve(undefined),
      },
      config: {
        tickMs: durationMs(1_000),
        heartbeatMs: durationMs(10_000),
        leaseMs: durationMs(15_000),
        claimLeaseMs: durationMs(60_000),
        totalSlots: this.options.slots,
      },
    };
  }

  private launch(worker: AttemptDeps, { payload }: LaunchRequest) {
    this.meter.count({ lambda: 1 });
    const begin = async (): Promise<void> => {
      await this.clock.sleep(startMs);
      await runPack(worker, payload);
    };
    this.workers.push(this.elsewhere(begin));
    return { attemptId: payload.attemptId, outcome: 'accepted' as const };
  }

  private map(): Operator {
    const { mapMs, reduces } = this.options;
    return {
      check: () => undefined,
      run: async ({ inputs, output }) => {
        for (const input of inputs) await drain(input.blocks());
        await this.clock.sleep(durationMs(mapMs));
        for (let place = 0; place < Math.max(1, reduces); place++)
          await output.emit(Buffer.from(`key ${String(place)}`), Buffer.from('1'), place);
      },
    };
  }

  private reduce(): Operator {
    return {
      check: () => undefined,
      run: async ({ inputs, output }) => {
        for (const input of inputs) await drain(input.records());
        await this.clock.sleep(durationMs(this.options.reduceMs));
        await output.write(Buffer.from('done\n'));
      },
    };
  }

  private noteStorage(part: string, requests: number): void {
    this.storage.set(part, (this.storage.get(part) ?? 0) + requests);
  }

  private noteRecords({ operation, key, writeUnits, readUnits }: ServedRequest): void {
    const part = `${operation} ${key}`;
    const sum = this.records.get(part) ?? { count: 0, writeUnits: 0, readUnits: 0 };
    sum.count += 1;
    sum.writeUnits += writeUnits;
    sum.readUnits += readUnits;
    this.records.set(part, sum);
    this.seen = addTallies(this.seen, { calls: 1, writeUnits, readUnits });
  }

  private bill(job: JobRecord, wallMs: number): JobBill {
    const { workerGb } = this.options;
    const compute = (job.workerMs / 1_000) * workerGb * prices.lambdaGbSecond;
    const row = (part: string, count: number, dollars: number): CostRow => ({
      part,
      count,
      dollars,
      share: dollars / compute,
    });
    const records = [...this.records].map(([part, { count, ...units }]) =>
      row(`records: ${part}`, count, costsOf(units, 0).records),
    );
    const storage = [...this.storage].map(([part, count]) => {
      const [, name = ''] = part.split(' ');
      return row(`storage: ${part}`, count, costsOf({ [name]: count }, 0).storage);
    });
    const told = job.requests;
    if (told === undefined) throw new Error('the job tells no requests');
    const coordination = [
      row('coordination: invocations', told.lambda, told.lambda * prices.lambdaRequest),
      row(
        'coordination: functions, GB-s',
        told.coordinatorGbSeconds,
        told.coordinatorGbSeconds * prices.lambdaGbSecond,
      ),
      row('coordination: state transitions', told.states, told.states * prices.stateTransition),
      row('coordination: API', told.api, told.api * prices.apiCall),
      row('coordination: logs, bytes', told.logBytes, (told.logBytes / 1024 ** 3) * prices.logGb),
    ];
    const rows = [...records, ...storage, ...coordination].sort((a, b) => b.dollars - a.dollars);
    const sum = (some: readonly CostRow[]): number => some.reduce((total, { share }) => total + share, 0);
    return {
      job,
      seen: { ...this.seen, ...Object.fromEntries(this.classes()) },
      rows,
      compute,
      overhead: sum(rows),
      scheduling: sum([...records, ...coordination]),
      wallMs,
      attempts: job.attempts.launched,
    };
  }

  /** Requests of S3 by class. */
  private classes(): Map<string, number> {
    const sums = new Map<string, number>();
    for (const [part, count] of this.storage) {
      const [, name = ''] = part.split(' ');
      sums.set(name, (sums.get(name) ?? 0) + count);
    }
    return sums;
  }
}
