import { AsyncLocalStorage } from 'node:async_hooks';
import { type RequestName, requestNames, type RequestTally } from '../../contracts/requests.ts';
import type { RequestMeter } from '../../ports/request-meter.ts';

interface Owner {
  readonly counts: Map<RequestName, number>;
  /** Calls of `counting` under way, and up to when their time was counted. */
  active: number;
  countedUntilMs: number;
}

export interface MeterOptions {
  /** Memory of the function whose time is counted; 0: its time is not. */
  readonly memoryMb?: number;
  /** Milliseconds since the process began, never going back. */
  readonly elapsedMs: () => number;
}

/** Owners whose counts nobody has taken; beyond it the oldest are given up. */
const MOST_OWNERS = 10_000;

/**
 * Knows for whom the process works by the asynchronous context, so that several jobs may be served at once. They share
 * the time of the function evenly. The time from the start of the process to its first work counts with that.
 */
export class AsyncRequestMeter implements RequestMeter {
  private readonly context = new AsyncLocalStorage<string>();
  private readonly owners = new Map<string, Owner>();
  private readonly memoryMb: number;
  private readonly elapsedMs: () => number;
  private isFirst = true;

  constructor({ memoryMb = 0, elapsedMs }: MeterOptions) {
    this.memoryMb = memoryMb;
    this.elapsedMs = elapsedMs;
  }

  async counting<T>(owner: string, work: () => Promise<T>): Promise<T> {
    this.settle();
    const there = this.ownerOf(owner);
    there.active += 1;
    there.countedUntilMs = this.isFirst ? 0 : this.elapsedMs();
    this.isFirst = false;
    try {
      return await this.context.run(owner, work);
    } finally {
      this.settle();
      there.active -= 1;
    }
  }

  count(tally: RequestTally): void {
    const owner = this.context.getStore();
    if (owner === undefined) return;
    const { counts } = this.ownerOf(owner);
    for (const name of requestNames) {
      const more = tally[name] ?? 0;
      if (more > 0) counts.set(name, (counts.get(name) ?? 0) + more);
    }
  }

  take(owner: string): RequestTally {
    this.settle();
    const there = this.owners.get(owner);
    if (there === undefined) return {};
    const taken = Object.fromEntries(there.counts);
    there.counts.clear();
    if (there.active === 0) this.owners.delete(owner);
    return taken;
  }

  /** Counts the time that has gone by, for all that are at work alike. */
  private settle(): void {
    if (this.memoryMb === 0) return;
    const now = this.elapsedMs();
    const working = [...this.owners.values()].filter(({ active }) => active > 0);
    for (const owner of working) {
      const spent = ((now - owner.countedUntilMs) * this.memoryMb) / working.length;
      owner.counts.set('coordinatorMbMs', Math.round((owner.counts.get('coordinatorMbMs') ?? 0) + spent));
      owner.countedUntilMs = now;
    }
  }

  private ownerOf(name: string): Owner {
    const there = this.owners.get(name);
    if (there !== undefined) return there;
    for (const [oldest, { active }] of this.owners) {
      if (this.owners.size < MOST_OWNERS) break;
      if (active === 0) this.owners.delete(oldest);
    }
    const owner: Owner = { counts: new Map(), active: 0, countedUntilMs: this.elapsedMs() };
    this.owners.set(name, owner);
    return owner;
  }
}
