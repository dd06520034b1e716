import { setTimeout as delay } from 'node:timers/promises';

/** Requests that one process has under way at most, whatever S3 bears. */
const mostAtOnce = 64;
/** Below one request at a time, a request and the pause after it take so long for each time that one fits in. */
const turnMs = 25;
/** Four requests a second: where that is still too much, the pauses of refused requests do the rest. */
const leastWindow = 0.1;
/** What a refusal leaves of the window, and by what part of itself a window below one grows with each answer. */
const afterRefusal = 0.7;
const growth = 0.05;
/** The first pause of a refused request; doubles with each further one. */
const firstPauseMs = 50;
const longestPauseMs = 10_000;

/** Refusals are of the past after so long: a window takes thousands of answers to be as wide again as it was. */
const calmMs = 10_000;

/** Time and chance, so that a test can have both at its will. */
export interface PaceHost {
  /** Milliseconds from any beginning. */
  now(): number;
  /** Ends early, without throwing, where the signal fires. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** From 0 (included) to 1. */
  random(): number;
}

/** The process's own. */
export const systemPaceHost: PaceHost = {
  now: () => performance.now(),
  sleep: (ms, signal) => delay(ms, undefined, signal === undefined ? {} : { signal }).catch(() => undefined),
  random: () => Math.random(),
};

/**
 * How many reads may be under way at once: S3 tells nobody its rate, but refuses what exceeds it. The window
 * shrinks when a request is refused (once for all that were under way then) and grows by one for each window of answers:
 * additive increase, multiplicative decrease, as of many senders on one line. Many hundred readers share 5,500 reads
 * a second, so that the window may fall below one: then there are pauses between requests.
 */
export class ReadPace {
  readonly #host: PaceHost;
  readonly #waiting: (() => void)[] = [];
  #window = mostAtOnce;
  #running = 0;
  /** Counts the decreases: what was under way before the last one says nothing new. */
  #decreases = 0;
  /** When S3 refused a request last. */
  #refusedAt = -Infinity;

  constructor(host: PaceHost = systemPaceHost) {
    this.#host = host;
  }

  /** Whether one request more would take nobody's place: S3 has refused nobody of late, and fewer are under way than may be. */
  get hasRoom(): boolean {
    return this.now() - this.#refusedAt >= calmMs && this.#running < Math.floor(this.#window);
  }

  /** How many requests may be under way, in [0.1, 64]. */
  get window(): number {
    return this.#window;
  }

  /** Makes a request in its turn; `isRefusal` tells by what it throws whether it came too fast. */
  async request<T>(
    send: () => Promise<T>,
    isRefusal: (cause: unknown) => boolean,
    signal?: AbortSignal,
  ): Promise<T> {
    await this.#turn(signal);
    const decreases = this.#decreases;
    try {
      const answer = await send();
      this.#window = Math.min(mostAtOnce, this.#window + Math.min(1 / this.#window, growth * this.#window));
      return answer;
    } catch (cause) {
      if (isRefusal(cause)) {
        this.#refusedAt = this.now();
        if (decreases === this.#decreases) this.#decrease();
      }
      throw cause;
    } finally {
      void this.#leave();
    }
  }

  /** The pause of a request that was refused `times` times in a row: spread, so that rivals part. */
  async pause(times: number, signal?: AbortSignal): Promise<void> {
    const longestMs = Math.min(longestPauseMs, firstPauseMs * 2 ** (times - 1));
    await this.#host.sleep(longestMs * (0.5 + 0.5 * this.#host.random()), signal);
  }

  now(): number {
    return this.#host.now();
  }

  #decrease(): void {
    this.#decreases++;
    // What was not under way was not refused: a window that was never filled must not count.
    this.#window = Math.max(leastWindow, Math.min(this.#window, this.#running) * afterRefusal);
  }

  async #turn(signal: AbortSignal | undefined): Promise<void> {
    if (this.#running < Math.max(1, Math.floor(this.#window))) {
      this.#running++;
      return;
    }
    await new Promise<void>((resolve, reject) => {
      const enter = (): void => {
        signal?.removeEventListener('abort', leave);
        resolve();
      };
      const leave = (): void => {
        const place = this.#waiting.indexOf(enter);
        if (place >= 0) this.#waiting.splice(place, 1);
        reject(signal?.reason instanceof Error ? signal.reason : new Error('aborted'));
      };
      this.#waiting.push(enter);
      signal?.addEventListener('abort', leave, { once: true });
    });
  }

  /** Frees a place, after the pause where there is less than one, and lets in whom there is room for. */
  async #leave(): Promise<void> {
    if (this.#window < 1) {
      const pauseMs = turnMs * (1 / this.#window - 1);
      await this.#host.sleep(pauseMs * (0.5 + this.#host.random()));
    }
    this.#running--;
    while (this.#waiting.length > 0 && this.#running < Math.max(1, Math.floor(this.#window))) {
      this.#running++;
      this.#waiting.shift()?.();
    }
  }
}
