import { isDirectoryBucket, zoneOfBucket } from '../../contracts/directory-buckets.ts';
import { InvalidInputError } from '../../contracts/errors.ts';
import type { Rng } from '../../lib/rng.ts';
import type { Fault, FaultSubject } from '../http/fault-hook.ts';
import type { Injection } from './injection.ts';

const shortestOutageMs = 1_000;
const longestOutageMs = 10_000;
/** Of requests that meet an outage, the share whose connection breaks; the others are answered with an error. */
const droppedShare = 0.25;

/** Empties a bucket of the stack. */
export type EmptyBucket = (bucket: string) => Promise<void>;

/**
 * Loses the storage of a zone, and slows that of another. A zone that is lost answers nothing for a while that the seed
 * draws, and then again, without anything that it held.
 */
export class ZoneFaults {
  private readonly injection: Pick<Injection, 'lostZone' | 'slowZone'>;
  private readonly rng: Rng;
  private readonly buckets: readonly string[];
  private readonly empty: EmptyBucket;
  private readonly timers = new Set<NodeJS.Timeout>();
  private state: 'whole' | 'doomed' | 'out' | 'emptied' = 'whole';

  /** Throws `InvalidInputError` where the stack has no storage in a zone that is named. */
  constructor(
    injection: Pick<Injection, 'lostZone' | 'slowZone'>,
    rng: Rng,
    { buckets, empty }: { readonly buckets: readonly string[]; readonly empty: EmptyBucket },
  ) {
    this.injection = injection;
    this.rng = rng;
    this.buckets = buckets.filter(isDirectoryBucket);
    this.empty = empty;
    const zones = this.buckets.flatMap((bucket) => zoneOfBucket(bucket) ?? []);
    const named = [
      ['lose-zone', injection.lostZone],
      ['slow-zone', injection.slowZone],
    ] as const;
    for (const [name, place] of named)
      if (place !== undefined && !zones.includes(place.zone))
        throw new InvalidInputError(
          `${name} must name one of the zones ${zones.join(', ')}, not ${place.zone}`,
          {
            field: name,
          },
        );
  }

  /** A worker has begun to work: the time until the loss begins with the first. */
  onWork(): void {
    const { lostZone } = this.injection;
    if (lostZone === undefined || this.state !== 'whole') return;
    this.state = 'doomed';
    this.after(lostZone.afterMs, () => {
      this.state = 'out';
      const outageMs = shortestOutageMs * (longestOutageMs / shortestOutageMs) ** this.rng.next();
      this.after(outageMs, () => void this.comeBack(lostZone.zone));
    });
  }

  /** What becomes of a request. */
  faultOf({ service, resource, source }: FaultSubject): Fault | undefined {
    if (service !== 's3') return undefined;
    const zones = [resource, source].flatMap((place) => zoneOfBucket(place?.split('/', 1)[0] ?? '') ?? []);
    const { lostZone, slowZone } = this.injection;
    if (lostZone !== undefined && zones.includes(lostZone.zone) && this.state === 'out')
      return this.rng.next() < droppedShare
        ? { drop: true }
        : { error: { status: 503, code: 'ServiceUnavailable' } };
    return slowZone !== undefined && zones.includes(slowZone.zone)
      ? { slowdown: slowZone.factor }
      : undefined;
  }

  /** What has been done so far. */
  done(): { readonly lostZone?: string; readonly slowZone?: string } {
    const { lostZone, slowZone } = this.injection;
    const isLost = this.state === 'out' || this.state === 'emptied';
    return {
      ...(lostZone === undefined || !isLost ? {} : { lostZone: lostZone.zone }),
      ...(slowZone === undefined ? {} : { slowZone: slowZone.zone }),
    };
  }

  close(): void {
    for (const timer of this.timers) clearTimeout(timer);
    this.timers.clear();
    if (this.state === 'out') this.state = 'emptied'; // Whoever cleans up is to find an end.
  }

  private async comeBack(zone: string): Promise<void> {
    const lost = this.buckets.filter((bucket) => zoneOfBucket(bucket) === zone);
    for (const bucket of lost) await this.empty(bucket).catch(() => undefined);
    this.state = 'emptied';
  }

  private after(ms: number, act: () => void): void {
    const timer = setTimeout(() => {
      this.timers.delete(timer);
      act();
    }, ms);
    this.timers.add(timer);
  }
}
