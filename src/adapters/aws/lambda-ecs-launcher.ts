import { createHash } from 'node:crypto';
import { type ECSClient, RunTaskCommand, StopTaskCommand, type TaskOverride } from '@aws-sdk/client-ecs';
import { InvokeCommand, type LambdaClient } from '@aws-sdk/client-lambda';
import { fargateSizes, type Worker, type WorkerSize } from '../../contracts/job-spec.ts';
import { attemptParts, jobNameOf } from '../../contracts/ids.ts';
import type { AccessDeniedError } from '../../contracts/errors.ts';
import type { AttemptPayload } from '../../contracts/payloads.ts';
import { Setting } from '../../contracts/settings.ts';
import type { Launcher, LaunchOutcome, LaunchRequest, LaunchTerms, NodeTerms } from '../../ports/launcher.ts';
import { denialOf, isDenial } from './denials.ts';
import { faultOf, isPassing } from './faults.ts';
import { lacksRoom, refusalOfFailure, refusalOfFault } from './run-task-faults.ts';
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
  readonly subnets?: readonly string[];
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
 * Starts workers by asynchronous invocation or as Fargate tasks. One RunTask call per attempt: the payload
 * travels in the task's overrides, which all tasks of a call would share.
 *
 * Give it clients that retry little: the scheduler paces its launches by `terms`, and makes what was refused again.
 */
export class LambdaEcsLauncher implements Launcher {
  private readonly lambda: LambdaClient;
  private readonly ecs: ECSClient;
  private readonly places: LauncherPlaces;

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

  async launch(requests: readonly LaunchRequest[]): Promise<readonly LaunchOutcome[]> {
    const outcomes = new Map<LaunchRequest, LaunchOutcome>();
    const launchAll = async (kind: LaunchRequest['kind'], concurrency: number): Promise<void> => {
      await forEachBounded(
        requests.filter((request) => request.kind === kind),
        concurrency,
        async (request) => {
          outcomes.set(request, await this.launchOne(request));
        },
      );
    };
    await Promise.all([launchAll('lambda', LAMBDA_CONCURRENCY), launchAll('fargate', ECS_CONCURRENCY)]);
    return requests.map(
      (request) => outcomes.get(request) ?? { attemptId: request.payload.attemptId, outcome: 'throttled' },
    );
  }

  async stop(attempt: { kind: 'lambda' | 'fargate'; node?: string }): Promise<void> {
    if (attempt.kind !== 'fargate' || attempt.node === undefined) return;
    try {
      await this.ecs.send(
        new StopTaskCommand({
          cluster: this.places.cluster,
          task: attempt.node,
          reason: 'the attempt is not needed',
        }),
      );
    } catch {
      // The order to cancel reaches the worker by its progress reports as well; stopping only saves time.
    }
  }

  private async launchOne(request: LaunchRequest): Promise<LaunchOutcome> {
    const { attemptId } = request.payload;
    try {
      const failed = request.kind === 'lambda' ? await this.invoke(request) : await this.runTask(request);
      return { attemptId, ...(failed ?? { outcome: 'accepted' }) };
    } catch (cause) {
      const fault = faultOf(cause);
      const denial = this.denialOf(request, cause);
      if (denial !== undefined)
        return { attemptId, outcome: 'refused', denied: true, message: denial.message };
      // A function that is being created or updated is in conflict for some seconds.
      const isLater = isPassing(fault) || fault.name === 'ResourceConflictException';
      return {
        attemptId,
        outcome: isLater ? 'throttled' : 'refused',
        message: `${fault.name}: ${fault.message}`,
      };
    }
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

  /** Of an attempt that Spot has no room for, the same on demand. */
  private async runTask({ payload, size }: LaunchRequest): Promise<Failed | undefined> {
    if (this.places.cluster === undefined)
      return { outcome: 'refused', message: 'this deployment has no Fargate' };
    const onSpot = this.places.isSpot === true && attemptParts(payload.attemptId).attempt === 0;
    const failed = onSpot ? await this.runTaskOn('FARGATE_SPOT', payload, size) : undefined;
    if (onSpot && !(failed?.outcome === 'throttled' && lacksRoom(failed.message ?? ''))) return failed;
    return this.runTaskOn('FARGATE', payload, size);
  }

  private async runTaskOn(
    provider: 'FARGATE' | 'FARGATE_SPOT',
    payload: AttemptPayload,
    size: WorkerSize,
  ): Promise<Failed | undefined> {
    const { cluster, taskDefinition, subnets = [], securityGroups = [], hasPublicIps, isSpot } = this.places;
    const attempt = `${payload.jobId}/${payload.attemptId}`;
    try {
      const answer = await this.ecs.send(
        new RunTaskCommand({
          cluster,
          taskDefinition,
          // One task a call, so that a strategy of several providers would have nothing to share out among them.
          ...(isSpot === true
            ? { capacityProviderStrategy: [{ capacityProvider: provider, weight: 1 }] }
            : { launchType: 'FARGATE' }),
          count: 1,
          // A call that the SDK repeats starts no second task.
          clientToken: createHash('sha256')
            .update(provider === 'FARGATE' ? attempt : `${attempt}/spot`)
            .digest('hex'),
          startedBy: payload.jobId,
          networkConfiguration: {
            awsvpcConfiguration: {
              subnets: [...subnets],
              securityGroups: [...securityGroups],
              // Public subnets without NAT: without an address a task would reach nothing.
              assignPublicIp: hasPublicIps === false ? 'DISABLED' : 'ENABLED',
            },
          },
          overrides: this.overridesOf(payload, size),
        }),
      );
      const failure = answer.failures?.[0];
      return failure === undefined ? undefined : refusalOfFailure(failure);
    } catch (cause) {
      const fault = faultOf(cause);
      // ECS has run this attempt before, from a payload that named other copies: a scheduler that takes a job over may
      // find more of them. The first launch stands; had it come to nothing, the attempt is lost for want of a claim.
      if (fault.name === 'ConflictException') return undefined;
      if (isDenial(fault)) throw cause;
      return refusalOfFault(fault);
    }
  }

  /** Where the copies that the attempt is to read make them too long, it reads winners' outputs, which are named elsewhere. */
  private overridesOf(payload: AttemptPayload, size: WorkerSize): TaskOverride {
    const overrides = {
      cpu: String(fargateSizes[size].vcpu * 1024),
      memory: String(fargateSizes[size].memoryMb),
      containerOverrides: [
        {
          name: this.places.taskContainer,
          environment: [{ name: Setting.attemptPayload, value: JSON.stringify(payload) }],
        },
      ],
    };
    const isTooLong = JSON.stringify(overrides).length > ECS_OVERRIDES_CHARS;
    return isTooLong && payload.copies !== undefined
      ? this.overridesOf({ ...payload, copies: undefined }, size)
      : overrides;
  }
}

type Failed = Pick<LaunchOutcome, 'message'> & { readonly outcome: 'throttled' | 'refused' };
