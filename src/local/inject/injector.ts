import { isAttemptData } from '../../contracts/keys.ts';
import { InvalidInputError } from '../../contracts/errors.ts';
import { createRng, type Rng } from '../../lib/rng.ts';
import type { Fault, FaultHook, FaultSubject } from '../http/fault-hook.ts';
import { type Brake, startBrake } from './brake.ts';
import { DeliveryFaults, type DeliveryHook } from './delivery.ts';
import type { InjectedCounts, Injection } from './injection.ts';
import type { HarmHook } from '../s3/harm-object.ts';
import { signalGroup } from '../lambda/signal-group.ts';
import type { ClockHook, StartHook } from './start.ts';
import { zoneIdOfName } from '../provision/zone-ids.ts';
import { Strikes } from './strikes.ts';
import type { Work, WorkHook } from './work.ts';
import { type EmptyBucket, ZoneFaults } from './zone-faults.ts';

const SHORTEST_LIFE_MS = 50;
const LONGEST_LIFE_MS = 1_000;
/** Spot's two minutes: a worker goes by them when it hands on what it has done. */
const NOTICE_MS = 120_000;

const lambdaThrottle: Fault = { error: { status: 429, code: 'TooManyRequestsException' } };
const ecsThrottle: Fault = { error: { status: 400, code: 'ThrottlingException' } };

/** What is to befall works: the places of those that it has befallen, how many it may, and how; whether it did. */
interface Doom {
  readonly struck: string[];
  readonly most: number;
  readonly strike: () => boolean;
}

/**
 * Makes workers slow, lets them die, refuses launches and harms what workers write for each other, as an injection says.
 * Knows processes and keys, not jobs.
 */
export class Injector {
  private readonly injection: Injection;
  private readonly brake: Brake | undefined;
  private readonly lives: Rng;
  private readonly refusals: Rng;
  private readonly slowed = new Set<number>();
  private slowedByZone = 0;
  private readonly doomed = new Set<NodeJS.Timeout>();
  /** Works that were killed, ended or interrupted. */
  private readonly struck = new WeakSet<Work>();
  private readonly slowPlaces: string[] = [];
  private readonly killedPlaces: string[] = [];
  private readonly hogPlaces: string[] = [];
  private readonly interruptedPlaces: string[] = [];
  private readonly objects: Strikes<'lose' | 'corrupt'>;
  private throttled = 0;
  private lostObjects = 0;
  private corruptObjects = 0;
  private readonly reads: Rng;
  private slowReads = 0;
  private readonly starts: Rng;
  private readonly pauses: Rng;
  private readonly pausedPlaces: string[] = [];
  private readonly coldPlaces: string[] = [];
  private readonly clocks: Rng;
  private readonly aheadPlaces: string[] = [];
  private readonly behindPlaces: string[] = [];
  private readonly deliveries: DeliveryFaults;
  private readonly zoneDraws: Rng;
  private zones: ZoneFaults | undefined;
  private isClosed = false;

  constructor(injection: Injection) {
    const rng = createRng(`inject:${injection.seed}`);
    this.injection = injection;
    this.lives = rng.fork('kill');
    this.refusals = rng.fork('throttle');
    const { lostObjects: lose, corruptObjects: corrupt } = injection;
    this.objects = new Strikes(rng.fork('objects'), ['lose', 'corrupt'], { lose, corrupt });
    this.reads = rng.fork('reads');
    this.starts = rng.fork('starts');
    this.pauses = rng.fork('pauses');
    this.clocks = rng.fork('clocks');
    this.deliveries = new DeliveryFaults(injection, rng.fork('deliveries'));
    this.zoneDraws = rng.fork('zones');
    const { slow, pauses, slowTaskZone } = injection;
    const isBraked = slow !== undefined || pauses !== undefined || slowTaskZone !== undefined;
    this.brake = isBraked ? startBrake() : undefined;
  }

  /**
   * Says where the storage of zones is, and in which zones tasks run. Throws `InvalidInputError` where there is none in a
   * zone that is to be harmed.
   */
  harmsZones(places: {
    readonly buckets: readonly string[];
    readonly empty: EmptyBucket;
    readonly taskZones: readonly string[];
  }): void {
    const { lostZone, slowZone, slowTaskZone } = this.injection;
    if (slowTaskZone !== undefined && !places.taskZones.includes(slowTaskZone.zone))
      throw new InvalidInputError(
        `slow-zone must name one of the zones of tasks ${places.taskZones.join(', ')}, not ${slowTaskZone.zone}`,
        { field: 'slow-zone' },
      );
    if (lostZone === undefined && slowZone === undefined) return;
    this.zones = new ZoneFaults(this.injection, this.zoneDraws, places);
  }

  /** Refuses its share of launches: asynchronous invocations and RunTask; and what is asked of zones that are lost. Answers some reads late. */
  readonly onRequest: FaultHook = (subject) => {
    const zonal = this.zones?.faultOf(subject);
    if (zonal !== undefined) return zonal;
    const late = this.lateRead(subject);
    if (late !== undefined) return late;
    const fault = throttleOf(subject);
    if (this.isClosed || fault === undefined || this.injection.throttle === 0) return undefined;
    if (this.refusals.next() >= this.injection.throttle) return undefined;
    this.throttled++;
    return fault;
  };

  /** Lets some environments take longer to start. */
  readonly onStart: StartHook = ({ place }) => {
    const { coldStarts } = this.injection;
    if (this.isClosed || coldStarts === undefined || this.starts.next() >= coldStarts.share) return 0;
    this.coldPlaces.push(place);
    return coldStarts.delayMs;
  };

  /** Has the clocks of some workers be off, about half of them ahead. */
  readonly onClock: ClockHook = ({ place }) => {
    const { skews } = this.injection;
    if (this.isClosed || skews === undefined || this.clocks.next() >= skews.share) return 0;
    const isAhead = this.clocks.next() < 0.5;
    (isAhead ? this.aheadPlaces : this.behindPlaces).push(place);
    return isAhead ? skews.offMs : -skews.offMs;
  };

  /** Slows the first nodes that take work, for good, and kills, starves or interrupts others, or the same, while they work: each in one of these ways. */
  readonly onWork: WorkHook = (work) => {
    if (this.isClosed) return;
    this.zones?.onWork();
    this.slow(work);
    this.pause(work);
    this.doom(work, {
      struck: this.killedPlaces,
      most: this.injection.kills,
      strike: () => {
        work.lose?.();
        return signalGroup(work.pid, 'SIGKILL');
      },
    });
    if (work.exhaust !== undefined)
      this.doom(work, {
        struck: this.hogPlaces,
        most: this.injection.memoryHogs,
        strike: () => {
          work.exhaust?.();
          return true;
        },
      });
    if (work.interrupt !== undefined)
      this.doom(work, {
        struck: this.interruptedPlaces,
        most: this.injection.interruptions,
        strike: () => work.interrupt?.(NOTICE_MS) === true,
      });
  };

  /** Loses or corrupts some of the objects that workers write for each other, of which it leaves a few between. */
  readonly onWritten: HarmHook = ({ key }) => {
    const harm = this.isClosed || !isAttemptData(key) ? undefined : this.objects.next();
    if (harm === 'lose') this.lostObjects++;
    else if (harm === 'corrupt') this.corruptObjects++;
    return harm;
  };

  /** Loses some of the launches that Lambda has accepted, and has others delivered twice. */
  readonly onAccepted: DeliveryHook = (payload) =>
    this.isClosed ? undefined : this.deliveries.faultOf(payload);

  /** What has been done so far. */
  counts(): InjectedCounts {
    const {
      slowPlaces,
      killedPlaces,
      hogPlaces,
      interruptedPlaces,
      coldPlaces,
      pausedPlaces,
      aheadPlaces,
      behindPlaces,
      throttled,
      slowReads,
      lostObjects,
      corruptObjects,
      deliveries,
    } = this;
    return {
      slow: slowPlaces.length,
      killed: killedPlaces.length,
      memoryHogs: hogPlaces.length,
      interrupted: interruptedPlaces.length,
      throttled,
      slowReads,
      coldStarts: coldPlaces.length,
      paused: pausedPlaces.length,
      skewed: aheadPlaces.length + behindPlaces.length,
      lostObjects,
      corruptObjects,
      lostInvocations: deliveries.lost.length,
      duplicateInvocations: deliveries.repeated.length,
      ...this.zones?.done(),
      ...slowTasksOf(this.injection),
      places: {
        slow: [...slowPlaces],
        killed: [...killedPlaces],
        memoryHogs: [...hogPlaces],
        interrupted: [...interruptedPlaces],
        coldStarts: [...coldPlaces],
        paused: [...pausedPlaces],
        ahead: [...aheadPlaces],
        behind: [...behindPlaces],
      },
      attempts: {
        lostInvocations: [...deliveries.lost],
        duplicateInvocations: [...deliveries.repeated],
      },
    };
  }

  /** Harms nobody from here on; resolves once slowed processes run freely. May be called again. */
  async close(): Promise<void> {
    this.isClosed = true;
    for (const timer of this.doomed) clearTimeout(timer);
    this.doomed.clear();
    this.zones?.close();
    await this.brake?.close();
  }

  private lateRead({ service, operation }: FaultSubject): Fault | undefined {
    const { slowReads } = this.injection;
    if (this.isClosed || slowReads === undefined || service !== 's3' || operation !== 'GetObject')
      return undefined;
    if (this.reads.next() >= slowReads.share) return undefined;
    this.slowReads++;
    return { delayMs: slowReads.delayMs };
  }

  private slow({ pid, place, zone }: Work): void {
    const { slow, slowTaskZone } = this.injection;
    if (this.slowed.has(pid)) return;
    const isInZone = slowTaskZone !== undefined && zone === slowTaskZone.zone;
    const isOneOfFew = slow !== undefined && this.slowed.size - this.slowedByZone < slow.nodes;
    if (!isInZone && !isOneOfFew) return;
    if (isInZone) this.slowedByZone++;
    this.slowed.add(pid);
    this.slowPlaces.push(place);
    this.brake?.slow(pid, isInZone ? slowTaskZone.factor : (slow?.factor ?? 1));
  }

  /** Has some works stand still, but for those of processes that are slowed: these are stopped and continued already. */
  private pause(work: Work): void {
    const { pauses } = this.injection;
    if (pauses === undefined || this.pauses.next() >= pauses.share || this.slowed.has(work.pid)) return;
    this.later(this.pauses, () => {
      if (!work.isUnderWay()) return;
      this.pausedPlaces.push(work.place);
      this.brake?.freeze(work.pid, pauses.delayMs);
    });
  }

  /**
   * Each work is struck after a time of its own, unless it is over by then or as many were struck as may be. One that was
   * struck otherwise is as good as over, though its process may be there yet: what came second would be told and have done nothing.
   */
  private doom(work: Work, { struck, most, strike }: Doom): void {
    if (struck.length >= most) return;
    this.later(this.lives, () => {
      if (this.struck.has(work) || !work.isUnderWay() || struck.length >= most || !strike()) return;
      this.struck.add(work);
      struck.push(work.place);
    });
  }

  /** After a time that is drawn evenly over its magnitudes, so that short and long attempts are both hit at any point. */
  private later(rng: Rng, act: () => void): void {
    const timer = setTimeout(
      () => {
        this.doomed.delete(timer);
        act();
      },
      SHORTEST_LIFE_MS * (LONGEST_LIFE_MS / SHORTEST_LIFE_MS) ** rng.next(),
    );
    this.doomed.add(timer);
  }
}

function throttleOf({ service, operation, invocationType }: FaultSubject): Fault | undefined {
  if (service === 'lambda' && operation === 'Invoke' && invocationType === 'Event') return lambdaThrottle;
  return service === 'ecs' && operation === 'RunTask' ? ecsThrottle : undefined;
}

function slowTasksOf({ slowTaskZone }: Injection): Pick<InjectedCounts, 'slowTaskZone' | 'slowTaskZoneId'> {
  if (slowTaskZone === undefined) return {};
  const { zone } = slowTaskZone;
  const id = zoneIdOfName(zone);
  return { slowTaskZone: zone, ...(id === undefined ? {} : { slowTaskZoneId: id }) };
}
