import type { LocationLinks } from '../core/policy/mantri/placement.ts';
import { Heap } from '../lib/heap.ts';
import { hourS } from './link-hours.ts';
import type { ShufflePhase } from './shuffle-phases.ts';

/** From when to when a phase kept a link busy, in seconds of the hour; the end may lie in the next. */
interface Use {
  readonly phase: number;
  readonly fromS: number;
  readonly toS: number;
}

interface Arrival {
  readonly phase: number;
  readonly atS: number;
  readonly bytes: number;
}

/**
 * When each phase uses a link that is shared evenly by all that use it. The hour is repeated, and the second one told, so that
 * it begins with what the one before has left.
 */
function usesOf(arrivals: readonly Arrival[], bytesPerS: number): Use[] {
  const twice = [0, 1].flatMap((hour) =>
    arrivals.map((one) => ({ ...one, hour, atS: one.atS + hour * hourS })),
  );
  twice.sort((a, b) => a.atS - b.atS);
  const active = new Heap<(typeof twice)[number] & { endsAt: number }>((a, b) => a.endsAt < b.endsAt);
  const uses: Use[] = [];
  let [nowS, served] = [0, 0];
  /** Lets time pass to `untilS`; whatever ends on the way makes room for the others. */
  const pass = (untilS: number): void => {
    for (let next = active.peek(); next !== undefined; next = active.peek()) {
      const endS = nowS + ((next.endsAt - served) * active.size) / bytesPerS;
      if (endS > untilS) break;
      [nowS, served] = [endS, next.endsAt];
      active.pop();
      if (next.hour === 1) uses.push({ phase: next.phase, fromS: next.atS - hourS, toS: endS - hourS });
    }
    if (active.size > 0) served += ((untilS - nowS) * bytesPerS) / active.size;
    nowS = untilS;
  };
  for (const one of twice) {
    pass(one.atS);
    active.push({ ...one, endsAt: served + one.bytes });
  }
  pass(Infinity);
  return uses;
}

/** How many phases use a link in each second of the hour; parts of a second count as such. */
class UsersByS {
  private readonly users = new Float64Array(hourS);
  private readonly own = new Map<number, readonly Use[]>();
  /** Of two hours: what the link left to one more, summed up to each second. */
  private readonly leftBefore = new Float64Array(2 * hourS + 1);

  constructor(uses: readonly Use[]) {
    for (const use of uses) {
      this.own.set(use.phase, [...(this.own.get(use.phase) ?? []), use]);
      for (let s = Math.floor(use.fromS); s < use.toS; s++) {
        this.users[s % hourS] = (this.users[s % hourS] ?? 0) + overlapS(use, s);
      }
    }
    for (let s = 0; s < 2 * hourS; s++) {
      this.leftBefore[s + 1] = (this.leftBefore[s] ?? 0) + 1 / (1 + (this.users[s % hourS] ?? 0));
    }
  }

  /** The share of the link that is left to a phase on the mean of some seconds, an hour of them at most. */
  shareOf(phase: number, firstS: number, seconds: number): number {
    const [from, own] = [firstS % hourS, this.own.get(phase)];
    if (own === undefined) {
      return ((this.leftBefore[from + seconds] ?? 0) - (this.leftBefore[from] ?? 0)) / seconds;
    }
    let sum = 0;
    for (let second = from; second < from + seconds; second++) sum += this.shareIn(own, second % hourS);
    return sum / seconds;
  }

  private shareIn(own: readonly Use[], s: number): number {
    const ownS = own.reduce((all, use) => all + overlapS(use, s) + overlapS(use, s + hourS), 0);
    return 1 / (1 + Math.max(0, (this.users[s] ?? 0) - ownS));
  }

  /** The same by second of the hour; to a phase that is none of the hour's if undefined. */
  sharesOf(phase: number | undefined): Float64Array {
    const own = (phase === undefined ? undefined : this.own.get(phase)) ?? [];
    const shares = this.users.map((users) => 1 / (1 + users));
    for (const { fromS, toS } of own) {
      for (let s = Math.floor(fromS); s < toS; s++) shares[s % hourS] = this.shareIn(own, s % hourS);
    }
    return shares;
  }
}

const overlapS = ({ fromS, toS }: Use, s: number): number =>
  Math.max(0, Math.min(toS, s + 1) - Math.max(fromS, s));

/**
 * What the links of racks leave to a phase while the others of the trace run as recorded: each of those that use a link takes
 * as much of it as the phase. Others are not slowed down by the phase.
 */
export class SharedLinks {
  private readonly up: readonly UsersByS[];
  private readonly down: readonly UsersByS[];
  private readonly bytesPerMs: number;

  constructor(phases: readonly ShufflePhase[], racks: number, bytesPerMs: number) {
    this.bytesPerMs = bytesPerMs;
    const [up, down] = [0, 1].map(() => Array.from({ length: racks }, (): Arrival[] => []));
    phases.forEach(({ inputs, recorded, sources, submittedAtMs }, phase) => {
      const [sent, received] = [new Map<number, number>(), new Map<number, number>()];
      inputs.forEach((row, task) => {
        const to = recorded[task] ?? 0;
        for (const from of sources) {
          if (from === to) continue;
          sent.set(from, (sent.get(from) ?? 0) + (row[from] ?? 0));
          received.set(to, (received.get(to) ?? 0) + (row[from] ?? 0));
        }
      });
      const atS = (submittedAtMs / 1_000) % hourS;
      for (const [rack, bytes] of sent) up?.[rack]?.push({ phase, atS, bytes });
      for (const [rack, bytes] of received) down?.[rack]?.push({ phase, atS, bytes });
    });
    const usersOf = (arrivals: readonly Arrival[]): UsersByS =>
      new UsersByS(usesOf(arrivals, bytesPerMs * 1_000));
    this.up = (up ?? []).map(usersOf);
    this.down = (down ?? []).map(usersOf);
  }

  /** The mean from `fromS` to `toS`, the second of the beginning at least. */
  leftTo(phase: number, fromS: number, toS: number): LocationLinks {
    const first = Math.floor(fromS);
    const seconds = Math.max(1, Math.min(hourS, Math.ceil(toS) - first));
    const mean = (users: UsersByS): number => this.bytesPerMs * users.shareOf(phase, first, seconds);
    return { up: this.up.map(mean), down: this.down.map(mean) };
  }

  /** The share of each link that is left in each second of the hour: uplinks by rack, then downlinks. To another phase if undefined. */
  sharesOf(phase?: number): readonly Float64Array[] {
    return [...this.up, ...this.down].map((users) => users.sharesOf(phase));
  }
}
