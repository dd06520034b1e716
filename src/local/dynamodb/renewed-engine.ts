import { setTimeout as delay } from 'node:timers/promises';
import type { Engine, EngineAnswer } from './engine.ts';

export interface RenewalOptions {
  /** Calls after which a process is replaced. */
  readonly calls: number;
  /** How long calls that are open may keep it from that: then it is put off by as many calls again. */
  readonly patienceMs?: number;
}

const usualPatienceMs = 5_000;

/**
 * An engine whose process is ended after so many calls, and another started in its place: for one that keeps some memory of each
 * call for good. Calls that come meanwhile wait; those that are open end first. Who uses it sees one engine.
 */
export class RenewedEngine implements Engine {
  readonly exited: Promise<void>;
  readonly #start: () => Promise<Engine>;
  readonly #options: RenewalOptions;
  #engine: Engine;
  #calls = 0;
  #open = 0;
  #renewal: Promise<void> | undefined;
  #isClosed = false;
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
      return await this.#engine.perform(operation, body);
    } finally {
      this.#open--;
      if (this.#open === 0) this.#tellIdle();
      if (++this.#calls >= this.#options.calls && !this.#isClosed) this.#renewal ??= this.#renew();
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#renewal;
    await this.#engine.close();
    this.#tellExit();
  }

  /** The end of a process is news unless another one takes its place. */
  #watched(engine: Engine): Engine {
    void engine.exited.then(() => {
      if (engine === this.#engine && this.#renewal === undefined) this.#tellExit();
    });
    return engine;
  }

  async #renew(): Promise<void> {
    this.#calls = 0;
    try {
      if (!(await this.#isIdle()) || this.#isClosed) return;
      await this.#engine.close();
      this.#engine = this.#watched(await this.#start());
    } catch {
      // It does not start again: as if it had ended by itself.
      this.#tellExit();
    } finally {
      this.#renewal = undefined;
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
