import { setImmediate } from 'node:timers/promises';
import { phases } from '../contracts/progress.ts';
import type { Phase, Progress } from '../contracts/progress.ts';
import type { RequestTally } from '../contracts/requests.ts';
import type { TakenUp } from '../contracts/saved-work.ts';
import { elapsedMs } from '../contracts/units.ts';
import type { EpochMs } from '../contracts/units.ts';
import type { Clock } from '../ports/clock.ts';
import { KeptProgress } from '../core/model/progress-history.ts';
import { addTallies } from '../core/model/request-tally.ts';
import { addToCounter } from './task-counters.ts';

/** Longest stretch without letting timers and sockets have their turn, so that heartbeats go out. */
const turnMs = 20;

/** A record with any other number could not be written, or not be read again. */
const measured = (value: number): number => (Number.isFinite(value) && value > 0 ? value : 0);

/** What an attempt has done so far: sums, and clocks per phase. Exactly one phase's clock runs at a time. */
export class AttemptMeter {
  bytesRead = 0;
  bytesTotal = 0;
  /** How much is done by the word of user code, from 0 to 1; undefined where it says nothing. */
  saidDone: number | undefined;
  /** Whether the task reads other stages' outputs, so that progress tells what it has fetched of them. */
  readsStages = false;
  /** How it has got on. */
  readonly kept = new KeptProgress();
  /** Of the process of user code, besides this one's. */
  hostPeakMemoryBytes = 0;
  /** For how long the worker stood still. */
  stalledMs = 0;
  recordsIn = 0;
  /** Of these, records of other stages' outputs: whoever goes on with the task reads them again. */
  recordsOfStages = 0;
  recordsOut = 0;
  /** What was taken up of an earlier attempt: none of the bytes above. */
  takenUp: TakenUp | undefined;
  /** Whether it can hand on what it has done; undefined until its operator runs. */
  handsOn: (() => boolean) | undefined;
  /** What the worker has asked for and was not told before; absent where nobody counts. */
  takeRequests: (() => RequestTally) | undefined;
  #requests: RequestTally | undefined;
  readonly #counters = new Map<string, number>();
  readonly #clock: Clock;
  readonly #signal: AbortSignal;
  readonly #peakMemoryBytes: () => number;
  #phase: Phase = 'init';
  #since: EpochMs;
  #lastTurn: EpochMs;
  readonly #spentMs: Record<Phase, number> = { init: 0, read: 0, compute: 0, write: 0 };
  #fetches = 0;
  #fetchingSince: EpochMs;
  #fetchedBytes = 0;
  #fetchedMs = 0;

  constructor(clock: Clock, signal: AbortSignal, peakMemoryBytes: () => number) {
    this.#clock = clock;
    this.#signal = signal;
    this.#peakMemoryBytes = peakMemoryBytes;
    this.#since = clock.now();
    this.#lastTurn = this.#since;
    this.#fetchingSince = this.#since;
  }

  /** Stops the running phase's clock and starts another. */
  enter(phase: Phase): void {
    const now = this.#clock.now();
    this.#spentMs[this.#phase] += elapsedMs(this.#since, now);
    this.#phase = phase;
    this.#since = now;
  }

  /**
   * Adds to a named sum. Takes anything, since user code calls it; throws `UserCodeError` that names the counter
   * where the name or the number cannot be kept, and then adds nothing.
   */
  count(name: unknown, by: unknown): void {
    addToCounter(this.#counters, name, by);
  }

  /** The sums so far, by name. */
  counters(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#counters);
  }

  /**
   * Waits for `work` on the clock of `phase`, then goes on computing. Now and then lets the event loop turn; throws
   * what the attempt was aborted with, if it was.
   */
  async during<T>(phase: Phase, work: () => Promise<T>): Promise<T> {
    this.#signal.throwIfAborted();
    this.enter(phase);
    try {
      const result = await work();
      if (this.#since - this.#lastTurn >= turnMs) {
        await setImmediate();
        this.#lastTurn = this.#clock.now();
      }
      this.#signal.throwIfAborted();
      return result;
    } finally {
      this.enter('compute');
    }
  }

  /**
   * Waits for a request for another stage's output. Time in which several are under way counts once, whatever the
   * phase: they are made ahead of what is computed.
   */
  async fetching(request: () => Promise<Uint8Array>): Promise<Uint8Array> {
    if (this.#fetches === 0) this.#fetchingSince = this.#clock.now();
    this.#fetches += 1;
    try {
      const bytes = await request();
      this.#fetchedBytes += bytes.length;
      return bytes;
    } finally {
      this.#fetches -= 1;
      if (this.#fetches === 0) this.#fetchedMs += elapsedMs(this.#fetchingSince, this.#clock.now());
    }
  }

  /** What has been read and written so far. */
  totals(): Pick<Progress, 'bytesRead' | 'recordsIn' | 'recordsOut'> {
    return {
      bytesRead: measured(this.bytesRead),
      recordsIn: measured(this.recordsIn),
      recordsOut: measured(this.recordsOut),
    };
  }

  /** How far it is: what counts as read, by the word of user code where it says so, of all that it reads. */
  reached(): Pick<Progress, 'bytesRead' | 'bytesTotal'> {
    const { saidDone, bytesTotal } = this;
    const bytesRead = saidDone === undefined ? this.bytesRead : Math.round(saidDone * bytesTotal);
    return { bytesRead: measured(bytesRead), bytesTotal: measured(bytesTotal) };
  }

  /** As a heartbeat reports it: every number is finite and not negative, whatever was added up. */
  progress(): Progress {
    const now = this.#clock.now();
    const running = elapsedMs(this.#since, now);
    const fetchingMs = this.#fetches === 0 ? 0 : elapsedMs(this.#fetchingSince, now);
    const phaseMs = { ...this.#spentMs };
    for (const phase of phases) if (phase === this.#phase) phaseMs[phase] += running;
    if (this.takeRequests !== undefined)
      this.#requests = addTallies(this.#requests ?? {}, this.takeRequests());
    return {
      ...this.totals(),
      ...this.reached(),
      ...this.kept.texts,
      phase: this.#phase,
      phaseMs,
      peakMemoryBytes: measured(this.#peakMemoryBytes() + this.hostPeakMemoryBytes),
      ...(this.stalledMs === 0 ? {} : { stalledMs: this.stalledMs }),
      ...(this.readsStages
        ? { fetched: { bytes: measured(this.#fetchedBytes), ms: this.#fetchedMs + fetchingMs } }
        : {}),
      ...(this.#requests === undefined ? {} : { requests: this.#requests }),
      ...(this.handsOn === undefined ? {} : { handsOn: this.handsOn() }),
      ...(this.takenUp === undefined ? {} : { takenUp: this.takenUp }),
    };
  }
}

/** Passes a stream on, with the time spent waiting for it on the clock of reading. */
export async function* metered<T>(source: AsyncIterable<T>, meter: AttemptMeter): AsyncGenerator<T> {
  const iterator = source[Symbol.asyncIterator]();
  try {
    for (;;) {
      const next = await meter.during('read', () => iterator.next());
      if (next.done === true) return;
      yield next.value;
    }
  } finally {
    await iterator.return?.();
  }
}
