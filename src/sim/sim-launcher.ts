import type { JobId } from '../contracts/ids.ts';
import type { Worker } from '../contracts/job-spec.ts';
import type { ApiRate } from '../core/capacity/api-pace.ts';
import type { LaunchOutcome, Launcher, LaunchRequest, LaunchTerms, NodeTerms } from '../ports/launcher.ts';
import { Pacer } from './pacer.ts';
import type { Scenario } from './scenario.ts';

/** Starts an attempt on a node. `full`: no slot is free on a node that it may use. */
export type Deliver = (request: LaunchRequest) => 'delivered' | 'full';

/** The machines, as a launcher sees them. */
export interface SimLauncherParts {
  readonly deliver: Deliver;
  readonly nodes: () => NodeTerms;
  /** Stops the task on Fargate that a node is. */
  readonly stopTask: (node: string) => void;
}

const pacerOf = (throttle: Scenario['cluster']['throttle']): Pacer | undefined =>
  throttle && new Pacer({ events: throttle.launchesPerS, perMs: 1_000, burst: throttle.burst });

/** Hands launches to the simulated cluster: throttled beyond its rate and where no slot is free. */
export class SimLauncher implements Launcher {
  readonly nodes: () => NodeTerms;
  private readonly deliver: Deliver;
  private readonly stopTask: (node: string) => void;
  private readonly now: () => number;
  private readonly throttles: Readonly<Record<Worker['kind'], Pacer | undefined>>;
  /** How fast Fargate takes launches; undefined where that is without limit. */
  private readonly fargateRate: ApiRate | undefined;
  private readonly hasQueue: boolean;
  private readonly takesPacks: boolean;
  private readonly zoneNames: readonly string[];
  private readonly made = new Map<JobId, number>();

  constructor(scenario: Scenario, now: () => number, { deliver, nodes, stopTask }: SimLauncherParts) {
    this.nodes = nodes;
    this.deliver = deliver;
    this.stopTask = stopTask;
    this.now = now;
    const { throttle, fargateThrottle, queue, zones } = scenario.cluster;
    this.zoneNames = zones.map(({ name }) => name);
    this.hasQueue = queue !== undefined;
    // Where slots are handed over at once each attempt is launched by itself, as in the papers.
    this.takesPacks = scenario.scheduler.packs && !scenario.scheduler.wakeOnEnd;
    const shared = pacerOf(throttle);
    const ownThrottle = fargateThrottle ?? throttle;
    this.throttles = {
      lambda: shared,
      fargate: fargateThrottle === undefined ? shared : pacerOf(fargateThrottle),
    };
    this.fargateRate = ownThrottle && { perS: ownThrottle.launchesPerS, burst: ownThrottle.burst };
  }

  /** What is accepted for Lambda waits in its queue where the scenario has one; else there is a slot for it. */
  terms(kind: Worker['kind']): LaunchTerms {
    const rate = kind === 'fargate' ? this.fargateRate : undefined;
    return {
      waits: this.hasQueue && kind === 'lambda',
      takesPacks: this.takesPacks,
      ...(rate === undefined ? {} : { rate }),
    };
  }

  zones(): readonly string[] {
    return this.zoneNames;
  }

  launch(requests: readonly LaunchRequest[]): Promise<readonly LaunchOutcome[]> {
    return Promise.resolve(requests.map((request) => this.launchOne(request)));
  }

  /** Launches of a job that were made: a worker each, which may do several attempts. */
  invocationsOf(jobId: JobId): number {
    return this.made.get(jobId) ?? 0;
  }

  /** Others than tasks on Fargate learn of the end by their reports, or from the store where orders act at once. */
  stop({ kind, node }: { readonly kind: Worker['kind']; readonly node?: string }): Promise<undefined> {
    if (kind === 'fargate' && node !== undefined) this.stopTask(node);
    return Promise.resolve(undefined);
  }

  private launchOne(request: LaunchRequest): LaunchOutcome {
    const { attemptId } = request.payload;
    const throttle = this.throttles[request.kind];
    if (throttle !== undefined && throttle.waitMs(this.now()) > 0) {
      return { attemptId, outcome: 'throttled', message: 'too many launches' };
    }
    if (this.deliver(request) === 'full')
      return { attemptId, outcome: 'throttled', message: 'no slot is free' };
    throttle?.take(this.now());
    const { jobId } = request.payload;
    this.made.set(jobId, this.invocationsOf(jobId) + 1);
    return { attemptId, outcome: 'accepted' };
  }
}
