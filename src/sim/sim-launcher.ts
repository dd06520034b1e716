import type { JobId } from '../contracts/ids.ts';
import type { Worker } from '../contracts/job-spec.ts';
import type { LaunchOutcome, Launcher, LaunchRequest, LaunchTerms, NodeTerms } from '../ports/launcher.ts';
import { Pacer } from './pacer.ts';
import type { Scenario } from './scenario.ts';

/** Starts an attempt on a node. `full`: no slot is free on a node that it may use. */
export type Deliver = (request: LaunchRequest) => 'delivered' | 'full';

/** Hands launches to the simulated cluster: throttled beyond its rate and where no slot is free. */
export class SimLauncher implements Launcher {
  readonly nodes: () => NodeTerms;
  private readonly deliver: Deliver;
  private readonly now: () => number;
  private readonly throttle: Pacer | undefined;
  private readonly hasQueue: boolean;
  private readonly takesPacks: boolean;
  private readonly zoneNames: readonly string[];
  private readonly made = new Map<JobId, number>();

  constructor(
    scenario: Scenario,
    now: () => number,
    { deliver, nodes }: { readonly deliver: Deliver; readonly nodes: () => NodeTerms },
  ) {
    this.nodes = nodes;
    this.deliver = deliver;
    this.now = now;
    const { throttle, queue, zones } = scenario.cluster;
    this.zoneNames = zones.map(({ name }) => name);
    this.hasQueue = queue !== undefined;
    // Where slots are handed over at once each attempt is launched by itself, as in the papers.
    this.takesPacks = scenario.scheduler.packs && !scenario.scheduler.wakeOnEnd;
    if (throttle === undefined) return;
    this.throttle = new Pacer({ events: throttle.launchesPerS, perMs: 1_000, burst: throttle.burst });
  }

  /** What is accepted for Lambda waits in its queue where the scenario has one; else there is a slot for it. */
  terms(kind: Worker['kind']): LaunchTerms {
    return { waits: this.hasQueue && kind === 'lambda', takesPacks: this.takesPacks };
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

  /** Workers learn of the end by their reports, or from the store where the scenario has orders act at once. */
  stop(): Promise<void> {
    return Promise.resolve();
  }

  private launchOne(request: LaunchRequest): LaunchOutcome {
    const { attemptId } = request.payload;
    if (this.throttle !== undefined && this.throttle.waitMs(this.now()) > 0) {
      return { attemptId, outcome: 'throttled', message: 'too many launches' };
    }
    if (this.deliver(request) === 'full')
      return { attemptId, outcome: 'throttled', message: 'no slot is free' };
    this.throttle?.take(this.now());
    const { jobId } = request.payload;
    this.made.set(jobId, this.invocationsOf(jobId) + 1);
    return { attemptId, outcome: 'accepted' };
  }
}
