import { setTimeout as delay } from 'node:timers/promises';
import { parseUri } from '../../src/contracts/keys.ts';
import type { ChaosSystem } from './chaos-system.ts';
import type { Subject } from './fault-proxy.ts';
import type { Foreign, Snag, Step, Strike } from './job-case.ts';
import { environmentOf, signal } from './processes.ts';

const lookMs = 40;
/** A task may fail four times; strikes beyond this many could end a job by right. */
const mostWorkerStrikes = 2;
/** How often a step is invoked that another holds the lease of; longer than the longest freeze. */
const mostTries = 60;

/** How an entry begins that tells of a fault which could not be made. */
export const mischiefFailed = 'mischief failed';

/** Does to one job what was drawn for it, and keeps a record of what it did. */
export class Mischief {
  /** What happened, in order. */
  readonly done: string[] = [];
  readonly #chaos: ChaosSystem;
  readonly #jobId: string;
  readonly #output: { readonly bucket: string; readonly key: string };
  readonly #over = new AbortController();
  readonly #running: Promise<void>[] = [];
  readonly #frozen = new Set<number>();
  #workerStrikes = 0;

  constructor(chaos: ChaosSystem, jobId: string, output: string) {
    this.#chaos = chaos;
    this.#jobId = jobId;
    this.#output = parseUri(output) ?? { bucket: '', key: '' };
  }

  begin(drawn: { strikes: readonly Strike[]; snags: readonly Snag[]; foreign: readonly Foreign[] }): void {
    for (const snag of drawn.snags) this.#lay(snag);
    for (const strike of drawn.strikes) this.#run(() => this.#strike(strike));
    for (const each of drawn.foreign) this.#run(() => this.#intrude(each));
  }

  /** Waits for all that was begun. */
  async settled(): Promise<void> {
    await Promise.all(this.#running);
  }

  /** Starts nothing new, thaws what is frozen, and waits for what is under way. */
  async end(): Promise<void> {
    this.#over.abort();
    await Promise.all(this.#running);
    for (const pid of this.#frozen) signal(pid, 'SIGCONT');
  }

  #run(work: () => Promise<void>): void {
    this.#running.push(
      work().catch((cause: unknown) => {
        if (!this.#over.signal.aborted) this.done.push(`${mischiefFailed}: ${String(cause)}`);
      }),
    );
  }

  get #isOver(): boolean {
    return this.#over.signal.aborted;
  }

  /** Waits, and tells whether the job still runs. */
  async #wait(ms: number): Promise<boolean> {
    await delay(ms, undefined, { signal: this.#over.signal }).catch(() => undefined);
    return !this.#isOver;
  }

  async #strike({ how, role, afterMs, forMs }: Strike): Promise<void> {
    if (!(await this.#wait(afterMs))) return;
    let pid: number | undefined;
    while (pid === undefined) {
      pid = role === 'worker' ? await this.#worker() : this.#chaos.system.processes(role)[0]?.pid;
      if (pid === undefined && !(await this.#wait(lookMs))) return;
    }
    if (!signal(pid, how === 'kill' ? 'SIGKILL' : 'SIGSTOP')) return;
    this.done.push(`${how} ${role}`);
    this.#chaos.faults.count(how);
    if (how === 'kill') {
      this.#chaos.uploads.killed();
      return;
    }
    this.#frozen.add(pid);
    // Thawed at its time, also where its job has ended by then: others' may wait for it.
    await delay(forMs);
    signal(pid, 'SIGCONT');
    this.#frozen.delete(pid);
  }

  /** A worker that is at work on an attempt of this job; none where it has been struck often enough. */
  async #worker(): Promise<number | undefined> {
    if (this.#workerStrikes >= mostWorkerStrikes) return undefined;
    const { attempts } = await this.#chaos.system.api.attempts(this.#jobId);
    const nodes = new Set(attempts.flatMap(({ state, node }) => (state === 'running' ? [node] : [])));
    const found = this.#chaos.system.processes('worker').find(({ kind, pid }) => {
      const environment = environmentOf(pid);
      if (kind === 'fargate')
        return environment.get('OUTRIDER_ATTEMPT')?.includes(`"${this.#jobId}"`) === true;
      const name = environment.get('AWS_LAMBDA_FUNCTION_NAME') ?? '';
      return nodes.has(`${name}/${environment.get('AWS_LAMBDA_LOG_STREAM_NAME') ?? ''}`);
    });
    if (found !== undefined && this.#workerStrikes < mostWorkerStrikes) {
      this.#workerStrikes++;
      return found.pid;
    }
    return undefined;
  }

  async #intrude({ what, name, afterMs = 0 }: Foreign): Promise<void> {
    if (!(await this.#wait(afterMs))) return;
    const { bucket, key } = this.#output;
    const place = key.replace(/\/$/, '') + name;
    if (what === 'upload') await this.#chaos.strangers.beginUpload(bucket, place);
    else if (!(await this.#chaos.strangers.putObject(bucket, place))) return;
    this.done.push(`foreign ${what} ${name}`);
  }

  /** Whether a request is where a snag is to catch its sender. */
  #isAt(place: Snag['place'], { service, operation, resource, body }: Subject): boolean {
    const { bucket, key } = this.#output;
    const isWrite = service === 'dynamodb' && /^(Put|Update|Delete)Item$/.test(operation);
    switch (place) {
      case 'plan':
        return (
          service === 's3' &&
          operation === 'PUT' &&
          resource.includes(`jobs/${this.#jobId}/`) &&
          !resource.includes('/data/')
        );
      case 'publish':
        return (
          service === 's3' &&
          /^(PUT|POST uploadId)$/.test(operation) &&
          resource.startsWith(`${bucket}/${key}`)
        );
      case 'decide':
        return isWrite && body.includes(`LOG#${this.#jobId}`);
      case 'commit':
        return isWrite && body.includes(`J#${this.#jobId}#`) && body.includes('"T#');
      case 'end':
        return isWrite && body.includes(`JOB#${this.#jobId}`) && body.includes('"succeeded"');
      case 'record':
        return isWrite && body.includes(this.#jobId);
    }
  }

  #lay(snag: Snag): void {
    let toSkip = snag.skip;
    const trap = (subject: Subject) => {
      if (this.#isOver || !this.#isAt(snag.place, subject)) return undefined;
      if (toSkip-- > 0) return undefined;
      this.#chaos.traps.delete(trap);
      this.done.push(`hold ${snag.place} ${snag.at}`);
      this.#chaos.faults.count('hold');
      if (snag.repeat !== undefined) this.#run(() => this.#repeat(snag.repeat));
      return { kind: 'hold', at: snag.at, until: delay(snag.forMs) } as const;
    };
    this.#chaos.traps.add(trap);
    this.#over.signal.addEventListener('abort', () => this.#chaos.traps.delete(trap));
  }

  /** Does a step again while its first invocation still runs: what a lost or late answer makes of it. */
  async #repeat(step: Step | undefined): Promise<void> {
    if (step === undefined) return;
    this.done.push(`${step} again`);
    if (step === 'Schedule') {
      await this.#chaos.scheduleAgain(this.#jobId);
      return;
    }
    const input = {
      jobId: this.#jobId,
      ...(step === 'Fail' ? { error: { Error: 'States.Timeout', Cause: '' } } : {}),
    };
    for (let tries = 0; tries < mostTries; tries++) {
      if (!(await this.#wait(tries === 0 ? 100 : 500))) return;
      const { error } = await this.#chaos.invoke(step, input);
      if (error !== 'LeaseHeld' && error !== 'StoreUnavailable') return;
    }
  }
}
