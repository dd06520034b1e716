import { epochMs } from '../contracts/units.ts';
import type { Rng } from '../lib/rng.ts';
import type { EventQueue } from './event-queue.ts';

/** How Lambda treats asynchronous events for which it has no room. */
export interface LambdaQueueTerms {
  /** The pause after an event's first refusal. It doubles with each, up to the longest. */
  readonly firstPauseMs: number;
  readonly longestPauseMs: number;
  /** Older events are dropped without a word. */
  readonly eventAgeMs: number;
}

/** What the queue has done so far. */
export interface LambdaQueueCounts {
  readonly accepted: number;
  /** Tries for which there was no room. */
  readonly refused: number;
  readonly dropped: number;
  /** The most that lay in it at once. */
  readonly longest: number;
}

/**
 * Lambda's queue of asynchronous events: each is tried at once, and where there is no room again and again with
 * growing pauses, whatever the others do, until it begins or is too old. Pauses are spread by a quarter either way, so
 * that events that were refused together do not come back together.
 */
export class LambdaQueue<T> {
  private readonly terms: LambdaQueueTerms;
  private readonly queue: EventQueue;
  private readonly now: () => number;
  private readonly luckOf: (event: T) => Rng;
  /** Begins an event, or answers that there is no room. */
  private readonly begin: (event: T) => boolean;
  private waiting = 0;
  private counted = { accepted: 0, refused: 0, dropped: 0, longest: 0 };

  constructor(
    terms: LambdaQueueTerms,
    parts: {
      readonly queue: EventQueue;
      readonly now: () => number;
      /** What spreads an event's pauses: its own, so that they do not hang on how often others were refused. */
      readonly luckOf: (event: T) => Rng;
      readonly begin: (event: T) => boolean;
    },
  ) {
    this.terms = terms;
    this.queue = parts.queue;
    this.now = parts.now;
    this.luckOf = parts.luckOf;
    this.begin = parts.begin;
  }

  get counts(): LambdaQueueCounts {
    return { ...this.counted };
  }

  /** Events that wait. */
  get size(): number {
    return this.waiting;
  }

  /** Takes an event in, always. It begins at once where there is room. */
  accept(event: T): void {
    this.counted.accepted += 1;
    this.attempt(event, { acceptedAt: this.now(), luck: this.luckOf(event) }, this.terms.firstPauseMs);
  }

  private attempt(event: T, own: { readonly acceptedAt: number; readonly luck: Rng }, pauseMs: number): void {
    if (this.begin(event)) return;
    this.counted.refused += 1;
    this.waiting += 1;
    this.counted.longest = Math.max(this.counted.longest, this.waiting);
    const spreadMs = Math.round(pauseMs * (0.75 + own.luck.next() / 2));
    this.queue.schedule(epochMs(this.now() + spreadMs), {
      kind: 'event-again',
      subject: '',
      run: () => {
        this.waiting -= 1;
        if (this.now() - own.acceptedAt > this.terms.eventAgeMs) this.counted.dropped += 1;
        else this.attempt(event, own, Math.min(2 * pauseMs, this.terms.longestPauseMs));
      },
    });
  }
}
