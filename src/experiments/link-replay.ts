import type { LocationLinks } from '../core/policy/mantri/placement.ts';
import { Heap } from '../lib/heap.ts';
import { hourS } from './link-hours.ts';
import type { ShufflePhase } from './shuffle-phases.ts';

/** From when to when a phase kept a link busy, in seconds of the hour; the end may lie in the next. */
export interface Use {
  readonly phase: number;
  readonly fromS: number;
  readonly toS: number;
}

interface Arrival {
  readonly phase: number;
  readonly atS: number;
  readonly bytes: number;
}

/** A link that is shared evenly by all that use it. */
class EvenLink {
  /** When each phase used it. */
  readonly uses: Use[] = [];
  private readonly active = new Heap<Arrival & { readonly endsAt: number }>((a, b) => a.endsAt < b.endsAt);
  private readonly bytesPerS: number;
  private nowS = 0;
  /** What whoever has been here from the beginning has been given, in bytes. */
  private served = 0;

  constructor(bytesPerS: number) {
    this.bytesPerS = bytesPerS;
  }

  get users(): number {
    return this.active.size;
  }

  /** Lets time pass to `untilS`; whatever ends on the way makes room for the others. */
  pass(untilS: number): void {
    for (let next = this.active.peek(); next !== undefined; next = this.active.peek()) {
      const endS = this.nowS + ((next.endsAt - this.served) * this.active.size) / this.bytesPerS;
      if (endS > untilS) break;
      [this.nowS, this.served] = [endS, next.endsAt];
      this.active.pop();
      this.uses.push({ phase: next.phase, fromS: next.atS, toS: endS });
    }
    if (this.active.size > 0) this.served += ((untilS - this.nowS) * this.bytesPerS) / this.active.size;
    this.nowS = untilS;
  }

  join(arrival: Arrival): void {
    this.active.push({ ...arrival, endsAt: this.served + arrival.bytes });
  }
}

/** Links of racks: up and down, by rack. */
export interface ByLink<T> {
  readonly up: readonly T[];
  readonly down: readonly T[];
}

/** What a placement moves, of racks that send or receive something. */
export function bytesByLink(
  { inputs, sources }: Pick<ShufflePhase, 'inputs' | 'sources'>,
  locations: readonly number[],
): { readonly sent: ReadonlyMap<number, number>; readonly received: ReadonlyMap<number, number> } {
  const [sent, received] = [new Map<number, number>(), new Map<number, number>()];
  inputs.forEach((row, task) => {
    const to = locations[task] ?? 0;
    for (const from of sources) {
      if (from === to) continue;
      sent.set(from, (sent.get(from) ?? 0) + (row[from] ?? 0));
      received.set(to, (received.get(to) ?? 0) + (row[from] ?? 0));
    }
  });
  return { sent, received };
}

/** How a scheme places a phase, by its number, when its links leave so much to it. */
export type PlacePhase = (phase: number, left: LocationLinks) => readonly number[];

/** An hour of phases, all placed by one scheme. */
export interface Replay {
  readonly uses: ByLink<readonly Use[]>;
  /** By phase: from its arrival until each link has carried its part, in milliseconds; machines are no limit. */
  readonly tookMs: readonly number[];
}

/**
 * Lets each phase arrive when it did and be placed then, and use its links side by side with all the others, which it slows down as
 * they do it. The hour is repeated, and the second one told, so that it begins with what the one before has left.
 */
export function replayPhases(
  phases: readonly ShufflePhase[],
  { racks, bytesPerMs }: { readonly racks: number; readonly bytesPerMs: number },
  place: PlacePhase,
): Replay {
  const linksOf = (): EvenLink[] => Array.from({ length: racks }, () => new EvenLink(1_000 * bytesPerMs));
  const links = { up: linksOf(), down: linksOf() };
  const all = [...links.up, ...links.down];
  const arrivals = [0, 1].flatMap((hour) =>
    phases.map(({ submittedAtMs }, phase) => ({
      phase,
      atS: ((submittedAtMs / 1_000) % hourS) + hour * hourS,
    })),
  );
  arrivals.sort((a, b) => a.atS - b.atS);
  const leaves = (link: EvenLink): number => bytesPerMs / (1 + link.users);
  for (const { phase, atS } of arrivals) {
    for (const link of all) link.pass(atS);
    const shuffle = phases[phase];
    if (shuffle === undefined) continue;
    const left = { up: links.up.map(leaves), down: links.down.map(leaves) };
    const { sent, received } = bytesByLink(shuffle, place(phase, left));
    for (const [rack, bytes] of sent) links.up[rack]?.join({ phase, atS, bytes });
    for (const [rack, bytes] of received) links.down[rack]?.join({ phase, atS, bytes });
  }
  for (const link of all) link.pass(Infinity);
  const second = ({ uses }: EvenLink): Use[] =>
    uses.flatMap(({ phase, fromS, toS }) =>
      fromS < hourS ? [] : [{ phase, fromS: fromS - hourS, toS: toS - hourS }],
    );
  const uses = { up: links.up.map(second), down: links.down.map(second) };
  const tookMs = phases.map(() => 0);
  for (const { phase, fromS, toS } of [...uses.up, ...uses.down].flat())
    tookMs[phase] = Math.max(tookMs[phase] ?? 0, 1_000 * (toS - fromS));
  return { uses, tookMs };
}
