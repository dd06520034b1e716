import { scheduleRetries, stepRetries, type StepRetry } from '../../cdk/constructs/step-retries.ts';
import { MemoryRoster } from '../../src/adapters/memory/memory-roster.ts';
import { MemoryTaskAnswers } from '../../src/adapters/memory/memory-task-answers.ts';
import { failJob } from '../../src/app/fail-job.ts';
import { finishJob } from '../../src/app/finish-job.ts';
import { planJob } from '../../src/app/plan-job.ts';
import type { ResidentDeps } from '../../src/app/resident-deps.ts';
import { enlistJob } from '../../src/app/enlist-job.ts';
import { reside } from '../../src/app/reside.ts';
import { submitJob } from '../../src/app/submit-job.ts';
import type { JobId } from '../../src/contracts/ids.ts';
import type { JobSpecInput } from '../../src/contracts/job-spec.ts';
import { limits } from '../../src/contracts/limits.ts';
import type { AttemptPayload } from '../../src/contracts/payloads.ts';
import { durationMs, later } from '../../src/contracts/units.ts';
import { createRng, type Rng } from '../../src/lib/rng.ts';
import { progress, ScriptedSystem } from './scripted-job.ts';

export interface AccountOptions {
  /** Invocations that may run at once, of all functions together. */
  readonly environments: number;
  readonly residents?: number;
  readonly totalSlots: number;
  readonly taskMs: number;
  readonly seed: string;
  /** Longest stay of a resident; 13 minutes. */
  readonly stayMs?: number;
  /** What the scheduler's invocation of a number (from 1) works with. */
  readonly wrap?: (deps: ResidentDeps, invocation: number) => ResidentDeps;
  /** Whether an invocation of the scheduler is killed, which Step Functions hears of at once. */
  readonly killed?: (invocation: number) => Promise<unknown> | undefined;
}

const stepMs = { api: 400, plan: 1_500, enlist: 300, finish: 1_200, fail: 1_000, worker: 600 } as const;
const reportMs = 10_000;
const firstQueueRetryMs = 1_000;
const longestQueueRetryMs = 300_000;
/** As deployed: events are kept as long as a launch may wait for its claim. */
const claimLeaseMs = 900_000;

class StepError extends Error {
  constructor(name: string, message = name) {
    super(message);
    this.name = name;
  }
}

/** What an account was asked for and did. */
export interface AccountCounts {
  transitions: number;
  throttledSteps: number;
  throttledSubmits: number;
  invocations: number;
  residentMs: number;
  mostResidents: number;
  beats: number;
  executions: { jobId: JobId; ended: 'succeeded' | 'failed'; error?: string }[];
}

/**
 * An AWS account with few Lambda environments, in virtual time: its state machine, with the template's own rules of
 * Retry, its task tokens with their heartbeats, and Lambda's asynchronous queue, over production's use cases and the
 * stores in memory. Workers take as long as they are told.
 */
export class BusyAccount {
  readonly system = new ScriptedSystem();
  readonly roster = new MemoryRoster();
  readonly answers = new MemoryTaskAnswers();
  readonly counts: AccountCounts = {
    transitions: 0,
    throttledSteps: 0,
    throttledSubmits: 0,
    invocations: 0,
    residentMs: 0,
    mostResidents: 0,
    beats: 0,
    executions: [],
  };
  readonly deps: ResidentDeps;
  /** Invocations under way, by function. */
  readonly running = new Map<string, number>();
  /** Attempts that were launched, with their jobs, each once. */
  readonly launched = new Set<string>();
  /** Residents in their seats, by the log. */
  readonly seated = new Set<string>();
  private readonly options: AccountOptions;
  private readonly rng: Rng;
  private readonly waiting = new Map<string, { beatAt: number; settle: (answer: TokenEnd) => void }>();
  private nextName = 0;
  private schedulers = 0;

  constructor(options: AccountOptions) {
    this.options = options;
    this.rng = createRng(options.seed);
    const { config } = this.system.deps;
    this.deps = {
      ...this.system.deps,
      log: {
        info: (event, facts) => {
          this.hear(event, facts);
        },
        warn: () => undefined,
      },
      // As Lambda does it: an asynchronous invocation is always taken in, and waits unseen.
      launcher: { ...this.system.deps.launcher, terms: () => ({ waits: true }) },
      roster: this.roster,
      answers: this.answers,
      residents: options.residents ?? 4,
      config: {
        ...config,
        totalSlots: options.totalSlots,
        tickMs: durationMs(1_000),
        heartbeatMs: durationMs(10_000),
        leaseMs: durationMs(15_000),
        claimLeaseMs: durationMs(claimLeaseMs),
      },
    };
    this.system.onLaunch = (payload) => {
      this.launched.add(`${payload.jobId}/${payload.attemptId}`);
      void this.deliver(payload);
      return Promise.resolve('accepted');
    };
    this.answers.onBeat = (token) => {
      this.counts.beats += 1;
      const found = this.waiting.get(token);
      if (found !== undefined) found.beatAt = this.system.clock.now();
    };
    this.answers.onAnswer = (token, answer) => this.waiting.get(token)?.settle(answer);
  }

  private hear(event: string, facts: Readonly<Record<string, unknown>> = {}): void {
    const owner = String(facts['owner']);
    if (event === 'seated') this.seated.add(owner);
    if (event === 'left') this.seated.delete(owner);
    this.counts.mostResidents = Math.max(this.counts.mostResidents, this.seated.size);
  }

  get used(): number {
    return [...this.running.values()].reduce((sum, count) => sum + count, 0);
  }

  /** Submits as the client does: with a token, again and again while there is no room. */
  async submit(spec: JobSpecInput, clientToken: string): Promise<JobId> {
    for (let tries = 1; ; tries++) {
      try {
        const { jobId, started } = await this.invoke('api', async () => {
          await this.pass(stepMs.api);
          return submitJob(this.system, { spec, clientToken });
        });
        if (started) void this.execute(jobId);
        return jobId;
      } catch (cause) {
        if (!(cause instanceof StepError) || tries > 200) throw cause;
        this.counts.throttledSubmits += 1;
        await this.pass(this.rng.next() * Math.min(10_000, 500 * 2 ** tries));
      }
    }
  }

  /** The execution that waits for this token is stopped from outside, and nobody is told. */
  stopExecution(token: string): void {
    this.waiting.delete(token);
    this.answers.close(token);
  }

  /** Lets time pass until `jobs` executions have ended. */
  async untilEnded(jobs: number, limitMs: number): Promise<void> {
    for (let passed = 0; this.counts.executions.length < jobs; passed += 1_000) {
      if (passed > limitMs) throw new Error(`only ${this.counts.executions.length} jobs ended in time`);
      await this.system.clock.advance(1_000);
    }
  }

  private async execute(jobId: JobId): Promise<void> {
    const { deps } = this;
    try {
      await this.step('plan', stepRetries, async () => {
        await this.pass(stepMs.plan);
        await planJob(this.system, jobId);
      });
      await this.schedule(jobId);
      await this.step('finish', stepRetries, async () => {
        await this.pass(stepMs.finish);
        await finishJob(deps, jobId);
      });
      this.counts.executions.push({ jobId, ended: 'succeeded' });
    } catch (cause) {
      const error = cause instanceof Error ? cause : new Error(String(cause));
      await this.step('fail', stepRetries, () => failJob(deps, jobId, error, durationMs(25_000)));
      this.counts.executions.push({ jobId, ended: 'failed', error: `${error.name}: ${error.message}` });
    }
  }

  private schedule(jobId: JobId): Promise<void> {
    return this.retried(scheduleRetries, async () => {
      const token = `token-${(this.nextName += 1)}-${jobId}`;
      const { promise, resolve } = Promise.withResolvers<TokenEnd>();
      this.answers.wait(token);
      this.waiting.set(token, { beatAt: this.system.clock.now(), settle: resolve });
      const invoked = this.invoke('schedule', () => this.scheduler(jobId, token));
      invoked.catch((cause: unknown) => {
        const error = cause instanceof Error ? cause : new Error(String(cause));
        resolve({ kind: 'failed', error: error.name, cause: error.message });
      });
      void this.watchHeartbeat(token, resolve);
      const end = await promise;
      this.waiting.delete(token);
      this.answers.close(token);
      if (end.kind === 'failed') throw new StepError(end.error, end.cause);
    });
  }

  private async scheduler(jobId: JobId, token: string): Promise<void> {
    const { clock } = this.system;
    const since = clock.now();
    await this.pass(stepMs.enlist);
    const number = (this.schedulers += 1);
    const owner = `request-${number}`;
    const deps = this.options.wrap?.(this.deps, number) ?? this.deps;
    const self = { owner, until: later(clock.now(), durationMs(this.options.stayMs ?? 13 * 60_000)) };
    const work = async (): Promise<void> => {
      const seating = await enlistJob(deps, { jobId, token }, self);
      if (seating !== undefined) await reside(deps, seating, { ...self, jobId });
    };
    const killed = this.options.killed?.(number);
    const death = killed?.then(() => {
      throw new StepError('Lambda.Unknown', 'the process was killed');
    });
    await Promise.race([work(), ...(death === undefined ? [] : [death])]);
    this.counts.residentMs += clock.now() - since;
  }

  private async watchHeartbeat(token: string, settle: (end: TokenEnd) => void): Promise<void> {
    for (;;) {
      const found = this.waiting.get(token);
      if (found === undefined) return;
      const leftMs = found.beatAt + limits.taskHeartbeatSeconds * 1_000 - this.system.clock.now();
      if (leftMs <= 0) {
        settle({ kind: 'failed', error: 'States.HeartbeatTimeout', cause: '' });
        return;
      }
      await this.pass(leftMs);
    }
  }

  /** An asynchronous invocation: it waits in Lambda's queue while there is no room, with ever longer pauses. */
  private async deliver(payload: AttemptPayload): Promise<void> {
    const acceptedAt = this.system.clock.now();
    for (let tries = 0; ; tries++) {
      try {
        await this.invoke('worker', async () => {
          await this.pass(stepMs.worker);
          if ((await this.system.claim(payload)) === 'refused') return;
          if (await this.work(payload)) await this.system.succeed(payload, { isClaimed: true });
        });
        return;
      } catch (cause) {
        if (!(cause instanceof StepError)) throw cause;
        if (this.system.clock.now() - acceptedAt > claimLeaseMs) return;
        const pauseMs = Math.min(longestQueueRetryMs, firstQueueRetryMs * 2 ** tries);
        await this.pass(pauseMs * (0.5 + this.rng.next()));
      }
    }
  }

  /** False where it is told to stop. */
  private async work(payload: AttemptPayload): Promise<boolean> {
    const { attempts, clock } = this.system;
    const space = this.system.space(payload);
    for (let left = this.options.taskMs; left > 0; left -= reportMs) {
      await this.pass(Math.min(left, reportMs));
      const done = Math.round((100 * (this.options.taskMs - left)) / this.options.taskMs);
      if (left <= reportMs) break;
      if ((await attempts.report(space, payload.attemptId, progress(done), clock.now())) === 'cancel')
        return false;
    }
    return true;
  }

  private step(name: string, rules: readonly StepRetry[], work: () => Promise<void>): Promise<void> {
    return this.retried(rules, () => this.invoke(name, work));
  }

  private async retried(rules: readonly StepRetry[], call: () => Promise<void>): Promise<void> {
    const used = new Map<StepRetry, number>();
    for (;;) {
      this.counts.transitions += 1;
      try {
        await call();
        return;
      } catch (cause) {
        const rule = rules.find(({ errors }) => cause instanceof Error && errors.includes(cause.name));
        const tries = rule === undefined ? 0 : (used.get(rule) ?? 0);
        if (rule === undefined || tries >= rule.maxAttempts) throw cause;
        used.set(rule, tries + 1);
        if (cause instanceof Error && cause.name === 'Lambda.TooManyRequestsException')
          this.counts.throttledSteps += 1;
        const seconds = Math.min(
          rule.maxDelaySeconds ?? Infinity,
          rule.intervalSeconds * rule.backoffRate ** tries,
        );
        await this.pass(seconds * 1_000 * (rule.hasJitter === true ? this.rng.next() : 1));
      }
    }
  }

  /** Runs a function, or throws as Lambda does where all environments are busy. */
  private async invoke<T>(name: string, work: () => Promise<T>): Promise<T> {
    if (this.used >= this.options.environments)
      throw new StepError('Lambda.TooManyRequestsException', 'Rate Exceeded.');
    this.counts.invocations += 1;
    this.running.set(name, (this.running.get(name) ?? 0) + 1);
    try {
      return await work();
    } finally {
      this.running.set(name, (this.running.get(name) ?? 1) - 1);
    }
  }

  private pass(ms: number): Promise<void> {
    return this.system.clock.sleep(durationMs(ms));
  }
}

type TokenEnd =
  | { readonly kind: 'succeeded' }
  | { readonly kind: 'failed'; readonly error: string; readonly cause: string };
