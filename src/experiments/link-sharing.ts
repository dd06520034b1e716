import type { LocationLinks } from '../core/policy/mantri/placement.ts';
import { hourS } from './link-hours.ts';
import type { Replay, Use } from './link-replay.ts';

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
 * What the links of racks leave to a phase while the others run as replayed: each of those that use a link takes
 * as much of it as the phase. Others are not slowed down by the phase.
 */
export class SharedLinks {
  private readonly up: readonly UsersByS[];
  private readonly down: readonly UsersByS[];
  private readonly bytesPerMs: number;

  constructor({ uses }: Pick<Replay, 'uses'>, bytesPerMs: number) {
    this.bytesPerMs = bytesPerMs;
    this.up = uses.up.map((own) => new UsersByS(own));
    this.down = uses.down.map((own) => new UsersByS(own));
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
