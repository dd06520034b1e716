import { createRng, type Rng } from '../../lib/rng.ts';
import type { Fault, FaultHook, FaultSubject } from '../http/fault-hook.ts';
import { type Brake, startBrake } from './brake.ts';
import type { InjectedCounts, Injection } from './injection.ts';
import { signalGroup } from '../lambda/signal-group.ts';
import type { Work, WorkHook } from './work.ts';

const SHORTEST_LIFE_MS = 50;
const LONGEST_LIFE_MS = 1_000;

const lambdaThrottle: Fault = { error: { status: 429, code: 'TooManyRequestsException' } };
const ecsThrottle: Fault = { error: { status: 400, code: 'ThrottlingException' } };

/** Makes workers slow, lets them die, and refuses launches, as an injection says. Knows processes, not jobs. */
export class Injector {
  private readonly injection: Injection;
  private readonly brake: Brake | undefined;
  private readonly lives: Rng;
  private readonly refusals: Rng;
  private readonly slowed = new Set<number>();
  private readonly doomed = new Set<NodeJS.Timeout>();
  private readonly slowPlaces: string[] = [];
  private readonly killedPlaces: string[] = [];
  private throttled = 0;
  private isClosed = false;

  constructor(injection: Injection) {
    const rng = createRng(`inject:${injection.seed}`);
    this.injection = injection;
    this.lives = rng.fork('kill');
    this.refusals = rng.fork('throttle');
    this.brake = injection.slow === undefined ? undefined : startBrake();
  }

  /** Refuses its share of launches: asynchronous invocations and RunTask. */
  readonly onRequest: FaultHook = (subject) => {
    const fault = throttleOf(subject);
    if (this.isClosed || fault === undefined || this.injection.throttle === 0) return undefined;
    if (this.refusals.next() >= this.injection.throttle) return undefined;
    this.throttled++;
    return fault;
  };

  /** Slows the first nodes that take work, for good, and kills others, or the same, while they work. */
  readonly onWork: WorkHook = (work) => {
    if (this.isClosed) return;
    this.slow(work);
    if (this.killedPlaces.length < this.injection.kills) this.doom(work);
  };

  /** What has been done so far. */
  counts(): InjectedCounts {
    const { slowPlaces, killedPlaces, throttled } = this;
    return {
      slow: slowPlaces.length,
      killed: killedPlaces.length,
      throttled,
      places: { slow: [...slowPlaces], killed: [...killedPlaces] },
    };
  }

  /** Harms nobody from here on; resolves once slowed processes run freely. May be called again. */
  async close(): Promise<void> {
    this.isClosed = true;
    for (const timer of this.doomed) clearTimeout(timer);
    this.doomed.clear();
    await this.brake?.close();
  }

  private slow({ pid, place }: Work): void {
    const { slow } = this.injection;
    if (slow === undefined || this.slowed.size >= slow.nodes || this.slowed.has(pid)) return;
    this.slowed.add(pid);
    this.slowPlaces.push(place);
    this.brake?.slow(pid, slow.factor);
  }

  /**
   * Each work is struck after a time of its own, unless it or the killing is over by then. Times are spread
   * evenly over their magnitudes, so that short and long attempts are both hit at any point.
   */
  private doom(work: Work): void {
    const lifeMs = SHORTEST_LIFE_MS * (LONGEST_LIFE_MS / SHORTEST_LIFE_MS) ** this.lives.next();
    const timer = setTimeout(() => {
      this.doomed.delete(timer);
      if (this.killedPlaces.length >= this.injection.kills || !work.isUnderWay()) return;
      work.lose?.();
      if (signalGroup(work.pid, 'SIGKILL')) this.killedPlaces.push(work.place);
    }, lifeMs);
    this.doomed.add(timer);
  }
}

function throttleOf({ service, operation, invocationType }: FaultSubject): Fault | undefined {
  if (service === 'lambda' && operation === 'Invoke' && invocationType === 'Event') return lambdaThrottle;
  return service === 'ecs' && operation === 'RunTask' ? ecsThrottle : undefined;
}
