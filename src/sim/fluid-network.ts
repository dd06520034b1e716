import { type EpochMs, epochMs } from '../contracts/units.ts';
import { Heap } from '../lib/heap.ts';
import { cancelEvent, type EventQueue, type SimEvent } from './event-queue.ts';
import { maxMinRates } from './max-min.ts';

/** Up and down links of a zone in bytes per millisecond; `Infinity` for links that never fill. */
export interface ZoneLinks {
  readonly upBytesPerMs: number;
  readonly downBytesPerMs: number;
}

/** Bytes under way between two zones. */
export interface Flow {
  readonly pair: ZonePair;
  /** What each flow of the pair will have received, counted from the pair's first, when this one is complete. */
  readonly endsAtBytes: number;
  readonly sizeBytes: number;
  readonly onEnd: () => void | Promise<void>;
  isOver: boolean;
}

/** Flows between the same zones get the same rate, so one sum of bytes per flow serves all of them. */
interface ZonePair {
  readonly links: readonly number[];
  readonly pending: Heap<Flow>;
  flows: number;
  servedBytes: number;
  rate: number;
}

/** What a rounding error may leave of a flow that is over. */
const toleranceBytes = 1e-3;

/**
 * Zones whose links are shared by all flows in max-min fairness, as a fluid: no packets, no delays. Flows within
 * a zone pass no link. Costs the number of zone pairs in use for each start and end, whatever the number of flows.
 */
export class FluidNetwork {
  private readonly queue: EventQueue;
  private readonly capacities: readonly number[];
  private readonly zones: number;
  private readonly capBytesPerMs: number;
  private readonly pairs = new Map<number, ZonePair>();
  private readonly now: () => EpochMs;
  private advancedTo: number;
  private next: SimEvent | undefined;
  private isDirty = false;

  /** @param capBytesPerMs - the most that one flow gets. */
  constructor(queue: EventQueue, now: () => EpochMs, zones: readonly ZoneLinks[], capBytesPerMs: number) {
    this.queue = queue;
    this.now = now;
    this.zones = zones.length;
    this.capacities = zones.flatMap(({ upBytesPerMs, downBytesPerMs }) => [upBytesPerMs, downBytesPerMs]);
    this.capBytesPerMs = capBytesPerMs;
    this.advancedTo = now();
  }

  /** Begins to carry bytes; `onEnd` is called when the last has arrived. */
  start(from: number, to: number, sizeBytes: number, onEnd: Flow['onEnd']): Flow {
    this.advance();
    const pair = this.pairOf(from, to);
    if (pair.pending.size === 0) pair.servedBytes = 0; // Small sums keep their last digits.
    const flow: Flow = { pair, sizeBytes, endsAtBytes: pair.servedBytes + sizeBytes, onEnd, isOver: false };
    pair.pending.push(flow);
    pair.flows += 1;
    this.touch();
    return flow;
  }

  /** Gives a flow up. */
  stop(flow: Flow): void {
    if (flow.isOver) return;
    this.advance();
    flow.isOver = true;
    flow.pair.flows -= 1;
    this.touch();
  }

  /** Bytes of a flow that have not arrived yet. */
  leftBytes(flow: Flow): number {
    if (flow.isOver || flow.pair.rate === Infinity) return 0;
    const since = (this.now() - this.advancedTo) * flow.pair.rate;
    return Math.max(0, Math.min(flow.sizeBytes, flow.endsAtBytes - flow.pair.servedBytes - since));
  }

  private pairOf(from: number, to: number): ZonePair {
    const key = from * this.zones + to;
    const there = this.pairs.get(key);
    if (there !== undefined) return there;
    const pair: ZonePair = {
      links: from === to ? [] : [2 * from, 2 * to + 1],
      pending: new Heap<Flow>((a, b) => a.endsAtBytes < b.endsAtBytes),
      flows: 0,
      servedBytes: 0,
      rate: 0,
    };
    this.pairs.set(key, pair);
    return pair;
  }

  /** Brings what each pair has carried up to the present, at the rates in force since the last time. */
  private advance(): void {
    const elapsed = this.now() - this.advancedTo;
    this.advancedTo = this.now();
    if (elapsed === 0) return;
    for (const pair of this.pairs.values()) if (pair.flows > 0) pair.servedBytes += elapsed * pair.rate;
  }

  /** Rates are worked out once for all changes of one moment. */
  private touch(): void {
    if (this.isDirty) return;
    this.isDirty = true;
    cancelEvent(this.next);
    this.next = this.queue.schedule(this.now(), { kind: 'rates', subject: '', run: () => this.settle() });
  }

  /** Ends what is complete, then shares the links anew and waits for the next end. */
  private async settle(): Promise<void> {
    this.advance();
    for (const flow of this.completed()) {
      flow.isOver = true;
      flow.pair.flows -= 1;
      await flow.onEnd();
    }
    this.isDirty = false;
    const active = [...this.pairs.values()].filter(({ flows }) => flows > 0);
    const rates = maxMinRates(this.capacities, active, this.capBytesPerMs);
    for (const [index, pair] of active.entries()) pair.rate = rates[index] ?? 0;
    const waitMs = active.reduce((least, pair) => Math.min(least, this.waitMsOf(pair)), Infinity);
    cancelEvent(this.next);
    this.next =
      waitMs === Infinity
        ? undefined
        : this.queue.schedule(epochMs(this.now() + Math.ceil(waitMs)), {
            kind: 'rates',
            subject: '',
            run: () => this.settle(),
          });
  }

  private completed(): Flow[] {
    const done: Flow[] = [];
    for (const pair of this.pairs.values()) {
      for (let flow = pair.pending.peek(); flow !== undefined; flow = pair.pending.peek()) {
        const isComplete = pair.rate === Infinity || flow.endsAtBytes - pair.servedBytes <= toleranceBytes;
        if (!flow.isOver && !isComplete) break;
        pair.pending.pop();
        if (!flow.isOver) done.push(flow);
      }
    }
    return done;
  }

  private waitMsOf(pair: ZonePair): number {
    const first = pair.pending.peek();
    if (first === undefined) return Infinity;
    return Math.max(0, first.endsAtBytes - pair.servedBytes) / pair.rate;
  }
}
