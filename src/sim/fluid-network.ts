import { type EpochMs, epochMs } from '../contracts/units.ts';
import { Heap } from '../lib/heap.ts';
import { cancelEvent, type EventQueue, type SimEvent } from './event-queue.ts';
import { maxMinRates } from './max-min.ts';

/** Up and down links of an endpoint in bytes per millisecond; `Infinity` for links that never fill. */
export interface EndpointLinks {
  readonly upBytesPerMs: number;
  readonly downBytesPerMs: number;
  /**
   * What its disk carries in all for one stream, for two, and so on; the last holds for more. Bytes that come from it or
   * go to it pass its disk, and those that stay pass it twice: read and written. Without it disks never fill.
   */
  readonly diskBytesPerMs?: readonly number[] | undefined;
}

/** Bytes under way between two endpoints. */
export interface Flow {
  readonly pair: EndpointPair;
  /** What each flow of the pair will have received, counted from the pair's first, when this one is complete. */
  readonly endsAtBytes: number;
  readonly sizeBytes: number;
  readonly onEnd: () => void | Promise<void>;
  isOver: boolean;
}

/** Flows between the same endpoints get the same rate, so one sum of bytes per flow serves all of them. */
interface EndpointPair {
  /** In the order in which pairs were first used. */
  readonly place: number;
  readonly links: readonly number[];
  readonly pending: Heap<Flow>;
  flows: number;
  servedBytes: number;
  rate: number;
}

/** What a rounding error may leave of a flow that is over. */
const toleranceBytes = 1e-3;

/**
 * Endpoints (zones, hosts or nodes) whose links and disks are shared by all flows in max-min fairness, as a fluid: no
 * packets, no delays. Flows within an endpoint pass no link. A start or end costs the pairs of endpoints that flows use now, and
 * the square of the links that they pass, whatever the number of flows and of endpoints.
 */
export class FluidNetwork {
  private readonly queue: EventQueue;
  /** Up and down of each endpoint, and then their disks where any has one: these by the streams of the moment. */
  private readonly capacities: number[];
  private readonly disks: readonly (readonly number[] | undefined)[];
  private readonly hasDisks: boolean;
  private readonly endpoints: number;
  private readonly capBytesPerMs: number;
  private readonly pairs = new Map<number, EndpointPair>();
  /** Those that have flows, or had until a moment ago, by place. */
  private inUse: EndpointPair[] = [];
  private readonly now: () => EpochMs;
  private advancedTo: number;
  private next: SimEvent | undefined;
  private isDirty = false;

  /** @param capBytesPerMs - the most that one flow gets. */
  constructor(
    queue: EventQueue,
    now: () => EpochMs,
    endpoints: readonly EndpointLinks[],
    capBytesPerMs: number,
  ) {
    this.queue = queue;
    this.now = now;
    this.endpoints = endpoints.length;
    this.disks = endpoints.map(({ diskBytesPerMs }) => diskBytesPerMs);
    this.hasDisks = this.disks.some((disk) => disk !== undefined);
    this.capacities = endpoints.flatMap(({ upBytesPerMs, downBytesPerMs }) => [upBytesPerMs, downBytesPerMs]);
    if (this.hasDisks) this.capacities.push(...endpoints.map(() => Infinity));
    this.capBytesPerMs = capBytesPerMs;
    this.advancedTo = now();
  }

  /** Begins to carry bytes; `onEnd` is called when the last has arrived. */
  start(from: number, to: number, sizeBytes: number, onEnd: Flow['onEnd']): Flow {
    this.advance();
    const pair = this.pairOf(from, to);
    if (pair.pending.size === 0) this.use(pair);
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

  /** What the links of an endpoint carry from now on: others use them, too, and leave more or less. */
  relink(endpoint: number, { upBytesPerMs, downBytesPerMs }: Omit<EndpointLinks, 'diskBytesPerMs'>): void {
    this.advance();
    this.capacities[2 * endpoint] = upBytesPerMs;
    this.capacities[2 * endpoint + 1] = downBytesPerMs;
    this.touch();
  }

  /** Bytes of a flow that have not arrived yet. */
  leftBytes(flow: Flow): number {
    if (flow.isOver || flow.pair.rate === Infinity) return 0;
    const since = (this.now() - this.advancedTo) * flow.pair.rate;
    return Math.max(0, Math.min(flow.sizeBytes, flow.endsAtBytes - flow.pair.servedBytes - since));
  }

  /** How long a flow will still take at its present rate. */
  leftMs(flow: Flow): number {
    const left = this.leftBytes(flow);
    return left === 0 ? 0 : left / flow.pair.rate;
  }

  private pairOf(from: number, to: number): EndpointPair {
    const key = from * this.endpoints + to;
    const there = this.pairs.get(key);
    if (there !== undefined) return there;
    const pair: EndpointPair = {
      place: this.pairs.size,
      links: this.linksBetween(from, to),
      pending: new Heap<Flow>((a, b) => a.endsAtBytes < b.endsAtBytes),
      flows: 0,
      servedBytes: 0,
      rate: 0,
    };
    this.pairs.set(key, pair);
    return pair;
  }

  private linksBetween(from: number, to: number): number[] {
    const links = from === to ? [] : [2 * from, 2 * to + 1];
    const disks = [from, to].filter((place) => this.disks[place] !== undefined);
    return [...links, ...disks.map((place) => 2 * this.endpoints + place)];
  }

  /** What each disk carries for as many streams as use it now. */
  private shareDisks(active: readonly EndpointPair[]): void {
    const streams = this.disks.map(() => 0);
    for (const { links, flows } of active) {
      for (const link of links) {
        const place = link - 2 * this.endpoints;
        if (place >= 0) streams[place] = (streams[place] ?? 0) + flows;
      }
    }
    for (const [place, disk] of this.disks.entries()) {
      const count = streams[place] ?? 0;
      const carried = disk === undefined ? Infinity : (disk[count - 1] ?? disk.at(-1) ?? Infinity);
      this.capacities[2 * this.endpoints + place] = carried;
    }
  }

  /** Takes an idle pair into use. */
  private use(pair: EndpointPair): void {
    pair.servedBytes = 0; // Small sums keep their last digits.
    let place = this.inUse.length;
    while ((this.inUse[place - 1]?.place ?? -1) > pair.place) place -= 1;
    this.inUse.splice(place, 0, pair);
  }

  /** Brings what each pair has carried up to the present, at the rates in force since the last time. */
  private advance(): void {
    const elapsed = this.now() - this.advancedTo;
    this.advancedTo = this.now();
    if (elapsed === 0) return;
    for (const pair of this.inUse) if (pair.flows > 0) pair.servedBytes += elapsed * pair.rate;
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
    const active = this.inUse.filter(({ flows }) => flows > 0);
    if (this.hasDisks) this.shareDisks(active);
    const rates = maxMinRates(this.capacities, active, this.capBytesPerMs);
    let waitMs = Infinity;
    for (let index = 0; index < active.length; index++) {
      const pair = active[index];
      if (pair === undefined) continue;
      pair.rate = rates[index] ?? 0;
      waitMs = Math.min(waitMs, this.waitMsOf(pair));
    }
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
    for (const pair of this.inUse) {
      for (let flow = pair.pending.peek(); flow !== undefined; flow = pair.pending.peek()) {
        const isComplete = pair.rate === Infinity || flow.endsAtBytes - pair.servedBytes <= toleranceBytes;
        if (!flow.isOver && !isComplete) break;
        pair.pending.pop();
        if (!flow.isOver) done.push(flow);
      }
    }
    this.inUse = this.inUse.filter(({ pending }) => pending.size > 0);
    return done;
  }

  private waitMsOf(pair: EndpointPair): number {
    const first = pair.pending.peek();
    if (first === undefined) return Infinity;
    return Math.max(0, first.endsAtBytes - pair.servedBytes) / pair.rate;
  }
}
