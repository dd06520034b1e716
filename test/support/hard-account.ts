import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { scheduleRetries, stepRetries, type StepRetry } from '../../cdk/constructs/step-retries.ts';
import { MemoryCoordinator } from '../../src/adapters/memory/memory-coordinator.ts';
import { MemoryObjectStore } from '../../src/adapters/memory/memory-object-store.ts';
import { MemoryTaskAnswers } from '../../src/adapters/memory/memory-task-answers.ts';
import { RandomIdSource } from '../../src/adapters/node/random-id-source.ts';
import { enlistJob } from '../../src/app/enlist-job.ts';
import { failJob } from '../../src/app/fail-job.ts';
import { finishJob } from '../../src/app/finish-job.ts';
import { planJob } from '../../src/app/plan-job.ts';
import { recordWorkerEnd } from '../../src/app/record-worker-end.ts';
import { reside } from '../../src/app/reside.ts';
import { submitJob } from '../../src/app/submit-job.ts';
import { OutputLostError } from '../../src/contracts/errors.ts';
import type { JobId } from '../../src/contracts/ids.ts';
import type { JobSpecInput } from '../../src/contracts/job-spec.ts';
import { limits } from '../../src/contracts/limits.ts';
import type { AttemptPayload } from '../../src/contracts/payloads.ts';
import { type DurationMs, durationMs, type EpochMs, later } from '../../src/contracts/units.ts';
import type { Clock } from '../../src/ports/clock.ts';
import type { LaunchRequest } from '../../src/ports/launcher.ts';
import type { UploadRef } from '../../src/ports/object-store.ts';
import { type AttemptOutcome } from '../../src/worker/run-attempt.ts';
import { runPack } from '../../src/worker/run-pack.ts';
import { HardProcess } from './hard-process.ts';
import { type RecordStores, storesInMemory } from './record-stores.ts';
import { slowOperators } from './slow-operators.ts';
import { QuietClock } from './quiet-clock.ts';
import { userCodeEntry } from './user-code-entry.ts';

/** What becomes of a launch on its way to its worker: it comes after `afterMs`, twice where `againMs` is said, or never. */
export interface Delivery {
  readonly afterMs: number;
  readonly againMs?: number;
  readonly isLost?: boolean;
}

export interface HardAccountOptions {
  /** How long each attempt computes at least. */
  readonly taskMs: number;
  /** How long each block of a source takes besides; absent: no time. */
  readonly blockMs?: number;
  /** How long the platform lets a worker live; absent: as long as a function. */
  readonly workerMs?: number;
  /** Attempts that may run at once; 8 where nothing is said. */
  readonly totalSlots?: number;
  /** The process of a name such as `plan 1`, `scheduler 2`, `map/0/1 1`, called once for each as it begins. */
  readonly process: (name: string, clock: Clock) => HardProcess;
  readonly delivery?: (attemptId: string, number: number) => Delivery;
  /** After the death of a worker the platform tells of it; absent: it never does. */
  readonly deathToldMs?: number;
  readonly stores?: RecordStores;
  /** Whether requests to the stores are under way, where those are not in memory. */
  readonly isBusy?: () => boolean;
  /** When it begins. */
  readonly startAt?: EpochMs;
  /** Told of each worker and step before it begins, which waits for it. */
  readonly onBegin?: (name: string, account: HardAccount) => Promise<void>;
  /** Told of each call of a process, such as `finish 1`, before it takes effect, which waits for it. */
  readonly onCall?: (of: HardCall, account: HardAccount) => Promise<void>;
}

/** A call of a process: the `call`-th, from 1, of `place`, such as `objects.write`. */
export interface HardCall {
  readonly process: string;
  readonly place: string;
  readonly call: number;
}

const workerPorts = ['objects', 'attempts'] as const;
const stepPorts = [...workerPorts, 'jobs', 'ledger'] as const;
const schedulerPorts = [...stepPorts, 'leases', 'decisions', 'launcher', 'roster', 'answers'] as const;
/** Lambda ends a function after that, so that its step is tried again, or its event counts as failed. */
const functionMs = 15 * 60_000;
const stayMs = 13 * 60_000;
const usualDelivery: Delivery = { afterMs: 300 };
/** Nothing that happens to a job of these tests may hold it up for longer. */
const longestMs = 48 * 3_600_000;

class StepError extends Error {
  constructor(name: string, message = name) {
    super(message);
    this.name = name;
  }
}

/** A worker that was begun. */
export interface RunWorker {
  readonly attemptId: string;
  readonly process: HardProcess;
  /** Absent: it died, or its claim failed. */
  outcome?: AttemptOutcome;
}

/**
 * An account in virtual time whose processes freeze, die and err by the clock, and whose calls come late, twice or
 * never: production's use cases, residents, workers and operators, and the template's rules of Retry, over stores that
 * do what they are told.
 */
export class HardAccount {
  readonly clock: QuietClock;
  readonly stores: RecordStores;
  readonly objects = new MemoryObjectStore();
  readonly answers = new MemoryTaskAnswers();
  readonly coordinator = new MemoryCoordinator();
  /** Calls of the launcher, in order. */
  readonly launches: string[] = [];
  readonly workers: RunWorker[] = [];
  /** Schedulers that entered a job. */
  entries = 0;
  private readonly startedAt: EpochMs;
  /** What was logged, for messages. */
  readonly events: string[] = [];
  private readonly options: HardAccountOptions;
  private readonly scratchRoot: string;
  private readonly names = new Map<string, number>();
  private readonly waiting = new Map<string, { beatAt: number; settle: (end: TokenEnd) => void }>();
  /** What goes on, but for what is dead. */
  private readonly underWay = new Set<Promise<unknown>>();

  private constructor(options: HardAccountOptions, scratchRoot: string) {
    this.options = options;
    this.scratchRoot = scratchRoot;
    this.clock = new QuietClock(options.isBusy ?? (() => false), options.startAt);
    this.startedAt = this.clock.now();
    this.stores = options.stores ?? storesInMemory();
    this.answers.onBeat = (token) => {
      const found = this.waiting.get(token);
      if (found !== undefined) found.beatAt = this.clock.now();
    };
    this.answers.onAnswer = (token, answer) => this.waiting.get(token)?.settle(answer);
  }

  /** Opens an account, has it do `work`, and lets all that goes on end before it looks at it. */
  static async use<T>(
    options: HardAccountOptions,
    work: (account: HardAccount) => Promise<T>,
    look: (account: HardAccount, result: T) => Promise<void>,
  ): Promise<void> {
    const scratchRoot = await mkdtemp(join(tmpdir(), 'outrider-hard-'));
    const account = new HardAccount(options, scratchRoot);
    try {
      const result = await account.clock.until(
        Promise.race([
          work(account).then(async (done) => {
            await account.settled();
            return done;
          }),
          account.clock.sleep(durationMs(longestMs)).then(() => {
            throw new Error(`did not end: ${account.events.slice(-20).join('\n')}`);
          }),
        ]),
      );
      await account.clock.until(look(account, result));
    } finally {
      await rm(scratchRoot, { recursive: true, force: true });
    }
  }

  /** Submits a job and runs its state machine to the end. */
  async run(spec: JobSpecInput): Promise<JobId> {
    const { jobId } = await submitJob(this.deps(new HardProcess(this.clock)), { spec });
    await this.execute(jobId);
    return jobId;
  }

  /** Uploads that nobody has completed yet. */
  async uploads(): Promise<readonly UploadRef[]> {
    const all: UploadRef[] = [];
    for await (const upload of this.objects.listUploads({ bucket: 'data', key: '' })) all.push(upload);
    return all;
  }

  /** Resolves once nothing goes on but what is dead. */
  private async settled(): Promise<void> {
    while (this.underWay.size > 0) await Promise.all(this.underWay);
  }

  private goOn(work: Promise<unknown>): void {
    const ended = work
      .catch((cause: unknown) => {
        this.note('broke', { cause: String(cause) });
      })
      .finally(() => this.underWay.delete(ended));
    this.underWay.add(ended);
  }

  private begin(name: string): HardProcess {
    const number = (this.names.get(name) ?? 0) + 1;
    this.names.set(name, number);
    const full = `${name} ${String(number)}`;
    const process = this.options.process(full, this.clock);
    const { onCall } = this.options;
    if (onCall !== undefined) process.onCall = (place, call) => onCall({ process: full, place, call }, this);
    return process;
  }

  private note(event: string, facts: Readonly<Record<string, unknown>> = {}): void {
    if (event === 'entered') this.entries += 1;
    this.events.push(`${String(this.clock.now() - this.startedAt)} ${event} ${JSON.stringify(facts)}`);
  }

  /** What a process works with; what it calls is numbered, but for the clock. */
  deps(process: HardProcess) {
    const { objects, answers } = this;
    const note = (event: string, facts?: Readonly<Record<string, unknown>>): void => {
      this.note(event, facts);
    };
    const ports = {
      ...this.stores,
      ...{ objects, answers, clock: this.clock },
      ...{ log: { info: note, warn: note }, dataBucket: 'data' },
      coordinator: this.coordinator,
      ids: new RandomIdSource(),
      checkOperator: (): void => undefined,
      residents: 2,
      launcher: {
        terms: () => ({ waits: true }),
        launch: (requests: readonly LaunchRequest[]) =>
          Promise.resolve(requests.map((request) => this.launch(request))),
        stop: () => Promise.resolve(undefined),
      },
      config: {
        tickMs: durationMs(1_000),
        heartbeatMs: durationMs(10_000),
        leaseMs: durationMs(15_000),
        claimLeaseMs: durationMs(900_000),
        totalSlots: this.options.totalSlots ?? 8,
      },
    };
    return process.wrap(ports, schedulerPorts);
  }

  private async execute(jobId: JobId): Promise<void> {
    const patience = durationMs(25_000);
    try {
      await this.step('plan', (deps) => planJob(deps, jobId));
      await this.retried(scheduleRetries, () => this.schedule(jobId));
      await this.finish(jobId, patience);
    } catch (cause) {
      const error = cause instanceof Error ? cause : new Error(String(cause));
      await this.step('fail', (deps) => failJob(deps, jobId, error, patience));
    }
  }

  /** Goes back to the scheduler where parts of the output are gone, as the template does. */
  private async finish(jobId: JobId, patience: DurationMs): Promise<void> {
    for (;;) {
      try {
        await this.step('finish', (deps) => finishJob(deps, jobId, patience));
        return;
      } catch (cause) {
        if (!(cause instanceof OutputLostError)) throw cause;
        await this.retried(scheduleRetries, () => this.schedule(jobId));
      }
    }
  }

  private step(name: string, work: (deps: ReturnType<HardAccount['deps']>) => Promise<void>): Promise<void> {
    return this.retried(stepRetries, async () => {
      await this.options.onBegin?.(name, this);
      const process = this.begin(name);
      return this.invoke(process, work(this.deps(process)));
    });
  }

  /** The end of a function as Step Functions knows it, which goes on all the same where it was merely frozen. */
  private async invoke(process: HardProcess, work: Promise<void>): Promise<void> {
    const ended = Promise.race([work, process.died]);
    this.goOn(ended);
    const over = new AbortController();
    try {
      await Promise.race([
        work,
        process.died.then(() => {
          throw new StepError('Lambda.Unknown', 'the process died');
        }),
        this.clock.sleep(durationMs(functionMs), over.signal).then(() => {
          if (!over.signal.aborted) throw new StepError('Sandbox.Timedout');
        }),
      ]);
    } finally {
      over.abort();
    }
  }

  private async schedule(jobId: JobId): Promise<void> {
    const process = this.begin('scheduler');
    const owner = `request-${String(this.names.get('scheduler'))}`;
    const token = `token of ${owner}`;
    const { promise, resolve } = Promise.withResolvers<TokenEnd>();
    this.answers.wait(token);
    this.waiting.set(token, { beatAt: this.clock.now(), settle: resolve });
    const self = { owner, until: later(process.clock.now(), durationMs(stayMs)) };
    const deps = this.deps(process);
    const serve = async (): Promise<void> => {
      const seating = await enlistJob(deps, { jobId, token }, self);
      if (seating !== undefined) await reside(deps, seating, { ...self, jobId });
    };
    this.invoke(process, serve()).catch((cause: unknown) => {
      const { name, message } = cause instanceof Error ? cause : new Error(String(cause));
      resolve({ kind: 'failed', error: name, cause: message });
    });
    void this.watchHeartbeat(token, resolve);
    const end = await promise;
    this.note('token', { token, ...end });
    this.waiting.delete(token);
    this.answers.close(token);
    if (end.kind === 'failed') throw new StepError(end.error, end.cause);
  }

  private async watchHeartbeat(token: string, settle: (end: TokenEnd) => void): Promise<void> {
    for (;;) {
      const found = this.waiting.get(token);
      if (found === undefined) return;
      const leftMs = found.beatAt + limits.taskHeartbeatSeconds * 1_000 - this.clock.now();
      if (leftMs <= 0) {
        settle({ kind: 'failed', error: 'States.HeartbeatTimeout', cause: '' });
        return;
      }
      await this.clock.sleep(durationMs(leftMs));
    }
  }

  private async retried(rules: readonly StepRetry[], call: () => Promise<void>): Promise<void> {
    const used = new Map<StepRetry, number>();
    for (;;) {
      try {
        await call();
        return;
      } catch (cause) {
        const name = cause instanceof Error ? cause.name : '';
        const rule = rules.find(({ errors }) => errors.includes(name));
        const tries = rule === undefined ? 0 : (used.get(rule) ?? 0);
        this.note('step failed', { cause: String(cause), tries });
        if (rule === undefined || tries >= rule.maxAttempts) throw cause;
        used.set(rule, tries + 1);
        const seconds = rule.intervalSeconds * rule.backoffRate ** tries;
        await this.clock.sleep(durationMs(Math.min(rule.maxDelaySeconds ?? Infinity, seconds) * 1_000));
      }
    }
  }

  private launch({ payload }: LaunchRequest) {
    const { attemptId } = payload;
    this.launches.push(attemptId);
    const number = this.launches.filter((each) => each === attemptId).length;
    const { afterMs, againMs, isLost } = this.options.delivery?.(attemptId, number) ?? usualDelivery;
    for (const pauseMs of isLost === true ? [] : [afterMs, ...(againMs === undefined ? [] : [againMs])])
      this.goOn(this.clock.sleep(durationMs(pauseMs)).then(() => this.work(payload)));
    return { attemptId, outcome: 'accepted' as const };
  }

  /** One invocation of a worker. */
  private async work(payload: AttemptPayload): Promise<void> {
    const { attemptId } = payload;
    await this.options.onBegin?.(attemptId, this);
    const process = this.begin(attemptId);
    const invocation = `${attemptId} ${String(this.names.get(attemptId))}`;
    const worker: RunWorker = { attemptId, process };
    this.workers.push(worker);
    const { objects } = this;
    const note = (event: string, facts?: Readonly<Record<string, unknown>>): void => {
      this.note(event, facts);
    };
    const deps = {
      ...{ objects, attempts: this.stores.attempts, dataBucket: 'data', log: { info: note, warn: note } },
      ...{ operators: slowOperators(process.clock, this.options), environment: { plain: {} } },
      ...{ clock: process.clock, place: { node: `node of ${invocation}`, zone: 'zone' }, invocation },
      ...{ scratchRoot: this.scratchRoot, sortMemoryBytes: 256 * 1024 },
      endsAt: later(process.clock.now(), durationMs(this.options.workerMs ?? functionMs)),
      userCode: { objects, program: { entryPath: userCodeEntry } },
    };
    const running = runPack(process.wrap(deps, workerPorts), payload).then(([outcome, ...others]) => {
      if (outcome !== undefined) worker.outcome = outcome;
      for (const [place, { attemptId: rider }] of (payload.next ?? []).entries())
        if (others[place] !== undefined)
          this.workers.push({ attemptId: rider, process, outcome: others[place] });
    });
    await Promise.race([running, process.died]);
    if (process.isDead) await this.tellDeath(payload, invocation);
  }

  private async tellDeath(payload: AttemptPayload, invocation: string): Promise<void> {
    const { deathToldMs } = this.options;
    if (deathToldMs === undefined) return;
    await this.clock.sleep(durationMs(deathToldMs));
    const [{ attempts }, clock] = [this.stores, this.clock];
    const log = { info: (): void => undefined, warn: (): void => undefined };
    const words = { wordOf: () => Promise.resolve(undefined) };
    const failure = { cause: 'exited', message: `the worker ${invocation} exited` } as const;
    await recordWorkerEnd({ attempts, words, clock, log }, { payload, death: { invocation, failure } });
  }
}

type TokenEnd =
  | { readonly kind: 'succeeded' }
  | { readonly kind: 'failed'; readonly error: string; readonly cause: string };
