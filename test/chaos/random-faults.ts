import { setTimeout as delay } from 'node:timers/promises';
import type { Draw } from './draw.ts';
import type { Fault, Subject } from './fault-proxy.ts';
import type { FaultHook } from '../../src/local/http/fault-hook.ts';

/** How often what happens to a request, in a thousand. */
const rates = {
  'lose-request': 5,
  'lose-answer': 6,
  double: 8,
  'double-late': 4,
  delay: 10,
  'delay-beyond-lease': 1,
} as const;
type Mishap = keyof typeof rates;

/** Faults of requests that a seed draws, and how many there were. */
export class RandomFaults {
  readonly counts = new Map<string, number>();
  readonly #draw: Draw;
  readonly #leaseMs: number;

  constructor(draw: Draw, leaseMs: number) {
    this.#draw = draw;
    this.#leaseMs = leaseMs;
  }

  count(name: string): void {
    this.counts.set(name, (this.counts.get(name) ?? 0) + 1);
  }

  readonly decide = (subject: Subject): Fault | undefined => {
    const mishap = this.#mishap();
    if (mishap === undefined) return undefined;
    const fault = this.#faultOf(mishap, subject);
    if (fault !== undefined) this.count(mishap);
    return fault;
  };

  #mishap(): Mishap | undefined {
    let left = this.#draw.next() * 1_000;
    for (const [name, rate] of Object.entries(rates) as [Mishap, number][]) {
      left -= rate;
      if (left < 0) return name;
    }
    return undefined;
  }

  #faultOf(mishap: Mishap, { service, operation }: Subject): Fault | undefined {
    const hold = (ms: number): Fault => ({
      kind: 'hold',
      at: this.#draw.chance(0.5) ? 'before' : 'after',
      until: delay(ms, undefined, { ref: false }),
    });
    switch (mishap) {
      case 'lose-request':
      case 'lose-answer':
        return { kind: mishap };
      case 'double':
        return { kind: 'double' };
      case 'double-late':
        // What S3 is sent again long after is another's to remove: a bucket's lifecycle, and no job that has ended.
        if (service === 's3' && /^(PUT|POST)/.test(operation)) return undefined;
        return { kind: 'double', lateMs: this.#draw.int(50, 2 * this.#leaseMs) };
      case 'delay':
        return hold(this.#draw.int(20, 600));
      case 'delay-beyond-lease':
        return hold(this.#draw.int(this.#leaseMs, 3 * this.#leaseMs));
    }
  }

  /** For requests that people send to the API: they send them again. */
  readonly onRequest: FaultHook = ({ service }) => {
    if (service !== 'execute-api' || !this.#draw.chance(0.01)) return undefined;
    this.count('api');
    return this.#draw.pick([
      { drop: true },
      { delayMs: this.#draw.int(20, 500) },
      { error: { status: 503, code: 'ServiceUnavailable' } },
    ]);
  };
}
