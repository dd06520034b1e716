import { invariant } from '../contracts/errors.ts';
import type { EpochMs } from '../contracts/units.ts';
import { Heap } from '../lib/heap.ts';

/** Something that happens at a time. `seq` orders what happens at the same time: first planned, first served. */
export interface SimEvent {
  readonly at: EpochMs;
  readonly seq: number;
  /** What happens and to whom, for the trace. */
  readonly kind: string;
  readonly subject: string;
  readonly run: () => void | Promise<void>;
  cancelled: boolean;
}

/** What is yet to happen, by (at, seq). */
export class EventQueue {
  private readonly heap = new Heap<SimEvent>((a, b) => a.at < b.at || (a.at === b.at && a.seq < b.seq));
  private nextSeq = 0;
  private time = 0;

  /** Plans an event, never in the past. */
  schedule(at: EpochMs, { kind, subject, run }: Pick<SimEvent, 'kind' | 'subject' | 'run'>): SimEvent {
    if (at < this.time) invariant(false, 'an event in the past', { at, now: this.time, kind });
    const planned: SimEvent = { at, seq: this.nextSeq++, kind, subject, run, cancelled: false };
    this.heap.push(planned);
    return planned;
  }

  /** Removes the next event; undefined when nothing is left. */
  pop(): SimEvent | undefined {
    for (let event = this.heap.pop(); event !== undefined; event = this.heap.pop()) {
      if (event.cancelled) continue;
      this.time = event.at;
      return event;
    }
    return undefined;
  }
}

/** Takes an event back; no effect on one that has happened. */
export function cancelEvent(event: SimEvent | undefined): void {
  if (event !== undefined) event.cancelled = true;
}
