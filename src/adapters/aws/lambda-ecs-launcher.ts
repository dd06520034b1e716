import {
  type ECSClient,
  RunTaskCommand,
  type RunTaskCommandOutput,
  type TaskOverride,
} from '@aws-sdk/client-ecs';
import { InvokeCommand, type LambdaClient } from '@aws-sdk/client-lambda';
import {
  fargateSizes,
  heapMbOf,
  type Worker,
  workerNodeOptions,
  type WorkerSize,
} from '../../contracts/job-spec.ts';
import { attemptParts, jobNameOf } from '../../contracts/ids.ts';
import type { AccessDeniedError } from '../../contracts/errors.ts';
import type { AttemptPayload } from '../../contracts/payloads.ts';
import { Setting } from '../../contracts/settings.ts';
import type { Launcher, LaunchOutcome, LaunchRequest, LaunchTerms, NodeTerms } from '../../ports/launcher.ts';
import { EcsTaskStopper } from './ecs-task-stopper.ts';
import { denialOf, isDenial } from './denials.ts';
import { faultOf, isPassing, isThrottling } from './faults.ts';
import { lacksPlace, lacksProvider, lacksRoom, refusalOfFailure, refusalOfFault } from './run-task-faults.ts';
import { type RunTaskAnswer, RunTaskRounds, tokenOf } from './run-task-rounds.ts';
import { batchesOf, halvesOf, type LaunchBatch, payloadOf, withoutCopies } from './launch-batches.ts';
import { forEachBounded } from '../../lib/bounded.ts';

/** Where workers run. */
export interface LauncherPlaces {
  /** Function name by worker size. */
  readonly workerFunctions: Readonly<Partial<Record<WorkerSize, string>>>;
  /** Of Fargate tasks, as all that follows; absent where there is no Fargate. */
  readonly cluster?: string;
  readonly taskDefinition?: string;
  /** Name of the container in the task definition. */
  readonly taskContainer?: string;
  readonly subnets?: readonly TaskSubnet[];
  readonly securityGroups?: readonly string[];
  /** Whether tasks get public addresses; absent: they do. */
  readonly hasPublicIps?: boolean;
  /** Whether first attempts of tasks run on Spot, where it has room. Absent: nothing does. */
  readonly isSpot?: boolean;
  /**
   * Whether the worker functions have tenant isolation: each invocation then names its job's name as tenant, and
   * without it must not.
   */
  readonly isPerTenant?: boolean;
}

const LAMBDA_CONCURRENCY = 40;
const ECS_CONCURRENCY = 5;
/** All that RunTask takes as overrides, the characters of their JSON included. */
const ECS_OVERRIDES_CHARS = 8_192;

/**
 * Starts workers by asynchronous invocation or as Fargate tasks. One RunTask starts up to ten tasks of a stage: their
 * payload travels in overrides, which they share, and so names all attempts, of which each task claims one.
 *
 * Give it clients that retry little: the scheduler paces its launches by `terms`, and makes what was refused again.
 */
export class LambdaEcsLauncher implements Launcher {
  private readonly lambda: LambdaClient;
  private readonly ecs: ECSClient;
  private readonly places: LauncherPlaces;
  private readonly rounds = new RunTaskRounds();

  constructor(clients: { lambda: LambdaClient; ecs: ECSClient }, places: LauncherPlaces) {
    this.lambda = clients.lambda;
    this.ecs = clients.ecs;
    this.places = places;
  }

  /** Asynchronous invocations have no rate of their own; the account's RunTask starts 20 tasks a second for long. */
  terms(kind: Worker['kind']): LaunchTerms {
    return kind === 'lambda'
      ? { waits: true, rate: { perS: 1_000, burst: 1_000 } }
      : { waits: false, rate: { perS: 20, burst: 100 } };
  }

  /** Neither service lets anybody choose a node; orders are read with the next report. */
  nodes(): NodeTerms {
    return { killsAtOnce: false, free: undefined };
  }

  /** Fargate runs a task in one of the subnets that RunTask names, and so in a zone of theirs. */
  zones(): readonly string[] {
    return [...new Set((this.places.subnets ?? []).flatMap(({ zone }) => zone ?? []))];
  }

  async launch(requests: readonly LaunchRequest[]): Promise<readonly LaunchOutcome[]> {
    const outcomes = new Map<LaunchRequest, LaunchOutcome>();
    const launchAll = async (batches: readonly LaunchBatch[], concurrency: number): Promise<void> => {
      await forEachBounded(batches, concurrency, async (batch) => {
        const failed = await this.launchBatch(batch);
        batch.forEach((request, index) => {
          const { attemptId } = request.payload;
          outcomes.set(request, { attemptId, ...(failed[index] ?? { outcome: 'accepted' }) });
        });
      });
    };
    const of = (kind: LaunchRequest['kind']): LaunchRequest[] =>
      requests.filter((request) => request.kind === kind);
    await Promise.all([
      launchAll(
        of('lambda').map((request): LaunchBatch => [request]),
        LAMBDA_CONCURRENCY,
      ),
      launchAll(this.batchesOnFargate(of('fargate')), ECS_CONCURRENCY),
    ]);
    return requests.map(
      (request) => outcomes.get(request) ?? { attemptId: request.payload.attemptId, outcome: 'throttled' },
    );
  }

  async stop(attempt: { kind: 'lambda' | 'fargate'; node?: string }): Promise<string | undefined> {
    const { cluster } = this.places;
    if (attempt.kind !== 'fargate' || attempt.node === undefined || cluster === undefined) return undefined;
    // The order to cancel reaches the worker by its progress reports as well, and who ends its job stops it once more.
    return new EcsTaskStopper(this.ecs, cluster).stop(attempt.node);
  }

  /** What has failed of a batch, in its order; undefined for what was accepted. */
  private async launchBatch(batch: LaunchBatch): Promise<readonly (Failed | undefined)[]> {
    const [request] = batch;
    try {
      return request.kind === 'lambda' ? [await this.invoke(request)] : await this.runTasks(batch);
    } catch (cause) {
      const failed = this.failureOf(request, cause);
      return batch.map(() => failed);
    }
  }

  private failureOf(request: LaunchRequest, cause: unknown): Failed {
    const fault = faultOf(cause);
    const denial = this.denialOf(request, cause);
    if (denial !== undefined) return { outcome: 'refused', denied: true, message: denial.message };
    // A function that is being created or updated is in conflict for some seconds.
    const isLater = isPassing(fault) || fault.name === 'ResourceConflictException';
    const message = `${fault.name}: ${fault.message}`;
    if (!isLater) return { outcome: 'refused', message };
    return { outcome: 'throttled', message, ...(isThrottling(fault) ? {} : { isUnanswered: true }) };
  }

  private denialOf(request: LaunchRequest, cause: unknown): AccessDeniedError | undefined {
    const asked =
      request.kind === 'lambda'
        ? {
            action: 'lambda:InvokeFunction',
            resource: `function ${this.places.workerFunctions[request.size] ?? request.size}`,
          }
        : { action: 'ecs:RunTask', resource: `task definition ${this.places.taskDefinition ?? ''}` };
    return denialOf(cause, asked);
  }

  private async invoke({ payload, size }: LaunchRequest): Promise<Failed | undefined> {
    const functionName = this.places.workerFunctions[size];
    if (functionName === undefined)
      return { outcome: 'refused', message: `no worker function of size ${size}` };
    await this.lambda.send(
      new InvokeCommand({
        FunctionName: functionName,
        InvocationType: 'Event',
        ...(this.places.isPerTenant === true ? { TenantId: jobNameOf(payload.jobId) } : {}),
        Payload: new TextEncoder().encode(JSON.stringify(payload)),
      }),
    );
    return undefined;
  }

  /** Launches of Fargate by calls, each within what ECS takes as overrides, where that can be. */
  private batchesOnFargate(requests: readonly LaunchRequest[]): LaunchBatch[] {
    const cut = (batch: LaunchBatch): readonly LaunchBatch[] =>
      batch.length === 1 || isShort(this.overridesOf(batch, this.providerOf(batch[0])))
        ? [batch]
        : halvesOf(batch).flatMap(cut);
    const placeOf = (request: LaunchRequest): string => `${this.providerOf(request)} ${request.zone ?? ''}`;
    return batchesOf(requests, placeOf).flatMap(cut);
  }

  private providerOf({ payload }: LaunchRequest): Provider {
    const isFirst = attemptParts(payload.attemptId).attempt === 0;
    return this.places.isSpot === true && isFirst ? 'FARGATE_SPOT' : 'FARGATE';
  }

  /** What has failed at each place where a task may start: in its zone, then anywhere; on Spot, then on demand. */
  private async runTasks(batch: LaunchBatch): Promise<readonly (Failed | undefined)[]> {
    if (this.places.cluster === undefined)
      return batch.map(() => ({ outcome: 'refused', message: 'this deployment has no Fargate' }));
    const failed = new Map<LaunchRequest, Failed>();
    const answers: RunTaskAnswer[] = [];
    const round = this.rounds.of(batch);
    let left: LaunchBatch | undefined = batch;
    for (const place of this.placesFor(batch[0])) {
      const { answer, failures } = await this.runTasksAt(place, left, round);
      answers.push(answer);
      left.forEach((request, index) => {
        const failure = failures[index];
        if (failure === undefined) failed.delete(request);
        else failed.set(request, failure);
      });
      const [first, ...others]: readonly LaunchRequest[] = left.filter((request) => {
        const failure = failed.get(request);
        return failure !== undefined && place.lacks(failure.message ?? '');
      });
      if (first === undefined) break;
      left = [first, ...others];
    }
    if (failed.size === batch.length) this.rounds.inVain(batch, answers);
    return batch.map((request) => failed.get(request));
  }

  /** Where a launch is tried, in order. */
  private placesFor(request: LaunchRequest): readonly TaskPlace[] {
    const { subnets = [] } = this.places;
    const all = subnets.map(({ id }) => id);
    const inZone = subnets
      .filter(({ zone }) => zone !== undefined && zone === request.zone)
      .map(({ id }) => id);
    const provider = this.providerOf(request);
    const isZoned = inZone.length > 0 && inZone.length < all.length;
    const onDemand = { provider: 'FARGATE' as const, subnets: all, lacks: lacksRoom };
    const lacksSpot = (words: string): boolean => lacksRoom(words) || lacksProvider(words);
    const anywhere =
      provider === 'FARGATE' ? [onDemand] : [{ ...onDemand, provider, lacks: lacksSpot }, onDemand];
    if (!isZoned) return anywhere;
    const lacks =
      provider === 'FARGATE' ? lacksPlace : (words: string) => lacksPlace(words) || lacksSpot(words);
    return [{ provider, subnets: inZone, zone: request.zone ?? '', lacks }, ...anywhere];
  }

  private async runTasksAt(
    place: TaskPlace,
    batch: LaunchBatch,
    round: number,
  ): Promise<{ readonly answer: RunTaskAnswer; readonly failures: readonly (Failed | undefined)[] }> {
    const { cluster, taskDefinition, securityGroups = [], hasPublicIps } = this.places;
    const { provider, subnets } = place;
    const { jobId } = batch[0].payload;
    try {
      const answer = await this.ecs.send(
        new RunTaskCommand({
          cluster,
          taskDefinition,
          // A strategy of several providers would share the tasks of a call out by weight, room or not; on demand needs none.
          ...(provider === 'FARGATE_SPOT'
            ? { capacityProviderStrategy: [{ capacityProvider: provider, weight: 1 }] }
            : { launchType: 'FARGATE' }),
          count: batch.length,
          clientToken: tokenOf(place, batch, round),
          startedBy: jobId,
          networkConfiguration: {
            awsvpcConfiguration: {
              subnets: [...subnets],
              securityGroups: [...securityGroups],
              // Public subnets without NAT: without an address a task would reach nothing.
              assignPublicIp: hasPublicIps === false ? 'DISABLED' : 'ENABLED',
            },
          },
          overrides: this.shortOverridesOf(batch, provider),
        }),
      );
      return { answer: 'told', failures: failuresOf(batch, answer) };
    } catch (cause) {
      const fault = faultOf(cause);
      // ECS was asked for these attempts before, with a payload that named other copies: a scheduler that takes a job over
      // may find more of them. What was started then stands.
      if (fault.name === 'ConflictException')
        return { answer: 'told', failures: failuresOf(batch, { tasks: startedBefore(cause) }) };
      if (isDenial(fault)) throw cause;
      const refusal = refusalOfFault(fault);
      // The service's own fault may come after the tasks were started.
      const isUnknown = fault.status === undefined || fault.status >= 500;
      const told: Failed =
        isUnknown && refusal.outcome === 'throttled' ? { ...refusal, isUnanswered: true } : refusal;
      return { answer: isUnknown ? 'none' : 'refused', failures: batch.map(() => told) };
    }
  }

  /** Where the copies that an attempt is to read make them too long, it reads winners' outputs, which are named elsewhere. */
  private shortOverridesOf(batch: LaunchBatch, provider: Provider): TaskOverride {
    const overrides = this.overridesOf(batch, provider);
    return isShort(overrides)
      ? overrides
      : this.overridesOf(batch, provider, withoutCopies(payloadOf(batch)));
  }

  private overridesOf(
    batch: LaunchBatch,
    provider: Provider,
    payload: AttemptPayload = payloadOf(batch),
  ): TaskOverride {
    const { vcpu, memoryMb } = fargateSizes[batch[0].size];
    const onSpot = provider === 'FARGATE_SPOT' ? [{ name: Setting.onSpot, value: 'true' }] : [];
    return {
      cpu: String(vcpu * 1024),
      memory: String(memoryMb),
      containerOverrides: [
        {
          name: this.places.taskContainer,
          environment: [
            { name: Setting.attemptPayload, value: JSON.stringify(payload) },
            { name: Setting.memoryMb, value: String(memoryMb) },
            // Takes the place of the options in the task definition. By itself V8 takes half of the memory, and 4 GB at most.
            {
              name: 'NODE_OPTIONS',
              value: `${workerNodeOptions} --max-old-space-size=${String(heapMbOf(memoryMb))}`,
            },
            ...onSpot,
          ],
        },
      ],
    };
  }
}

type Provider = 'FARGATE' | 'FARGATE_SPOT';

/** A subnet in which tasks run, and its zone where that is told. */
interface TaskSubnet {
  readonly id: string;
  readonly zone?: string;
}

/** Where RunTask is to start tasks. */
interface TaskPlace {
  readonly provider: Provider;
  /** Ids. */
  readonly subnets: readonly string[];
  /** The zone of all of them, where it is wanted; absent: they are all that there are. */
  readonly zone?: string;
  /** Whether it is for want of what the next place may have that a task did not start, by the words of ECS. */
  readonly lacks: (words: string) => boolean;
}

type Failed = Pick<LaunchOutcome, 'message' | 'denied' | 'isUnanswered'> & {
  readonly outcome: 'throttled' | 'refused';
};

const isShort = (overrides: TaskOverride): boolean => JSON.stringify(overrides).length <= ECS_OVERRIDES_CHARS;

/**
 * What a call has not started. Its tasks take the attempts from the first on, so that where there are fewer tasks those
 * at the end are left.
 */
function failuresOf(
  batch: LaunchBatch,
  { tasks = [], failures = [] }: Partial<Pick<RunTaskCommandOutput, 'tasks' | 'failures'>>,
): readonly (Failed | undefined)[] {
  return batch.map((_, index) => {
    if (index < tasks.length) return undefined;
    const failure = failures[Math.min(index - tasks.length, failures.length - 1)];
    return refusalOfFailure(failure ?? { reason: 'fewer tasks were started than were asked for, capacity' });
  });
}

/** The tasks that a conflict names: those which its token has started. */
const startedBefore = (conflict: unknown): { taskArn: string }[] => {
  const { resourceIds } = (conflict ?? {}) as { readonly resourceIds?: readonly string[] };
  return (resourceIds ?? []).map((taskArn) => ({ taskArn }));
};
