import { setTimeout as delay } from 'node:timers/promises';
import type { Engine, EngineAnswer } from './engine.ts';

export interface RenewalOptions {
  /** Calls after which a process is replaced. */
  readonly calls: number;
  /** How long calls that are open may keep it from that: then it is put off by as many calls again. */
  readonly patienceMs?: number;
  /** Before another is started in the place of one that has ended by itself; each further pause in a row is three times as long. */
  readonly pauseMs?: number;
}

const usualPatienceMs = 5_000;
const usualPauseMs = 100;
/** In a row, without an answer between them: with the usual pauses some four seconds. */
const mostStarts = 4;

/**
 * An engine whose process is ended after so many calls, and another started in its place: for one that keeps some memory of each
 * call for good. Calls that come meanwhile wait; those that are open end first. One that ends by itself is replaced as well;
 * calls that were open are answered as failed. Who uses it sees one engine, which is gone only where none can be started any more.
 */
export class RenewedEngine implements Engine {
  readonly exited: Promise<void>;
  readonly #start: () => Promise<Engine>;
  readonly #options: RenewalOptions;
  #engine: Engine;
  #calls = 0;
  #open = 0;
  #renewal: Promise<void> | undefined;
  /** Starts since the last answer in the place of processes that had ended by themselves. */
  #starts = 0;
  #isGone = false;
  readonly #closing = new AbortController();
  #tellExit: () => void = () => undefined;
  #tellIdle: () => void = () => undefined;

  private constructor(engine: Engine, start: () => Promise<Engine>, options: RenewalOptions) {
    this.#start = start;
    this.#options = options;
    this.exited = new Promise((resolve) => {
      this.#tellExit = resolve;
    });
    this.#engine = this.#watched(engine);
  }

  /** @throws what `start` throws the first time. */
  static async start(start: () => Promise<Engine>, options: RenewalOptions): Promise<RenewedEngine> {
    return new RenewedEngine(await start(), start, options);
  }

  /** Of the process that is there now. */
  get pid(): number {
    return this.#engine.pid;
  }

  async perform(operation: string, body: Buffer): Promise<EngineAnswer> {
    while (this.#renewal !== undefined) await this.#renewal;
    this.#open++;
    try {
      const answer = await this.#engine.perform(operation, body);
      if (answer.status < 500) this.#starts = 0;
      return answer;
    } finally {
      this.#open--;
      if (this.#open === 0) this.#tellIdle();
      if (++this.#calls >= this.#options.calls && !this.#isClosed) this.#renewal ??= this.#renew();
    }
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#renewal;
    await this.#engine.close();
    this.#tellExit();
  }

  get #isClosed(): boolean {
    return this.#closing.signal.aborted;
  }

  #watched(engine: Engine): Engine {
    this.#isGone = false;
    void engine.exited.then(() => {
      if (engine !== this.#engine) return;
      this.#isGone = true;
      if (this.#renewal === undefined) this.#goOn();
    });
    return engine;
  }

  /** With another process where the present one has ended by itself; calls come to it, or fail, where there is none. */
  #goOn(): void {
    this.#renewal = undefined;
    if (!this.#isGone || this.#isClosed) return;
    if (this.#starts >= mostStarts) this.#tellExit();
    else this.#renewal = this.#replace();
  }

  async #replace(): Promise<void> {
    const pauseMs = (this.#options.pauseMs ?? usualPauseMs) * 3 ** this.#starts++;
    await delay(pauseMs, undefined, { signal: this.#closing.signal }).catch(() => undefined);
    const next = this.#isClosed ? undefined : await this.#start().catch(() => undefined);
    if (next !== undefined) {
      this.#calls = 0;
      this.#engine = this.#watched(next);
    }
    this.#goOn();
  }

  async #renew(): Promise<void> {
    this.#calls = 0;
    try {
      if (!(await this.#isIdle()) || this.#isClosed) return;
      await this.#engine.close();
      this.#engine = this.#watched(await this.#start());
    } catch {
      // It does not start again: as if it had ended by itself.
      this.#isGone = true;
    } finally {
      this.#goOn();
    }
  }

  /** Waits until no call is open; false where that takes too long. */
  async #isIdle(): Promise<boolean> {
    if (this.#open === 0) return true;
    const patience = new AbortController();
    const idle = new Promise<true>((resolve) => {
      this.#tellIdle = () => {
        resolve(true);
      };
    });
    const limit = delay(this.#options.patienceMs ?? usualPatienceMs, false, {
      ref: false,
      signal: patience.signal,
    }).catch(() => false);
    const isIdle = await Promise.race([idle, limit]);
    patience.abort();
    return isIdle;
  }
}
